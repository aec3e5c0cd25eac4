package vms_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/PuerkitoBio/goquery"

	"berth/services"
	"berth/web/components"
	"berth/web/vms"
	"berth/web/webtest"
)

// actions lists what the page's forms ask of the power.
func actions(doc *goquery.Document) []string {
	var all []string
	doc.Find(`form[method=post][action="/vms/i-5be20f11/power"] [name=action]`).Each(func(_ int, s *goquery.Selection) {
		all = append(all, s.AttrOr("value", ""))
	})
	slices.Sort(all)
	return all
}

func TestPageOffersWhatThePowerAllows(t *testing.T) {
	starting := page(services.PowerStopped)
	starting.VM.Wanted = services.PowerRunning
	working := page(services.PowerRunning)
	working.Operation = operation(services.OpReboot, services.OpRunning)
	stopping := page(services.PowerRunning)
	stopping.VM.Wanted = services.PowerStopped
	stopping.Operation = operation(services.OpStop, services.OpRunning)
	deleted := page(services.PowerRunning)
	deleted.VM.DeletedAt = webtest.Now
	viewer := page(services.PowerRunning)
	viewer.Account.Role = services.RoleViewer

	tests := []struct {
		name string
		page vms.Page
		want string
	}{
		{"running", page(services.PowerRunning), "reboot stop stop-start"},
		{"stopped", page(services.PowerStopped), "start"},
		{"start ordered", starting, "stop"},
		{"under an operation", working, "stop"},
		{"being stopped", stopping, ""},
		{"deleted", deleted, ""},
		{"for a viewer", viewer, ""},
	}
	for _, tt := range tests {
		if got := strings.Join(actions(webtest.Both(t, vms.View(tt.page))), " "); got != tt.want {
			t.Errorf("%s: offers %q, want %q", tt.name, got, tt.want)
		}
	}
}

func TestHeadShowsThePower(t *testing.T) {
	for _, power := range []services.Power{services.PowerPending, services.PowerStarting, services.PowerRunning, services.PowerStopping, services.PowerStopped} {
		if webtest.Both(t, vms.View(page(power))).Find(`.page-head[data-id="i-5be20f11"] [data-state="`+string(power)+`"]`).Length() != 1 {
			t.Errorf("%s does not show", power)
		}
	}
	gone := page(services.PowerRunning)
	gone.VM.DeletedAt = webtest.Now
	if webtest.Both(t, vms.View(gone)).Find(`.page-head [data-state=absent]`).Length() != 1 {
		t.Error("a deleted machine does not show as deleted")
	}
}

// F2
func TestStopSaysWhatItInterruptsAndThatGPUsStayReserved(t *testing.T) {
	text := webtest.Text(webtest.Both(t, vms.View(page(services.PowerRunning))).Find("#stop form"))
	for _, want := range []string{"interrupts 2 GPUs", "2 GPUs stay reserved", "training-1 gets attached", "infer-b gets detached"} {
		if !strings.Contains(text, want) {
			t.Errorf("the question does not say %q: %q", want, text)
		}
	}
	bare := page(services.PowerRunning)
	bare.GPUs, bare.Pending = nil, nil
	if text := webtest.Text(webtest.Both(t, vms.View(bare)).Find("#stop form")); strings.Contains(text, "GPU") {
		t.Errorf("without GPUs the question says %q", text)
	}
}

func TestRebootSaysThatPlansStayPlans(t *testing.T) {
	if text := webtest.Text(webtest.Both(t, vms.View(page(services.PowerRunning))).Find("#reboot form")); !strings.Contains(text, "2 planned GPU changes stay planned") {
		t.Errorf("the question says %q", text)
	}
}

func TestDeletionNamesGPUsKeptAndReleased(t *testing.T) {
	form := webtest.Both(t, vms.View(page(services.PowerRunning))).Find(`form[action="/vms/i-5be20f11/delete"]`)
	if kept := webtest.Text(form.Find("[data-kept]")); !strings.Contains(kept, "training-0, infer-b") || strings.Contains(kept, "training-1") {
		t.Errorf("kept: %q", kept)
	}
	if released := webtest.Text(form.Find("[data-released]")); !strings.Contains(released, "training-1") {
		t.Errorf("released: %q", released)
	}
	if form.Find("[name=idempotency_key]").Length() != 1 {
		t.Error("the form has no key")
	}
}

