package e2e

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/playwright-community/playwright-go"

	"berth/cmd/berth/lab"
)

func contains(text, part string) bool { return strings.Contains(text, part) }

// busy makes an account with something of everything, and lists the pages that
// show it.
func busy(t *testing.T, c *installation) (paths []string) {
	t.Helper()
	p := signIn(t, c, lab.TenantA, visit{})
	vm := p.vmNamed(t, "render-lab")
	attached := p.allocate(t, "nvidia-h100", "eu-west-2a", "training-0")
	p.attach(t, attached, vm)
	p.wantGPU(t, "attaching")
	must(t, c.lab.Drivers["eu-west-2a"].PowerOffGuest(vm), "power the guest off")
	p.wantGPU(t, "attached")
	p.visit(t, "/vms/"+vm)
	p.send(t, "/vms/"+vm+"/power", "action=start")
	p.wantVM(t, "running")
	planned := p.allocate(t, "nvidia-h100", "eu-west-2a", "training-1")
	p.attach(t, planned, vm)
	p.wantGPU(t, "attaching")
	spare := p.allocate(t, "nvidia-a100-80", "eu-west-2b", "spare")
	return []string{
		"/", "/catalog", "/catalog?compare=nvidia-h100&compare=nvidia-l40", "/catalog/nvidia-h100", "/catalog/nvidia-h200",
		"/gpus", "/gpus?state=waiting", "/gpus?q=nothing-like-it", "/gpus/new", "/gpus/new?model=nvidia-h100&zone=eu-west-2a",
		"/gpus/" + attached, "/gpus/" + planned, "/gpus/" + spare,
		"/vms", "/vms/new", "/vms/" + vm, "/vms/" + vm + "/resize", "/vms/" + vm + "/resize?type=tinav7.c36r256p1",
		"/activity", "/search?q=train", "/quotas",
	}
}

// Every page in both languages, both themes and two widths: nothing that axe or
// the browser's console has to say, nothing wider than the screen.
func TestEveryPageIsSound(t *testing.T) {
	c := newConsole(t)
	paths, operated := busy(t, c), operated(t, c)
	for _, v := range []visit{{}, {locale: "fr-FR", dark: true}, {width: 390, height: 844}, {locale: "fr-FR", width: 390, height: 844, dark: true}} {
		t.Run(fmt.Sprintf("%s dark=%v width=%d", v.locale, v.dark, v.width), func(t *testing.T) {
			p := signIn(t, c, lab.TenantA, v)
			p.areSound(t, paths)
			signIn(t, c, lab.Admin, v).areSound(t, operated)
		})
	}
}

func (p *page) areSound(t *testing.T, paths []string) {
	t.Helper()
	for _, path := range paths {
		p.visit(t, path)
		p.axe(t)
		p.fits(t)
	}
}

// operated lists the operator's pages, of a fleet in which something is wrong.
func operated(t *testing.T, c *installation) (paths []string) {
	t.Helper()
	p := signIn(t, c, lab.Admin, visit{})
	row := func(list string) string { return p.firstRow(t, list) }
	busy, odd, idle := row("/admin/hosts?q=par-a-gpu-01"), row("/admin/hosts?q=gov-lab-01"), row("/admin/hosts?q=par-b-gpu-02")
	p.visit(t, "/admin/hosts/"+idle)
	p.ask(t, "#mode-maintenance", "new fan")
	must(t, expect.Locator(p.Locator(`.head-title [data-state="maintenance"]`)).ToBeVisible(), "see the host in maintenance")
	account := row("/admin/accounts?q=Tenant+A")
	return []string{
		"/admin", "/admin/hosts", "/admin/hosts?q=nothing-like-it", "/admin/hosts/" + busy, "/admin/hosts/" + busy + "?topology=table",
		"/admin/hosts/" + odd, "/admin/hosts/" + idle, "/admin/cards", "/admin/cards/" + row("/admin/cards?state=held"),
		"/admin/cards/" + row("/admin/cards?state=quarantined"), "/admin/capacity", "/admin/accounts", "/admin/accounts/" + account,
		"/admin/quotas", "/admin/quotas?account=" + account, "/admin/catalog", "/admin/catalog/models/nvidia-l40", "/admin/catalog/models/new",
		"/admin/catalog/types/u1.2xlarge", "/admin/agents", "/admin/operations", "/admin/activity", "/search?q=par-a",
	}
}

