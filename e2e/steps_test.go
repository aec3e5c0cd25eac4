package e2e

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/playwright-community/playwright-go"
)

// expect waits for what a page is to show.
var expect = playwright.NewPlaywrightAssertions(patience)

// signIn opens a tab whose user has signed in.
func signIn(t *testing.T, c *installation, email string, v visit) *page {
	t.Helper()
	v.base = c.URL()
	p := newPage(t, v)
	p.visit(t, "/login")
	p.login(t, email)
	return p
}

var beyondLogin = regexp.MustCompile(`^http://[^/]+/(?:[^l].*)?$`)

func (p *page) login(t *testing.T, email string) {
	t.Helper()
	form := p.Locator(`form[action="/login"]`)
	must(t, form.Locator("[name=email]").Fill(email), "fill in the e-mail")
	must(t, form.Locator("[name=password]").Fill(password), "fill in the password")
	must(t, form.Locator("button[type=submit]").Click(), "sign in")
	must(t, p.WaitForURL(beyondLogin), "wait for the page after the sign-in")
}

var idInPath = regexp.MustCompile(`/(fgpu-[0-9a-f]{8}|i-[0-9a-f]{8})`)

// objectID is the id of the object whose page the tab shows.
func (p *page) objectID(t *testing.T) string {
	t.Helper()
	m := idInPath.FindStringSubmatch(p.path(t))
	if m == nil {
		t.Fatalf("%s is no object's page", p.path(t))
	}
	return m[1]
}

// form finds the form of an action, and of a hidden or chosen value in it where
// one is named ("action=stop"); closed panels around it are opened.
func (p *page) form(t *testing.T, action, value string) playwright.Locator {
	t.Helper()
	inner := p.Locator(fmt.Sprintf(`form[action=%q]`, action))
	if value != "" {
		name, wanted, _ := strings.Cut(value, "=")
		inner = inner.Filter(playwright.LocatorFilterOptions{Has: p.Locator(fmt.Sprintf(`[name=%s][value=%q]`, name, wanted))})
	}
	f := p.Locator("main").Locator(inner).First()
	must(t, f.WaitFor(playwright.LocatorWaitForOptions{State: playwright.WaitForSelectorStateAttached}), "find the form "+action+" "+value)
	closed := p.Locator("main details:not([open])").Filter(playwright.LocatorFilterOptions{Has: inner})
	for range 3 {
		n, err := closed.Count()
		must(t, err, "look for closed panels")
		if n == 0 {
			break
		}
		must(t, closed.First().Locator("summary").First().Click(), "open the panel around "+action)
	}
	return f
}

// send sends a form as it is.
func (p *page) send(t *testing.T, action, value string) {
	t.Helper()
	must(t, p.form(t, action, value).Locator("button[type=submit]:not([disabled])").First().Click(), "send "+action+" "+value)
}

// allocate fills in and sends the form that allocates a GPU.
func (p *page) allocate(t *testing.T, model, zone, name string) (id string) {
	t.Helper()
	p.visit(t, fmt.Sprintf("/gpus/new?model=%s&zone=%s", model, zone))
	form := p.form(t, "/gpus", "")
	must(t, form.Locator("[name=name]").Fill(name), "name the GPU")
	must(t, form.Locator("button[type=submit]").Last().Click(), "allocate")
	must(t, p.WaitForURL(regexp.MustCompile(`/gpus/fgpu-`)), "wait for the GPU's page")
	return p.objectID(t)
}

// vmNamed gives the id of a VM of the list.
func (p *page) vmNamed(t *testing.T, name string) string {
	t.Helper()
	p.visit(t, "/vms?q="+name)
	row := p.Locator(`main [data-id^="i-"]`).First()
	id, err := row.GetAttribute("data-id")
	must(t, err, "find the VM "+name)
	return id
}

// attach chooses a VM on the GPU's page.
func (p *page) attach(t *testing.T, gpu, vm string) {
	t.Helper()
	p.visit(t, "/gpus/"+gpu)
	form := p.form(t, "/gpus/"+gpu+"/attach", "")
	must(t, form.Locator(fmt.Sprintf(`[name=vm][value=%q]`, vm)).Check(), "choose the VM")
	must(t, form.Locator("button[type=submit]").Click(), "attach")
}

// wantGPU waits until the GPU's page shows a state.
func (p *page) wantGPU(t *testing.T, state string) {
	t.Helper()
	must(t, expect.Locator(p.Locator(`main .page-head [data-state="`+state+`"]`).First()).ToBeVisible(), "see the GPU "+state)
}

// wantVM waits until the VM's page shows a power state.
func (p *page) wantVM(t *testing.T, state string) { p.wantGPU(t, state) }

// wantError waits for a broken rule on the page.
func (p *page) wantError(t *testing.T, code, limit string) {
	t.Helper()
	selector := fmt.Sprintf(`main [data-error=%q]`, code)
	if limit != "" {
		selector += fmt.Sprintf(`[data-limit=%q]`, limit)
	}
	must(t, expect.Locator(p.Locator(selector).First()).ToBeVisible(), "see the error "+code+" "+limit)
}