func TestEachGPUHasItsStateAndItsOwnAction(t *testing.T) {
	doc := webtest.Both(t, vms.View(page(services.PowerRunning)))
	for id, want := range map[services.GPUID]struct{ state, action string }{
		attached: {"attached", "/detach"}, coming: {"attaching", "/detach"}, leaving: {"detaching", "/attach"},
	} {
		row := doc.Find(fmt.Sprintf(`tr[data-id=%q]`, id))
		if row.Find(`[data-state="`+want.state+`"]`).Length() != 1 {
			t.Errorf("%s does not show as %s", id, want.state)
		}
		form := row.Find("form")
		if got := form.AttrOr("action", ""); got != "/gpus/"+string(id)+want.action {
			t.Errorf("%s: its form is sent to %q", id, got)
		}
		if form.Find("[name=back]").AttrOr("value", "") != "/vms/i-5be20f11" {
			t.Errorf("%s: its form does not lead back", id)
		}
	}
	if doc.Find(fmt.Sprintf(`tr[data-id=%q] [name=vm]`, leaving)).AttrOr("value", "") != string(vmID) {
		t.Error("keeping a GPU attached does not name the machine")
	}
}

func TestKeysOfFormsDiffer(t *testing.T) {
	one := page(services.PowerRunning)
	one.GPUs = one.GPUs[:2]
	failed := page(services.PowerStopped)
	failed.Operation = operation(services.OpStopStart, services.OpStuck)
	for name, p := range map[string]vms.Page{"several plans": page(services.PowerRunning), "one plan": one, "a stuck operation": failed} {
		seen := map[string]bool{}
		webtest.Both(t, vms.View(p)).Find("[name=idempotency_key]").Each(func(_ int, s *goquery.Selection) {
			if key := s.AttrOr("value", ""); seen[key] {
				t.Errorf("%s: the key %q stands in two forms", name, key)
			} else {
				seen[key] = true
			}
		})
	}
}

func TestPendingChangeOffersStopAndStartAndCancel(t *testing.T) {
	p := page(services.PowerRunning)
	p.GPUs = p.GPUs[:2]
	banner := webtest.Both(t, vms.View(p)).Find("[data-pending]")
	text := webtest.Text(banner)
	for _, want := range []string{"1 GPU changes when render <lab> next stops", "A reboot is not enough", "interrupts 1 GPU"} {
		if !strings.Contains(text, want) {
			t.Errorf("the banner does not say %q: %q", want, text)
		}
	}
	if banner.Find(`form[action="/vms/i-5be20f11/power"] [name=action]`).AttrOr("value", "") != "stop-start" {
		t.Error("stop and start is not offered")
	}
	if banner.Find(`form[action="/gpus/fgpu-1f8a33b2/detach"]`).Length() != 1 {
		t.Error("the plan can't be cancelled")
	}
	p.Account.Role = services.RoleViewer
	if webtest.Both(t, vms.View(p)).Find("main form").Length() != 0 {
		t.Error("a viewer has forms")
	}
}

