package e2e

import (
	"regexp"
	"strings"
	"testing"

	"github.com/playwright-community/playwright-go"

	"berth/cmd/berth/lab"
)

func (p *page) choose(t *testing.T, field, value string) {
	t.Helper()
	_, err := p.Locator(field).SelectOption(playwright.SelectOptionValues{Values: &[]string{value}})
	must(t, err, "choose "+value+" in "+field)
}

func (p *page) wantCount(t *testing.T, selector string, n int) {
	t.Helper()
	must(t, expect.Locator(p.Locator(selector)).ToHaveCount(n), "count "+selector)
}

func TestCatalogueNarrowsComparesAndRemembersInTheAddress(t *testing.T) {
	c := newConsole(t)
	p := signIn(t, c, lab.TenantA, visit{})
	p.visit(t, "/catalog")
	p.wantCount(t, ".model", 5)
	p.choose(t, "#catalog-architecture", "Hopper")
	p.wantCount(t, ".model", 2)
	must(t, p.Locator("#free-now").Check(), "ask for what is free now")
	p.wantCount(t, ".model", 1)
	must(t, expect.Page(p.Page).ToHaveURL(regexp.MustCompile(`architecture=Hopper.*free=now|free=now.*architecture=Hopper`)), "find the filters in the address")
	_, err := p.Reload()
	must(t, err, "reload")
	p.wantCount(t, ".model", 1)
	p.choose(t, "#catalog-architecture", "Ampere")
	must(t, expect.Locator(p.Locator(".model")).ToHaveAttribute("data-id", "nvidia-a100-80"), "see the A100")
	_, err = p.GoBack()
	must(t, err, "go back")
	must(t, expect.Locator(p.Locator(".model")).ToHaveAttribute("data-id", "nvidia-h100"), "see what was there before")

	p.visit(t, "/catalog")
	for _, id := range []string{"nvidia-h100", "nvidia-l40"} {
		must(t, p.Locator("#model-"+id+" .model-actions a").First().Click(), "compare "+id)
		must(t, expect.Locator(p.Locator(".comparison thead th", playwright.PageLocatorOptions{HasText: id})).ToBeVisible(), "see "+id+" compared")
	}
	must(t, expect.Page(p.Page).ToHaveURL(regexp.MustCompile("compare=nvidia-h100.*compare=nvidia-l40")), "find the comparison in the address")
}

// What is free now is told for each zone, and without a figure: the other
// tenant's last card taken shows as none free, live.
func TestCatalogueTellsAvailabilityLive(t *testing.T) {
	c := newConsole(t)
	a, b := signIn(t, c, lab.TenantA, visit{}), signIn(t, c, lab.TenantB, visit{})
	a.visit(t, "/catalog")
	zone := a.Locator(`#model-nvidia-h100 [data-zone="cloudgouv-eu-west-1a"]`)
	must(t, expect.Locator(zone).ToHaveAttribute("data-free", "true"), "see free cards")
	b.allocate(t, "nvidia-h100", "cloudgouv-eu-west-1a", "one")
	b.allocate(t, "nvidia-h100", "cloudgouv-eu-west-1a", "two")
	must(t, expect.Locator(zone).ToHaveAttribute("data-free", "false"), "see none free")
	a.expectStatus(409)
	a.visit(t, "/gpus/new?model=nvidia-h100&zone=cloudgouv-eu-west-1a")
	must(t, expect.Locator(a.Locator(`[name=zone][value="cloudgouv-eu-west-1a"]`)).ToBeDisabled(), "see the zone disabled")
	answer, err := a.Context().Request().Post(c.URL()+"/gpus", playwright.APIRequestContextPostOptions{
		Form: map[string]any{"model": "nvidia-h100", "zone": "cloudgouv-eu-west-1a", "name": "too late"},
	})
	must(t, err, "allocate as a stale form would")
	text, err := answer.Text()
	must(t, err, "read the answer")
	if answer.Status() != 409 || !strings.Contains(text, `data-error="no-capacity"`) || !strings.Contains(text, "too late") {
		t.Errorf("a stale choice is answered with %d, want 409 with no-capacity and the form kept", answer.Status())
	}
}

