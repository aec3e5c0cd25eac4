package gpus_test

import (
	"strings"
	"testing"
	"time"

	"github.com/PuerkitoBio/goquery"

	"berth/services"
	"berth/web/components"
	"berth/web/gpus"
	"berth/web/webtest"
)

func TestPageShowsTheStateAndItsIdentifier(t *testing.T) {
	for _, state := range services.GPUStates {
		doc := webtest.Both(t, gpus.View(page(state, services.PowerRunning)))
		if doc.Find(`[data-id="fgpu-1f8a33b2"] h1`).Text() != "training <1>" {
			t.Errorf("%s: heading %q", state, doc.Find("h1").Text())
		}
		if doc.Find(`.page-head [data-state="`+string(state)+`"]`).Length() != 1 {
			t.Errorf("%s does not show", state)
		}
		lit := doc.Find(`.cycle-wide .cycle-node[data-now]`)
		if lit.Length() != 1 || webtest.Text(lit) != string(state) {
			t.Errorf("%s: the drawing lights %q", state, webtest.Text(lit))
		}
		if !strings.HasPrefix(webtest.Text(doc.Find(".cycle-words")), "It is "+string(state)) {
			t.Errorf("%s: in words %q", state, webtest.Text(doc.Find(".cycle-words")))
		}
	}
}

func TestEachStateOffersItsOwnActions(t *testing.T) {
	tests := []struct {
		state services.GPUState
		want  []string // actions of forms
		not   []string
	}{
		{services.GPUAllocated, []string{"/attach", "/release"}, []string{"/detach"}},
		{services.GPUAttaching, []string{"/detach"}, []string{"/release", "/attach"}},
		{services.GPUAttached, []string{"/detach"}, []string{"/release", "/attach"}},
		{services.GPUDetaching, []string{"/attach"}, []string{"/release", "/detach"}},
	}
	for _, tt := range tests {
		doc := webtest.Both(t, gpus.View(page(tt.state, services.PowerRunning)))
		for _, action := range append(tt.want, "/rename", "/on-deletion") {
			form := doc.Find(`form[method=post][action="/gpus/fgpu-1f8a33b2` + action + `"]`)
			if form.Length() != 1 || form.Find("[name=idempotency_key]").AttrOr("value", "") == "" {
				t.Errorf("%s: %d forms %s with a key", tt.state, form.Length(), action)
			}
		}
		for _, action := range tt.not {
			if doc.Find(`form[action$="`+action+`"]`).Length() != 0 {
				t.Errorf("%s: offers %s", tt.state, action)
			}
		}
	}
}

func TestFormsHaveKeysOfTheirOwn(t *testing.T) {
	doc := webtest.Both(t, gpus.View(page(services.GPUAttaching, services.PowerRunning)))
	seen := map[string]bool{}
	doc.Find("[name=idempotency_key]").Each(func(_ int, s *goquery.Selection) {
		if key := s.AttrOr("value", ""); seen[key] {
			t.Errorf("the key %q stands in two forms", key)
		} else {
			seen[key] = true
		}
	})
}

func TestViewersSeeNoForms(t *testing.T) {
	for _, state := range services.GPUStates {
		p := page(state, services.PowerRunning)
		p.Account.Role = services.RoleViewer
		if forms := webtest.Both(t, gpus.View(p)).Find("main form"); forms.Length() != 0 {
			t.Errorf("%s: a viewer has %d forms", state, forms.Length())
		}
	}
}

func TestPickerDisablesImpossibleMachinesWithEveryReason(t *testing.T) {
	doc := webtest.Both(t, gpus.View(page(services.GPUAllocated, "")))
	off := doc.Find(`input[name=vm][value="i-0c77a9d3"]`)
	if _, disabled := off.Attr("disabled"); !disabled {
		t.Fatal("the impossible machine can be chosen")
	}
	reason := webtest.Text(doc.Find("#" + off.AttrOr("aria-describedby", "-")))
	if !strings.Contains(reason, "40 vCores") || !strings.Contains(reason, "dedicated") {
		t.Errorf("the reasons are %q", reason)
	}
	if doc.Find(`input[name=vm][value="i-5be20f11"]:not([disabled])`).Length() != 1 {
		t.Error("the possible machine can't be chosen")
	}
}

func TestRefusedAttachKeepsTheChoice(t *testing.T) {
	p := page(services.GPUAllocated, "")
	p.Attach.Chosen = vmID
	p.Broken = []services.Violation{{Code: services.CodeVMSpecsMismatch, Limit: services.LimitMemory, Args: map[string]any{"Have": "300", "Max": "256", "Model": "nvidia-h100", "Region": "eu-west-2"}}}
	doc := webtest.Both(t, gpus.View(p))
	if doc.Find(`[data-error="vm-specs-mismatch"][data-limit=memory]`).Length() != 1 {
		t.Error("the broken limit is not named")
	}
	if _, checked := doc.Find(`input[name=vm][value="i-5be20f11"]`).Attr("checked"); !checked {
		t.Error("the choice is lost")
	}
}

func TestPendingNamesWhatAStopInterrupts(t *testing.T) {
	doc := webtest.Both(t, gpus.View(page(services.GPUAttaching, services.PowerRunning)))
	text := webtest.Text(doc.Find("[data-pending]"))
	for _, want := range []string{"when render-lab next stops", "A reboot is not enough", "6 days", "A stop interrupts 1 GPU"} {
		if !strings.Contains(text, want) {
			t.Errorf("the banner does not say %q: %q", want, text)
		}
	}
	form := doc.Find(`form[action="/vms/i-5be20f11/power"]`)
	if form.Find("[name=action]").AttrOr("value", "") != "stop-start" {
		t.Error("stop and start is not offered")
	}
}