func TestWaitForTheHostShowsReasonDeadlineAndWayOut(t *testing.T) {
	waiting, late, silent := page(services.PowerStopped), page(services.PowerStopped), page(services.PowerStopped)
	waiting.Pending.Deadline = webtest.Now.Add(time.Minute)
	late.Pending.Deadline = webtest.Now.Add(-time.Second)
	late.Pending.Problem = &vms.Problem{Message: "device is held", Holder: "nvidia-persistenced", PID: 4211, Final: true}
	silent.Pending.HostSilent, silent.Pending.HostSeen = true, webtest.Now.Add(-time.Hour)
	tests := []struct {
		name, tone string
		page       vms.Page
		says       []string
	}{
		{"in time", "wait", waiting, []string{"its host has yet to confirm", "It counts as stuck in 1 min"}},
		{"overdue, held", "bad", late, []string{"does not get on with it", "nvidia-persistenced (process 4211)", "device is held", "Cancel it"}},
		{"silent host", "wait", silent, []string{"The host has not reported since 1 Dec 2025, 13:02", "finishes by itself"}},
	}
	for _, tt := range tests {
		banner := webtest.Both(t, vms.View(tt.page)).Find("[data-pending] .banner")
		if banner.AttrOr("data-tone", "") != tt.tone {
			t.Errorf("%s: tone %q", tt.name, banner.AttrOr("data-tone", ""))
		}
		for _, s := range tt.says {
			if !strings.Contains(webtest.Text(banner), s) {
				t.Errorf("%s: does not say %q: %q", tt.name, s, webtest.Text(banner))
			}
		}
	}
}

func TestOperationShowsItsStepsAndWaysOut(t *testing.T) {
	tests := []struct {
		state  services.OperationState
		kind   services.OperationKind
		shown  bool
		offers string
	}{
		{services.OpRunning, services.OpStopStart, true, "cancel"},
		{services.OpStuck, services.OpStopStart, true, "retry cancel"},
		{services.OpFailed, services.OpStopStart, true, "retry"},
		{services.OpDone, services.OpStopStart, false, ""},
		{services.OpCancelled, services.OpStopStart, false, ""},
		{services.OpRunning, services.OpDelete, true, ""},
	}
	for _, tt := range tests {
		p := page(services.PowerStopped)
		p.Operation = operation(tt.kind, tt.state)
		doc := webtest.Both(t, vms.View(p))
		if shown := doc.Find(`[data-id="op-00000001"] [data-step=settle]`).Length() == 1; shown != tt.shown {
			t.Errorf("%s %s: shown is %v", tt.kind, tt.state, shown)
		}
		var offers []string
		for _, way := range []string{"retry", "cancel"} {
			if doc.Find(`form[action="/operations/op-00000001/`+way+`"]`).Length() == 1 {
				offers = append(offers, way)
			}
		}
		if got := strings.Join(offers, " "); got != tt.offers {
			t.Errorf("%s %s: offers %q, want %q", tt.kind, tt.state, got, tt.offers)
		}
	}
}

func TestPickerAttachesSeveralAndDisablesTheImpossible(t *testing.T) {
	p := page(services.PowerRunning)
	p.Attach.Chosen = []services.GPUID{"fgpu-aaaaaaa1", "fgpu-aaaaaaa2"}
	form := webtest.Both(t, vms.View(p)).Find(`form[method=post][action="/vms/i-5be20f11/gpus"]`)
	if _, checked := form.Find(`[type=checkbox][name=gpu][value="fgpu-aaaaaaa1"]`).Attr("checked"); !checked {
		t.Error("the choice of a refused form is lost")
	}
	off := form.Find(`[name=gpu][value="fgpu-aaaaaaa2"]`)
	_, disabled := off.Attr("disabled")
	_, checked := off.Attr("checked")
	if !disabled || checked {
		t.Error("an impossible GPU can be chosen")
	}
	reason := webtest.Text(form.Find("#" + off.AttrOr("aria-describedby", "-")))
	if !strings.Contains(reason, "nvidia-h100") || !strings.Contains(reason, "eu-west-2b") {
		t.Errorf("the reasons are %q", reason)
	}
	p.Attach.GPUs = p.Attach.GPUs[1:]
	if _, off := webtest.Both(t, vms.View(p)).Find(`form[action$="/gpus"] button[type=submit]`).Attr("disabled"); !off {
		t.Error("nothing can be chosen, and the form can be sent")
	}
	p.Attach.GPUs = nil
	if webtest.Both(t, vms.View(p)).Find(`main a[href="/gpus/new?model=nvidia-h100&zone=eu-west-2a"]`).Length() != 1 {
		t.Error("nothing leads to an allocation")
	}
}

