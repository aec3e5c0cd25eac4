package vms_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/PuerkitoBio/goquery"

	"berth/services"
	"berth/web/vms"
	"berth/web/webtest"
)

// sendable reports whether the form can be sent as it stands.
func sendable(doc *goquery.Document) bool {
	return doc.Find(`form[action="/vms/i-5be20f11/resize"] .btn-primary:not([disabled])`).Length() == 1
}

func TestResizeNamesTheBrokenLimitOfEachGPU(t *testing.T) {
	doc := webtest.Both(t, vms.ResizeView(resize(services.PowerRunning, "type", "tinav6.c36r300p2")))
	for _, id := range []services.GPUID{attached, coming} {
		for _, limit := range []string{"performance", "vcores", "memory", "generation"} {
			if doc.Find(`[data-id="`+string(id)+`"] [data-error="vm-specs-mismatch"][data-limit="`+limit+`"]`).Length() != 1 {
				t.Errorf("%s: the limit %s is not named", id, limit)
			}
		}
	}
	for _, field := range []string{"generation", "vcores", "memory", "performance"} {
		if doc.Find("#"+field+"-error").Length() != 1 {
			t.Errorf("the field %s does not show that it breaks a limit", field)
		}
	}
	if doc.Find("[data-broken]").Length() != 4 {
		t.Error("the comparison does not mark what breaks")
	}
	if sendable(doc) {
		t.Error("a resize that would be refused can be sent")
	}
	if text := webtest.Text(doc.Find(`[data-id="fgpu-1f8a33b2"]`)); !strings.Contains(text, "Planned attachments count too") {
		t.Errorf("the planned GPU says %q", text)
	}
}

func TestResizeOffersTheClosestThatFits(t *testing.T) {
	doc := webtest.Both(t, vms.ResizeView(resize(services.PowerRunning, "type", "tinav7.c36r256p1")))
	if got := doc.Find(".largest a").AttrOr("href", ""); got != "/vms/i-5be20f11/resize?type=tinav7.c32r256p1" {
		t.Errorf("it leads to %q", got)
	}
	if webtest.Both(t, vms.ResizeView(resize(services.PowerRunning, "type", "tinav7.c32r256p1"))).Find(".largest").Length() != 0 {
		t.Error("a type that fits has another offered")
	}
}

func TestResizeAtTheMaximumFits(t *testing.T) {
	doc := webtest.Both(t, vms.ResizeView(resize(services.PowerRunning, "type", "tinav7.c32r256p1")))
	if doc.Find("[data-error]").Length() != 0 || !sendable(doc) {
		t.Error("the maximum itself is refused")
	}
	if text := webtest.Text(doc.Find(".becomes")); text != "Becomestinav7.c32r256p1" {
		t.Errorf("the result is %q", text)
	}
}

func TestResizeOfARunningMachineIsOneOperation(t *testing.T) {
	doc := webtest.Both(t, vms.ResizeView(resize(services.PowerRunning, "type", "tinav7.c32r256p1")))
	if doc.Find("[name=restart]").AttrOr("value", "") != "true" || webtest.Text(doc.Find("#resize .btn-primary")) != "Stop, resize, start" {
		t.Error("the restart is not offered")
	}
	if text := webtest.Text(doc.Find("main")); !strings.Contains(text, "Bind or unbind 1 GPU") || !strings.Contains(text, "interrupts 1 GPU") {
		t.Error("what the restart does is not told")
	}
	stopped := webtest.Both(t, vms.ResizeView(resize(services.PowerStopped, "type", "tinav7.c32r256p1")))
	if stopped.Find("[name=restart]").Length() != 0 || webtest.Text(stopped.Find("#resize .btn-primary")) != "Resize" {
		t.Error("a stopped machine is restarted")
	}
}