func TestResizeAnswersWhileItIsFilledIn(t *testing.T) {
	c := newConsole(t)
	p := signIn(t, c, lab.TenantA, visit{})
	vm := p.vmNamed(t, "render-lab")
	gpu := p.allocate(t, "nvidia-h100", "eu-west-2a", "fits")
	p.attach(t, gpu, vm)
	p.wantGPU(t, "attaching")
	p.visit(t, "/vms/"+vm+"/resize")
	fit := p.Locator(`.fit[data-id="` + gpu + `"]`)
	must(t, p.Locator("[name=vcores]").Fill("36"), "ask for 36 vCores")
	must(t, expect.Locator(fit.Locator(`[data-error="vm-specs-mismatch"][data-limit="vcores"]`)).ToBeVisible(), "see the limit that breaks")
	must(t, expect.Locator(p.Locator("[name=vcores]")).ToBeFocused(), "keep the focus")
	must(t, expect.Locator(p.Locator(`form#resize button.btn-primary`)).ToBeDisabled(), "see that it cannot be sent")
	must(t, p.Locator("[name=vcores]").Fill("32"), "ask for 32 vCores")
	must(t, expect.Locator(fit.Locator("[data-error]")).ToHaveCount(0), "see that it fits")
	p.choose(t, "[name=performance]", "medium")
	must(t, expect.Locator(fit.Locator(`[data-limit="performance"]`)).ToBeVisible(), "see the performance break")
	p.choose(t, "[name=performance]", "highest")
	must(t, expect.Locator(p.Locator(".becomes code")).ToHaveText("tinav7.c32r192p1"), "see the type spelled out")
	must(t, p.Locator("form#resize button.btn-primary").Click(), "resize")
	must(t, p.WaitForURL("**/vms/"+vm), "come to the VM's page")
	p.wantVM(t, "running")
	must(t, expect.Locator(p.Locator("main").GetByText("tinav7.c32r192p1").First()).ToBeVisible(), "see the new type")
}

func TestLanguageAndThemeAreRemembered(t *testing.T) {
	c := newConsole(t)
	p := signIn(t, c, lab.TenantA, visit{locale: "fr-FR"})
	p.visit(t, "/gpus")
	html := p.Locator("html")
	must(t, expect.Locator(html).ToHaveAttribute("lang", "fr"), "be spoken to as the browser asks")
	switchTo := func(button string) {
		t.Helper()
		must(t, p.Locator(".avatar").Click(), "open the menu")
		must(t, p.Locator(button).Click(), "press "+button)
	}
	switchTo(`form[action="/session/locale"] button[value="en"]`)
	must(t, expect.Locator(html).ToHaveAttribute("lang", "en"), "read English")
	must(t, expect.Page(p.Page).ToHaveURL(regexp.MustCompile("/gpus$")), "stay on the page")
	switchTo(`form[action="/session/theme"] button[value="dark"]`)
	must(t, expect.Locator(html).ToHaveAttribute("data-theme", "berth-dark"), "see the dark theme")
	_, err := p.Reload()
	must(t, err, "reload")
	must(t, expect.Locator(html).ToHaveAttribute("lang", "en"), "read English again")
	must(t, expect.Locator(html).ToHaveAttribute("data-theme", "berth-dark"), "see the dark theme again")
	must(t, p.Locator(".avatar").Click(), "open the menu")
	must(t, p.Locator(`form[action="/logout"] button`).Click(), "sign out")
	p.login(t, lab.TenantA)
	must(t, expect.Locator(html).ToHaveAttribute("lang", "en"), "read English after a new sign-in")
}

func TestRegionNarrowsEveryListAndIsRemembered(t *testing.T) {
	c := newConsole(t)
	p := signIn(t, c, lab.TenantA, visit{})
	p.allocate(t, "nvidia-l40s", "hikube-1", "far")
	p.allocate(t, "nvidia-l40", "eu-west-2a", "near")
	p.visit(t, "/gpus")
	p.wantCount(t, `main tr[data-id^="fgpu-"]`, 2)
	must(t, p.Locator(`form[action="/session/region"]`).Locator("..").Locator("summary").Click(), "open the regions")
	must(t, p.Locator(`form[action="/session/region"] button[value="hikube"]`).Click(), "choose hikube")
	p.wantCount(t, `main tr[data-id^="fgpu-"]`, 1)
	p.visit(t, "/vms")
	p.wantCount(t, `main tr[data-id^="i-"]`, 1)
	_, err := p.Reload()
	must(t, err, "reload")
	p.wantCount(t, `main tr[data-id^="i-"]`, 1)
}