func TestDetachingGPUIsInterruptedTooByAStop(t *testing.T) {
	text := webtest.Text(webtest.Both(t, gpus.View(page(services.GPUDetaching, services.PowerRunning))).Find("[data-pending]"))
	if !strings.Contains(text, "A stop interrupts 2 GPUs") {
		t.Errorf("the banner says %q", text)
	}
}

func TestWaitForTheHostShowsDeadlineAndReason(t *testing.T) {
	waiting := page(services.GPUAttaching, services.PowerStopped)
	waiting.Pending.Deadline = webtest.Now.Add(time.Minute)
	late := page(services.GPUAttaching, services.PowerStopped)
	late.Pending.Deadline = webtest.Now.Add(-time.Second)
	late.Pending.Problem = &gpus.Problem{Message: "device is held", Holder: "nvidia-persistenced", PID: 4211, Final: true}
	silent := page(services.GPUAttaching, services.PowerStopped)
	silent.Pending.HostSilent, silent.Pending.HostSeen = true, webtest.Now.Add(-time.Hour)

	tests := []struct {
		name, tone string
		page       gpus.Page
		says       []string
	}{
		{"in time", "wait", waiting, []string{"its host has yet to confirm", "It counts as stuck in 1 min"}},
		{"overdue, held", "bad", late, []string{"does not get on with it", "nvidia-persistenced", "4211", "device is held", "Cancel it"}},
		{"silent host", "wait", silent, []string{"The host has not reported since 1 Dec 2025, 13:02", "finishes by itself"}},
	}
	for _, tt := range tests {
		banner := webtest.Both(t, gpus.View(tt.page)).Find("[data-pending] .banner")
		if banner.AttrOr("data-tone", "") != tt.tone {
			t.Errorf("%s: tone %q", tt.name, banner.AttrOr("data-tone", ""))
		}
		for _, s := range tt.says {
			if !strings.Contains(webtest.Text(banner), s) {
				t.Errorf("%s: does not say %q: %q", tt.name, s, webtest.Text(banner))
			}
		}
		if banner.Find("form").Length() != 0 {
			t.Errorf("%s: offers to stop a stopped machine", tt.name)
		}
	}
}

func TestRunningOperationTakesThePlaceOfTheBanner(t *testing.T) {
	p := page(services.GPUAttaching, services.PowerStopping)
	p.Machine.Operation = &components.Progress{
		ID: "op-00000001", Kind: services.OpStopStart, State: services.OpRunning, Steps: []string{"halt", "settle", "boot"}, At: 1,
		Since: webtest.Now, Deadline: webtest.Now.Add(time.Minute), Now: webtest.Now,
	}
	doc := webtest.Both(t, gpus.View(p))
	if doc.Find("[data-pending]").Length() != 0 || doc.Find(`[data-id="op-00000001"] [data-step=settle][data-state=running]`).Length() != 1 {
		t.Error("the operation's progress does not show")
	}
	if doc.Find(`[data-step=halt][data-state=done], [data-step=boot][data-state=next]`).Length() != 2 {
		t.Error("the other steps do not show")
	}
}

func TestReleasedAndBuiltInGPUsCannotBeChanged(t *testing.T) {
	released := page("", "")
	released.Machine, released.GPU.ReleasedAt = nil, webtest.Now
	builtIn := page("", services.PowerRunning)
	builtIn.GPU.Kind = services.GPUBuiltIn
	for state, p := range map[string]gpus.Page{"released": released, "built-in": builtIn} {
		doc := webtest.Both(t, gpus.View(p))
		if doc.Find("main form").Length() != 0 {
			t.Errorf("%s: has forms", state)
		}
		if doc.Find(`.page-head [data-state="`+state+`"]`).Length() != 1 {
			t.Errorf("%s does not show", state)
		}
		if held := strings.Contains(webtest.Text(doc.Find("main .facts")), "Held by"); held != (state == "built-in") {
			t.Errorf("%s: named as held: %v", state, held)
		}
	}
}

func TestQuotaOfZeroNeverReadsAsUnlimited(t *testing.T) {
	for want, most := range map[string]*int{"12 of 0 used": new(0), "unlimited, 12 used": nil} {
		p := page(services.GPUAllocated, "")
		p.Quota.Max = most
		if text := webtest.Text(webtest.Both(t, gpus.View(p)).Find("main")); !strings.Contains(text, want) {
			t.Errorf("the page does not say %q", want)
		}
	}
}

func TestSpansFollowTheEvents(t *testing.T) {
	at := func(h int) time.Time { return webtest.Now.Add(time.Duration(h) * time.Hour) }
	events := []components.Happening{
		{At: at(5), To: "attached"}, {At: at(3), Kind: "gpu.renamed"}, {At: at(2), To: "attaching"}, {At: at(0), To: "allocated"},
	}
	spans := gpus.Spans(events, at(9))
	want := []gpus.Span{
		{State: services.GPUAllocated, From: at(0), To: at(2)},
		{State: services.GPUAttaching, From: at(2), To: at(5)},
		{State: services.GPUAttached, From: at(5), To: at(9)},
	}
	if len(spans) != len(want) {
		t.Fatalf("%d spans, want %d", len(spans), len(want))
	}
	for i := range want {
		if spans[i] != want[i] {
			t.Errorf("span %d is %+v, want %+v", i, spans[i], want[i])
		}
	}
	ended := gpus.Spans(append([]components.Happening{{At: at(7), To: "released"}}, events...), at(9))
	if len(ended) != 3 || ended[2].To != at(7) {
		t.Errorf("a released GPU's last span ends at %v", ended[len(ended)-1].To)
	}
	if len(gpus.Spans(nil, at(0))) != 0 {
		t.Error("no events make spans")
	}
}