func TestResizeCannotBeSentInVain(t *testing.T) {
	busy := resize(services.PowerRunning, "type", "tinav7.c32r256p1")
	busy.Busy = operation(services.OpStopStart, services.OpRunning)
	deleted := resize(services.PowerStopped, "type", "tinav7.c32r256p1")
	deleted.VM.DeletedAt = webtest.Now
	against := resize(services.PowerStopped, "type", "inf.2h")
	against.Fits, against.Against = nil, []services.Violation{{Code: services.CodeInferenceType, Field: "type"}}
	viewer := resize(services.PowerRunning, "type", "tinav7.c32r256p1")
	viewer.Account.Role = services.RoleViewer
	tests := map[string]vms.Resize{
		"the present type": resize(services.PowerRunning), "no type": resize(services.PowerRunning, "type", "u9.huge"),
		"a busy machine": busy, "a deleted machine": deleted, "a type with GPUs built in": against, "a viewer": viewer,
	}
	for name, r := range tests {
		if sendable(webtest.Both(t, vms.ResizeView(r))) {
			t.Errorf("%s: the form can be sent", name)
		}
	}
	if webtest.Both(t, vms.ResizeView(against)).Find("main [data-error=inference-type]").Length() != 1 {
		t.Error("what stands against the type is not named")
	}
	if webtest.Both(t, vms.ResizeView(busy)).Find(`[data-id="op-00000001"]`).Length() != 1 {
		t.Error("the operation under way does not show")
	}
}

func TestUnknownTypeKeepsTheFormAndThePresentFigures(t *testing.T) {
	doc := webtest.Both(t, vms.ResizeView(resize(services.PowerRunning, "by", "text", "type", "u9.huge")))
	if doc.Find("#type-text").AttrOr("value", "") != "u9.huge" || doc.Find("[data-error=invalid-type]").Length() == 0 {
		t.Error("the text is lost, or not refused")
	}
	if text := webtest.Text(doc.Find("[data-part=vcores]")); !strings.HasPrefix(text, "vCores24–") {
		t.Errorf("the comparison says %q", text)
	}
	if doc.Find(".fit-answer").Length() != 0 {
		t.Error("GPUs are said to fit what can't be read")
	}
}

func TestEmptyPartIsNotBlamedBeforeTheFormIsSent(t *testing.T) {
	r := resize(services.PowerRunning, "by", "parts", "generation", "v7", "vcores", "", "memory", "32", "performance", "highest")
	if doc := webtest.Both(t, vms.ResizeFragment(r)); doc.Find(".field-error, [data-error]").Length() != 0 {
		t.Errorf("an unfinished form says %q", webtest.Text(doc.Find(".field-error, [data-error]")))
	}
}

func TestRefusedResizeListsEachLimitOnceOnTop(t *testing.T) {
	r := resize(services.PowerRunning, "type", "tinav7.c36r256p1")
	r.Broken = slices.Concat(r.Fits[0].Broken, r.Fits[1].Broken)
	if n := webtest.Both(t, vms.ResizeView(r)).Find(`#errors [data-limit=vcores]`).Length(); n != 1 {
		t.Errorf("the limit stands %d times", n)
	}
}

func TestResizeFollowsTheMachine(t *testing.T) {
	part := webtest.Both(t, vms.ResizeFragment(resize(services.PowerRunning))).Find("#resizing")
	if part.AttrOr("hx-get", "") != "/fragments/vms/i-5be20f11/resize" {
		t.Errorf("the answer is fetched from %q", part.AttrOr("hx-get", ""))
	}
	for _, event := range []string{"change", "input changed", "vm-i-5be20f11 from:body", "refresh from:body"} {
		if !strings.Contains(part.AttrOr("hx-trigger", ""), event) {
			t.Errorf("it does not follow %q", event)
		}
	}
}

func TestNamedTypesThatDoNotFitAreDisabledWithTheReason(t *testing.T) {
	doc := webtest.Both(t, vms.ResizeView(resize(services.PowerRunning, "type", "u1.2xlarge")))
	off := doc.Find(`[name=named][value="inf.2h"]`)
	if _, disabled := off.Attr("disabled"); !disabled {
		t.Error("a type with GPUs built in can be chosen")
	}
	if reason := webtest.Text(doc.Find(`[id="` + off.AttrOr("aria-describedby", "-") + `"]`)); !strings.Contains(reason, "GPUs built in") {
		t.Errorf("the reason is %q", reason)
	}
	if _, chosen := doc.Find(`[name=named][value="u1.2xlarge"]`).Attr("checked"); !chosen {
		t.Error("the named type is not chosen")
	}
	if text := webtest.Text(doc.Find("main")); !strings.Contains(text, "That makes 4 vCPU per GPU (8 to 16 advised)") {
		t.Error("the advice is missing")
	}
}