func TestBuiltInGPUsComeWithoutForms(t *testing.T) {
	p := page(services.PowerStopped)
	p.VM.Inference, p.Attach, p.Pending, p.Limits = true, nil, nil, nil
	p.GPUs = []vms.GPU{{ID: attached, Name: "serve-0", Model: h100.Model, Kind: services.GPUBuiltIn}}
	doc := webtest.Both(t, vms.View(p))
	row := doc.Find(`tr[data-id="fgpu-7c41d09e"]`)
	if row.Find("[data-state=built-in]").Length() != 1 || row.Find("form").Length() != 0 {
		t.Error("a built-in GPU does not show as one, or can be detached")
	}
	if doc.Find(`form[action$="/gpus"]`).Length() != 0 {
		t.Error("the machine takes flexible GPUs")
	}
	if doc.Find(`a[href$="/resize"]`).Length() != 0 {
		t.Error("the machine is led to a resize that can't be")
	}
	r := resize(services.PowerStopped)
	r.VM.Inference, r.Fits = true, nil
	if got := webtest.Text(webtest.Both(t, vms.ResizeView(r)).Find("main")); strings.Contains(got, "any type will do") || !strings.Contains(got, "come with its type") {
		t.Errorf("the form says %q", got)
	}
}

func TestSpecificationStandsAgainstTheLimits(t *testing.T) {
	text := webtest.Text(webtest.Both(t, vms.View(page(services.PowerRunning))).Find("main .facts"))
	for _, want := range []string{"24 of 32 allowed", "192 of 256 GiB allowed", "12 (8 to 16 advised)", "Debian 12", "eu-west-2a (shared storage)"} {
		if !strings.Contains(text, want) {
			t.Errorf("the facts do not say %q: %q", want, text)
		}
	}
	free := page(services.PowerRunning)
	free.Limits = nil
	if text := webtest.Text(webtest.Both(t, vms.View(free)).Find("main .facts")); !strings.Contains(text, "192 GiB") || strings.Contains(text, "allowed") {
		t.Errorf("without limits the facts say %q", text)
	}
}

func TestPageSaysWhichDriverToInstall(t *testing.T) {
	if text := webtest.Text(webtest.Both(t, vms.View(page(services.PowerRunning))).Find("main")); !strings.Contains(text, "NVIDIA 525 or newer") {
		t.Error("the driver is not named")
	}
}

func TestRefusedActionsShowEachReasonOnce(t *testing.T) {
	p := page(services.PowerRunning)
	busy := services.Violation{Code: services.CodeBusy, Args: map[string]any{"VM": "render-lab"}}
	p.Broken = []services.Violation{busy, busy}
	if n := webtest.Both(t, vms.View(p)).Find("#errors [data-error=busy]").Length(); n != 1 {
		t.Errorf("the reason stands %d times", n)
	}
}

func TestEveryEventOfMachinesHasASentence(t *testing.T) {
	kinds := []string{
		"created", "deleted", "removed", "running", "stopped", "rebooted", "powered-off", "crashed", "resized",
		"create-ordered", "start-ordered", "stop-ordered", "reboot-ordered", "stop-start-ordered", "resize-ordered", "delete-ordered",
		"operation-stuck", "operation-failed", "operation-cancelled",
	}
	p := page(services.PowerRunning)
	p.Events = nil
	for i, kind := range kinds {
		p.Events = append(p.Events, components.Happening{
			ID: int64(i), At: webtest.Now, Kind: "vm." + kind, Actor: services.ActorConsole, VM: vmID,
			Args: map[string]any{"Operation": "stop-start", "Reason": "late", "Type": "t", "Zone": "z", "Old": "o", "New": "n"},
		})
	}
	doc := webtest.Both(t, vms.View(p))
	for _, kind := range kinds {
		if title := webtest.Text(doc.Find(`[data-event="vm.` + kind + `"] .happening-title`)); title == "" || strings.Contains(title, "vm.") {
			t.Errorf("vm.%s shows as %q", kind, title)
		}
	}
	if title := webtest.Text(doc.Find(`[data-event="vm.operation-failed"] .happening-title`)); title != "Stop and start failed" {
		t.Errorf("a failure shows as %q", title)
	}
}
