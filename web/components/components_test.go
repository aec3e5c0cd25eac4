package components_test

import (
	"context"
	"strings"
	"testing"

	"github.com/a-h/templ"

	"berth/services"
	"berth/web/components"
	"berth/web/webtest"
)

func TestEachBrokenRuleIsAnElementOfItsOwn(t *testing.T) {
	doc := webtest.Both(t, components.Errors([]services.Violation{
		{Code: services.CodeRequired, Field: "name"},
		{Code: services.CodeVMSpecsMismatch, Limit: services.LimitVCores, Args: map[string]any{"Have": 36, "Max": 32, "Model": "nvidia-h100", "Region": "eu-west-2"}},
		{Code: services.CodeWrongState, Args: map[string]any{"GPU": "<b>x</b>", "State": "attaching", "VM": "render-lab"}},
		{Code: "never-heard-of"},
	}))
	for selector, want := range map[string]string{
		`[data-error="required"][data-field="name"]`:            "Name: Fill this in.",
		`[data-error="vm-specs-mismatch"][data-limit="vcores"]`: "36 vCores; nvidia-h100 allows 32 at most in eu-west-2.",
		`[data-error="wrong-state"]:not([data-limit])`:          "<b>x</b> is attaching with render-lab. That can't be done from this state.",
		`[data-error="never-heard-of"]`:                         "This is not possible (never-heard-of).",
	} {
		if got := webtest.Text(doc.Find(selector)); got != want {
			t.Errorf("%s says %q, want %q", selector, got, want)
		}
	}
	if doc.Find("[data-error]").Length() != 4 {
		t.Errorf("%d elements for 4 rules", doc.Find("[data-error]").Length())
	}
}

func TestNothingIsShownWhereNothingBroke(t *testing.T) {
	if doc := webtest.Both(t, components.Errors(nil)); doc.Find("body").Children().Length() != 0 {
		t.Error("an empty list of errors shows")
	}
}

func TestStatesAreIconWordAndColour(t *testing.T) {
	for _, s := range services.GPUStates {
		chip := webtest.Both(t, components.GPUState(s)).Find(`[data-state="` + string(s) + `"]`)
		if chip.Length() != 1 || chip.Find("svg path, svg rect").Length() == 0 || webtest.Text(chip) != string(s) || chip.AttrOr("data-tone", "") == "" {
			t.Errorf("%s: %s", s, webtest.Text(chip))
		}
	}
	for _, p := range []services.Power{services.PowerPending, services.PowerStarting, services.PowerRunning, services.PowerStopping, services.PowerStopped, services.PowerAbsent} {
		chip := webtest.Both(t, components.Power(p)).Find(`[data-state="` + string(p) + `"]`)
		if chip.Find("svg").Length() != 1 || chip.AttrOr("data-tone", "") == "" {
			t.Errorf("%s has no icon or no colour", p)
		}
	}
	for _, o := range []services.OperationState{services.OpRunning, services.OpStuck, services.OpDone, services.OpFailed, services.OpCancelled} {
		if webtest.Both(t, components.OperationState(o)).Find(`[data-state][data-tone] svg`).Length() != 1 {
			t.Errorf("%s has no icon or no colour", o)
		}
	}
}

func TestLivePartListensToItsEventsAndToRefresh(t *testing.T) {
	div := webtest.Both(t, components.Live(components.Region{
		ID: "gpu", Fragment: "/fragments/gpus/fgpu-1f8a33b2", Events: []string{components.GPUEvent("fgpu-1f8a33b2"), ""},
	})).Find("#gpu")
	want := "gpu-fgpu-1f8a33b2 from:body throttle:150ms, refresh from:body throttle:150ms"
	if got := div.AttrOr("hx-trigger", ""); got != want {
		t.Errorf("it listens to %q, want %q", got, want)
	}
	if div.AttrOr("hx-get", "") != "/fragments/gpus/fgpu-1f8a33b2" || div.AttrOr("hx-swap", "") != "outerMorph" {
		t.Error("it does not fetch itself")
	}
}

func TestImpossibleChoicesStayWithTheirReason(t *testing.T) {
	doc := webtest.Both(t, components.Choices(components.Field{Name: "vm", Label: "Machine", Required: true}, []components.Option{
		{Value: "i-00000001", Label: "one", Selected: true}, {Value: "i-00000002", Label: "two", Reason: "it is dedicated"},
	}))
	off := doc.Find(`input[name=vm][value="i-00000002"]`)
	if _, disabled := off.Attr("disabled"); !disabled {
		t.Error("the impossible choice can be chosen")
	}
	if got := webtest.Text(doc.Find("#" + off.AttrOr("aria-describedby", "-"))); got != "it is dedicated" {
		t.Errorf("the reason is %q", got)
	}
	if _, checked := doc.Find(`input[value="i-00000001"]`).Attr("checked"); !checked {
		t.Error("the choice is not kept")
	}
}

func TestBarsNeverExceedTheirWhole(t *testing.T) {
	doc := webtest.Both(t, components.Meter(components.Bar{Label: "use", Total: 4, Parts: []components.BarPart{
		{Tone: components.ToneOK, Value: 3}, {Tone: components.ToneWait, Value: 0}, {Tone: components.ToneBad, Value: 7},
	}}))
	parts := doc.Find(".meter-part")
	if parts.Length() != 2 || parts.Eq(0).AttrOr("width", "") != "75.00%" || parts.Eq(1).AttrOr("x", "") != "75.00%" || parts.Eq(1).AttrOr("width", "") != "25.00%" {
		html, _ := doc.Find("svg").Html()
		t.Errorf("parts: %s", html)
	}
	if webtest.Both(t, components.Meter(components.Bar{Label: "none", Total: 0, Parts: []components.BarPart{{Value: 1}}})).Find(".meter-part").Length() != 0 {
		t.Error("a part of nothing shows")
	}
}

func TestFormsWorkWithAndWithoutScripts(t *testing.T) {
	here, away := components.PostHere("/gpus/x/detach"), components.PostAway("/gpus")
	for _, a := range []templ.Attributes{here, away} {
		if a["method"] != "post" || a["action"] != a["hx-post"] {
			t.Errorf("the form differs without scripts: %v", a)
		}
	}
	if here["hx-push-url"] != nil || away["hx-push-url"] != "true" || away["hx-status:4xx"] != "push:false" {
		t.Error("only a form that leads away changes the URL, and a refused one does not")
	}
}

func TestUnknownEventsShowTheirKind(t *testing.T) {
	h := components.Happening{Kind: "gpu.from-the-future", Actor: services.ActorHost}
	if got := h.Title(context.Background()); got != "gpu.from-the-future" {
		t.Errorf("title %q", got)
	}
	if got := h.By(context.Background()); got != "the host" {
		t.Errorf("actor %q", got)
	}
	renamed := components.Happening{Kind: "gpu.renamed", Args: map[string]any{"Old": "a", "New": "b"}}
	if got := renamed.Title(context.Background()); !strings.Contains(got, "a") || !strings.Contains(got, "b") {
		t.Errorf("title %q", got)
	}
}
