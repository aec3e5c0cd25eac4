package vms_test

import (
	"strings"
	"testing"

	"berth/services"
	"berth/services/catalog"
	"berth/web/vms"
	"berth/web/webtest"
)

func TestNewFormHasTheFieldsThatScriptsPost(t *testing.T) {
	form := webtest.Both(t, vms.NewView(newForm())).Find(`form[method=post][action="/vms"]`)
	for _, name := range []string{"name", "zone", "type", "performance", "tenancy", "image", "ssh_key", "user_data", "idempotency_key"} {
		if form.Find("[name="+name+"]").Length() == 0 {
			t.Errorf("the form has no field %s", name)
		}
	}
	for field, want := range map[string]string{"[name=zone]:checked": "eu-west-2a", "[name=tenancy]:checked": "default"} {
		if got := form.Find(strings.Replace(field, ":checked", "[checked]", 1)).AttrOr("value", ""); got != want {
			t.Errorf("%s is %q, want %q", field, got, want)
		}
	}
	if form.Find("[name=image] [selected]").AttrOr("value", "") != "debian-12" {
		t.Error("the image is not chosen")
	}
}

func TestTypeIsExplained(t *testing.T) {
	tests := []struct {
		typ  string
		says []string
	}{
		{"tinav7.c8r32p1", []string{"tinav7", "CPU generation v7", "c8", "8 vCores", "r32", "32 GiB", "p1", "performance highest"}},
		{"u1.2xlarge", []string{"8", "32 GiB", "any", "highest"}},
		{"inf.2h", []string{"32", "256 GiB", "v7", "2 × nvidia-h100", "built in"}},
	}
	for _, tt := range tests {
		text := webtest.Text(webtest.Both(t, vms.NewFragment(newForm("type", tt.typ))).Find(".spelling"))
		for _, want := range tt.says {
			if !strings.Contains(text, want) {
				t.Errorf("%s: does not say %q: %q", tt.typ, want, text)
			}
		}
	}
}

func TestNewFormTellsWhichGPUsTheMachineTakes(t *testing.T) {
	fits := webtest.Both(t, vms.NewFragment(newForm())).Find(`[data-id="nvidia-h100"]`)
	if text := webtest.Text(fits); !strings.Contains(text, "yes") {
		t.Errorf("a suitable type says %q", text)
	}
	not := webtest.Both(t, vms.NewFragment(newForm("type", "tinav6.c36r300p2"))).Find(`[data-id="nvidia-h100"]`)
	for _, limit := range []string{"performance", "vcores", "memory", "generation"} {
		if not.Find("[data-limit="+limit+"]").Length() != 1 {
			t.Errorf("the limit %s is not named", limit)
		}
	}
	if not.Find("[data-error]").Length() != 0 {
		t.Error("what a model does not take is shown as an error of the form")
	}
	built := webtest.Text(webtest.Both(t, vms.NewFragment(newForm("type", "inf.2h"))).Find("main, #machine"))
	if !strings.Contains(built, "It comes with 2 × nvidia-h100 built in") {
		t.Error("built-in GPUs are not named")
	}
}

func TestNewFormKeepsWhatWasRefused(t *testing.T) {
	n := newForm("by", "parts", "generation", "v7", "vcores", "", "memory", "12.5", "performance", "high")
	n.Values.Tenancy, n.Values.SSHKey, n.Values.UserData = catalog.TenancyDedicated, "ssh-ed25519 <k>", "#cloud-config"
	n.Broken = []services.Violation{
		{Code: services.CodeRequired, Field: "name"},
		{Code: services.CodeInvalidType, Field: "type", Args: map[string]any{"Type": "tinav7.cr12.5p2"}},
	}
	doc := webtest.Both(t, vms.NewView(n))
	for _, code := range []string{"required", "invalid-type"} {
		if doc.Find(`#errors [data-error="`+code+`"]`).Length() != 1 {
			t.Errorf("%s is not named", code)
		}
	}
	for selector, want := range map[string]string{"#name": "n <1>", "#memory": "12.5", "[name=tenancy][checked]": "dedicated", "#performance [selected]": "high"} {
		if got := doc.Find(selector).AttrOr("value", ""); got != want {
			t.Errorf("%s is %q, want %q", selector, got, want)
		}
	}
	if doc.Find("#ssh_key").Text() != "ssh-ed25519 <k>" || doc.Find("#user_data").Text() != "#cloud-config" {
		t.Error("a text is lost")
	}
	if got := webtest.Text(doc.Find("#vcores-error")); got != "Fill this in." {
		t.Errorf("the empty part says %q", got)
	}
	if got := webtest.Text(doc.Find("#memory-error")); got != "A whole number, from 1 on." {
		t.Errorf("the broken part says %q", got)
	}
	if doc.Find("#type").Length() != 1 {
		t.Error("the summary's link to the type leads nowhere")
	}
}

func TestHugeTypesAreRefusedAtTheirParts(t *testing.T) {
	n := newForm("by", "parts", "generation", "v7", "vcores", "99999", "memory", "1", "performance", "high")
	n.Broken = []services.Violation{{Code: services.CodeInvalidType, Field: "type", Args: map[string]any{"Type": "x"}}}
	if got := webtest.Text(webtest.Both(t, vms.NewView(n)).Find("#vcores-error")); got != "No machine is that large." {
		t.Errorf("the part says %q", got)
	}
}

func TestNewFormAnswersWhileItIsFilledIn(t *testing.T) {
	part := webtest.Both(t, vms.NewFragment(newForm())).Find("#machine")
	if part.AttrOr("hx-get", "") != "/fragments/vms/new" || part.AttrOr("hx-include", "") != "closest form" {
		t.Error("the form does not fetch its answer")
	}
	empty := webtest.Both(t, vms.NewFragment(newForm("by", "text")))
	if text := webtest.Text(empty.Find("#machine")); !strings.Contains(text, "Fill in the type") {
		t.Error("an empty type is not asked for")
	}
	wrong := webtest.Both(t, vms.NewFragment(newForm("by", "text", "type", "u9.huge")))
	if wrong.Find("[data-error=invalid-type]").Length() != 1 {
		t.Error("an unknown type is not named while it is typed")
	}
}
