package overview_test

import (
	"strings"
	"testing"
	"time"

	"berth/services"
	"berth/web/components"
	"berth/web/overview"
	"berth/web/webtest"
)

func page() overview.Page {
	waits := func(id services.GPUID, vm services.VMID, state services.GPUState, power services.Power) overview.Waiting {
		return overview.Waiting{
			ID: id, Name: "gpu " + string(id), Model: "nvidia-h100", State: state, VM: vm, VMName: "vm " + string(vm), Power: power,
			PowerSince: webtest.Now.Add(-144 * time.Hour), OnHost: power == services.PowerStopped, Since: webtest.Now.Add(-time.Minute),
		}
	}
	return overview.Page{
		Shell: webtest.Shell(), Key: "key",
		Waiting: []overview.Waiting{
			waits("fgpu-00000001", "i-00000001", services.GPUAttaching, services.PowerRunning),
			waits("fgpu-00000002", "i-00000001", services.GPUDetaching, services.PowerRunning),
			waits("fgpu-00000003", "i-00000002", services.GPUAttaching, services.PowerStopped),
		},
		Operations: []components.Progress{
			{ID: "op-00000001", Kind: services.OpStart, State: services.OpRunning, Steps: []string{"boot"}, VM: "i-00000003", VMName: "busy", Now: webtest.Now},
			{ID: "op-00000002", Kind: services.OpResize, State: services.OpFailed, Steps: []string{"halt"}, Reason: "error.no-capacity", VM: "i-00000004", VMName: "<u>sad</u>", Now: webtest.Now},
			{ID: "op-00000003", Kind: services.OpResize, State: services.OpFailed, Steps: []string{"halt"}, Reason: "error.vm-specs-mismatch", VM: "i-00000005", VMName: "sad", Now: webtest.Now},
		},
		Idle: []overview.Idle{{ID: "fgpu-00000009", Name: "spare", Model: "nvidia-l40", Zone: "eu-west-2b", Since: webtest.Now.Add(-48 * time.Hour)}}, IdleMore: 4,
		Models: []overview.ModelUse{
			{Model: "nvidia-h100", Region: "eu-west-2", Attached: 2, Attaching: 2, Detaching: 1, Allocated: 1, Used: 6, Max: new(8)},
			{Model: "nvidia-l40", Region: "eu-west-2", Used: 0, Max: new(0)},
			{Model: "nvidia-l40s", Region: "hikube", Used: 1},
		},
		Machines: []overview.PowerCount{{Power: services.PowerRunning, Count: 3}, {Power: services.PowerStopped, Count: 1}},
	}
}

func TestOneStopIsOfferedForAllGPUsOfAMachine(t *testing.T) {
	doc := webtest.Both(t, overview.View(page()))
	form := doc.Find(`form[action="/vms/i-00000001/power"]`)
	if form.Length() != 1 || form.Find("[name=action]").AttrOr("value", "") != "stop-start" || form.Find("[name=idempotency_key]").Length() != 1 {
		t.Errorf("%d forms stop and start the machine", form.Length())
	}
	item := doc.Find(`.need[data-id="i-00000001"]`)
	if item.Find(`[data-id="fgpu-00000001"] [data-state=attaching]`).Length() != 1 || item.Find(`[data-id="fgpu-00000002"] [data-state=detaching]`).Length() != 1 {
		t.Error("the machine's waiting GPUs do not stand together")
	}
	if doc.Find(`form[action="/vms/i-00000002/power"]`).Length() != 0 {
		t.Error("a stopped machine is offered to be stopped")
	}
}

func TestStopIsNotOfferedWhileTheMachineIsBusyOrToViewers(t *testing.T) {
	busy := page()
	busy.Operations[0].VM = "i-00000001"
	viewer := page()
	viewer.Account.Role = services.RoleViewer
	for name, p := range map[string]overview.Page{"busy": busy, "viewer": viewer} {
		if webtest.Both(t, overview.View(p)).Find(`main form`).Length() != 0 {
			t.Errorf("%s: a form is offered", name)
		}
	}
}

func TestWhatFailedComesFirstWithItsReason(t *testing.T) {
	doc := webtest.Both(t, overview.View(page()))
	needs := doc.Find(".needs > li")
	if needs.First().AttrOr("data-state", "") != "failed" {
		t.Errorf("first stands %q", needs.First().AttrOr("data-state", ""))
	}
	for id, want := range map[string]string{"op-00000002": "No host has the cores", "op-00000003": "breaks a limit"} {
		if got := webtest.Text(doc.Find(`[data-id="` + id + `"]`)); !strings.Contains(got, want) {
			t.Errorf("%s says %q", id, got)
		}
	}
}

func TestUseStandsAgainstTheQuota(t *testing.T) {
	doc := webtest.Both(t, overview.View(page()))
	for _, want := range []string{"6 of 8 used", "0 of 0 used", "1 used, unlimited"} {
		if !strings.Contains(webtest.Text(doc.Find(".uses")), want) {
			t.Errorf("the page does not say %q", want)
		}
	}
	bar := doc.Find(".uses .meter").First().Find(".meter-part")
	if bar.Length() != 3 || bar.Eq(1).AttrOr("width", "") != "37.50%" {
		t.Errorf("the bar has %d parts, the second %s wide", bar.Length(), bar.Eq(1).AttrOr("width", ""))
	}
}

func TestFiguresLeadToTheirLists(t *testing.T) {
	doc := webtest.Both(t, overview.View(page()))
	for url, want := range map[string]string{"/gpus?state=attached": "2", "/gpus?state=waiting": "3", "/gpus?state=allocated": "1", "/vms": "4"} {
		if got := doc.Find(`.figures a[href="` + url + `"] .figure-count`).Text(); got != want {
			t.Errorf("%s: %q, want %s", url, got, want)
		}
	}
}

func TestQuietAndNewAccounts(t *testing.T) {
	quiet := page()
	quiet.Waiting, quiet.Operations, quiet.Idle, quiet.IdleMore = nil, nil, nil, 0
	if got := webtest.Text(webtest.Both(t, overview.View(quiet)).Find(".quiet").First()); got != "Nothing needs you right now." {
		t.Errorf("a quiet account says %q", got)
	}
	doc := webtest.Both(t, overview.View(overview.Page{Shell: webtest.Shell()}))
	if doc.Find(`.welcome a[href="/catalog"], .welcome a[href="/gpus/new"], .welcome a[href="/vms/new"]`).Length() != 3 {
		t.Error("a new account is not led on")
	}
}