func TestSignInAndErrorPagesAreSound(t *testing.T) {
	c := newConsole(t)
	p := newPage(t, visit{base: c.URL()})
	p.visit(t, "/login")
	p.axe(t)
	p.expectStatus(401)
	form := p.Locator(`form[action="/login"]`)
	must(t, form.Locator("[name=email]").Fill(lab.TenantA), "fill in the e-mail")
	must(t, form.Locator("[name=password]").Fill("wrong"), "fill in a wrong password")
	must(t, form.Locator("button[type=submit]").Click(), "sign in")
	must(t, expect.Locator(p.Locator(`[data-error="bad-credentials"]`)).ToBeVisible(), "see the refusal")
	must(t, expect.Locator(form.Locator("[name=email]")).ToHaveValue(lab.TenantA), "see the e-mail kept")
	p.axe(t)
	p.login(t, lab.TenantA)
	p.expectStatus(404)
	p.visit(t, "/gpus/fgpu-00000000")
	p.axe(t)
}

// fits fails the test where the page is wider than the screen, and names the
// elements that stick out.
func (p *page) fits(t *testing.T) {
	t.Helper()
	out, err := p.Evaluate(`() => {
		const width = document.documentElement.clientWidth;
		if (document.documentElement.scrollWidth <= width) return '';
		return [...document.querySelectorAll('main *')]
			.filter((e) => e.getBoundingClientRect().right > width && !e.closest('.scroll, .topology'))
			.map((e) => e.tagName + '.' + e.className).slice(-5).join(', ') || 'something';
	}`)
	must(t, err, "measure the page")
	if out != "" {
		t.Errorf("%s is wider than the screen: %v", p.URL(), out)
	}
}

// TestScreenshots takes a picture of every page for people to look at, where
// BERTH_SCREENSHOTS names a folder (make screenshots).
func TestScreenshots(t *testing.T) {
	dir := os.Getenv("BERTH_SCREENSHOTS")
	if dir == "" {
		t.Skip("make screenshots takes the pictures")
	}
	must(t, os.MkdirAll(dir, 0o755), "make the folder for pictures")
	c := newConsole(t)
	paths, operated := append(busy(t, c), "/gpus/fgpu-00000000"), operated(t, c)
	for _, v := range []visit{{}, {dark: true}, {width: 390, height: 844}, {width: 390, height: 844, dark: true}, {locale: "fr-FR"}} {
		p := signIn(t, c, lab.TenantA, v)
		p.expectStatus(404)
		for _, path := range paths {
			p.visit(t, path)
			p.picture(t, dir, v, path)
		}
		admin := signIn(t, c, lab.Admin, v)
		for _, path := range operated {
			admin.visit(t, path)
			admin.picture(t, dir, v, path)
		}
		out := newPage(t, visit{base: c.URL(), dark: v.dark, width: v.width, height: v.height, locale: v.locale})
		out.visit(t, "/login")
		out.picture(t, dir, v, "/login")
	}
}

func (p *page) picture(t *testing.T, dir string, v visit, path string) {
	t.Helper()
	name := cmp.Or(strings.NewReplacer("/", "-", "?", "-", "&", "-", "=", "-").Replace(strings.Trim(path, "/")), "overview")
	file := fmt.Sprintf("%s-%d-%v%s.png", name, cmp.Or(v.width, 1440), v.dark, v.locale)
	_, err := p.Screenshot(playwright.PageScreenshotOptions{Path: new(filepath.Join(dir, file)), FullPage: new(true)})
	must(t, err, "take a picture of "+path)
}
