package e2e

import (
	"fmt"
	"testing"

	"github.com/playwright-community/playwright-go"

	"berth/cmd/berth/lab"
)

func TestTenantBerthsAGPUInARunningVM(t *testing.T) {
	for _, v := range []visit{{locale: "en-GB"}, {locale: "fr-FR", dark: true, width: 390, height: 844}} {
		t.Run(v.locale, func(t *testing.T) {
			c := newConsole(t)
			p := signIn(t, c, lab.TenantA, v)
			p.visit(t, "/catalog")
			must(t, expect.Locator(p.Locator(`main [data-id="nvidia-h100"]`).First()).ToBeVisible(), "see the H100 in the catalogue")
			vm := p.vmNamed(t, "render-lab")
			berth(t, p, vm)
		})
	}
}

func TestTenantBerthsAGPUWithoutScripts(t *testing.T) {
	c := newConsole(t)
	p := signIn(t, c, lab.TenantA, visit{noScripts: true})
	vm := p.vmNamed(t, "render-lab")
	gpu := p.allocate(t, "nvidia-h100", "eu-west-2a", "plain")
	p.attach(t, gpu, vm)
	p.wantGPU(t, "attaching")
	p.visit(t, "/vms/"+vm)
	p.send(t, "/vms/"+vm+"/power", "action=stop")
	p.reloadUntil(t, "/vms/"+vm, "stopped")
	p.reloadUntil(t, "/gpus/"+gpu, "attached")
	p.visit(t, "/vms/"+vm)
	p.send(t, "/vms/"+vm+"/power", "action=start")
	p.reloadUntil(t, "/vms/"+vm, "running")
	p.visit(t, "/gpus/"+gpu)
	p.send(t, "/gpus/"+gpu+"/detach", "")
	p.wantGPU(t, "detaching")
	p.send(t, "/vms/"+vm+"/power", "action=stop-start")
	p.reloadUntil(t, "/gpus/"+gpu, "allocated")
	p.send(t, "/gpus/"+gpu+"/release", "")
	must(t, expect.Locator(p.Locator("main .page-head [data-state]").First()).Not().ToHaveAttribute("data-state", "allocated"), "see the GPU released")
}

// reloadUntil reloads a page until it shows a state, as somebody without
// scripts would.
func (p *page) reloadUntil(t *testing.T, path, state string) {
	t.Helper()
	shown := p.Locator(`main .page-head [data-state="` + state + `"]`)
	for range 200 {
		p.visit(t, path)
		n, err := shown.Count()
		must(t, err, "look for the state "+state)
		if n > 0 {
			return
		}
	}
	t.Fatalf("%s never shows the state %s", path, state)
}

// berth is the main job from a running VM to the release of the GPU, every
// change seen live.
func berth(t *testing.T, p *page, vm string) {
	t.Helper()
	gpu := p.allocate(t, "nvidia-h100", "eu-west-2a", "training-1")
	p.wantGPU(t, "allocated")
	p.attach(t, gpu, vm)
	p.wantGPU(t, "attaching")
	p.visit(t, "/vms/"+vm)
	p.send(t, "/vms/"+vm+"/power", "action=stop")
	p.wantVM(t, "stopped")
	must(t, expect.Locator(p.Locator(fmt.Sprintf(`main [data-id=%q] [data-state="attached"]`, gpu)).First()).ToBeVisible(), "see the GPU attached")
	p.send(t, "/vms/"+vm+"/power", "action=start")
	p.wantVM(t, "running")
	p.resize(t, vm, "tinav7.c32r256p1")
	p.wantVM(t, "running")
	must(t, expect.Locator(p.Locator("main").GetByText("tinav7.c32r256p1").First()).ToBeVisible(), "see the new type")
	p.visit(t, "/gpus/"+gpu)
	p.wantGPU(t, "attached")
	p.send(t, "/gpus/"+gpu+"/detach", "")
	p.wantGPU(t, "detaching")
	p.send(t, "/vms/"+vm+"/power", "action=stop-start")
	p.wantVM(t, "running")
	p.visit(t, "/gpus/"+gpu)
	p.wantGPU(t, "allocated")
	p.send(t, "/gpus/"+gpu+"/release", "")
	p.visit(t, "/gpus")
	must(t, expect.Locator(p.Locator(fmt.Sprintf(`main [data-id=%q]`, gpu))).ToHaveCount(0), "see the list without the GPU")
}

// resize types a type's parts into the form, asks for the restart, and waits
// until the VM is resized.
func (p *page) resize(t *testing.T, vm, typ string) {
	t.Helper()
	p.visit(t, "/vms/"+vm+"/resize?type="+typ)
	p.send(t, "/vms/"+vm+"/resize", "")
	must(t, p.WaitForURL("**/vms/"+vm), "wait for the VM's page")
	must(t, expect.Locator(p.Locator("main").GetByText(typ).First()).ToBeVisible(), "see the type "+typ)
}

// F5
func TestBothPlansCanBeCancelledAndRebootsChangeNothing(t *testing.T) {
	c := newConsole(t)
	p := signIn(t, c, lab.TenantA, visit{})
	vm := p.vmNamed(t, "api-blue")
	gpu := p.allocate(t, "nvidia-l40", "eu-west-2a", "changing")
	p.attach(t, gpu, vm)
	p.wantGPU(t, "attaching")
	p.send(t, "/gpus/"+gpu+"/detach", "")
	p.wantGPU(t, "allocated")
	p.attach(t, gpu, vm)
	p.wantGPU(t, "attaching")
	p.visit(t, "/vms/"+vm)
	p.send(t, "/vms/"+vm+"/power", "action=reboot")
	must(t, expect.Locator(p.Locator("main").GetByText("Rebooted").First()).ToBeVisible(), "see the reboot")
	p.visit(t, "/gpus/"+gpu)
	p.wantGPU(t, "attaching")
	must(t, c.lab.Drivers["eu-west-2a"].PowerOffGuest(vm), "power the guest off")
	p.wantGPU(t, "attached") // live, without a reload
	p.visit(t, "/vms/"+vm)
	p.wantVM(t, "stopped")
	p.send(t, "/vms/"+vm+"/power", "action=start")
	p.wantVM(t, "running")
	p.visit(t, "/gpus/"+gpu)
	p.send(t, "/gpus/"+gpu+"/detach", "")
	p.wantGPU(t, "detaching")
	p.send(t, "/gpus/"+gpu+"/attach", "")
	p.wantGPU(t, "attached")
}

func TestRefusedResizeNamesEveryLimitAndKeepsTheForm(t *testing.T) {
	c := newConsole(t)
	p := signIn(t, c, lab.TenantA, visit{})
	vm := p.vmNamed(t, "render-lab")
	gpu := p.allocate(t, "nvidia-h100", "eu-west-2a", "fits")
	p.attach(t, gpu, vm)
	p.wantGPU(t, "attaching")
	p.visit(t, "/vms/"+vm+"/resize?type=tinav6.c36r300p2")
	for _, limit := range []string{"performance", "vcores", "memory", "generation"} {
		p.wantError(t, "vm-specs-mismatch", limit)
	}
	answer, err := p.Context().Request().Post(c.URL()+"/vms/"+vm+"/resize", playwright.APIRequestContextPostOptions{
		Form: map[string]any{"type": "tinav6.c36r300p2", "restart": "true"},
	})
	must(t, err, "send the resize as a script would")
	if answer.Status() != 422 {
		t.Errorf("a refused resize is answered with %d, want 422", answer.Status())
	}
	p.visit(t, "/vms/"+vm)
	must(t, expect.Locator(p.Locator("main").GetByText("tinav7.c24r192p1").First()).ToBeVisible(), "see the type unchanged")
}

func TestChangeShowsInAnotherBrowser(t *testing.T) {
	c := newConsole(t)
	one, other := signIn(t, c, lab.TenantA, visit{}), signIn(t, c, lab.TenantA, visit{locale: "fr-FR"})
	vm := one.vmNamed(t, "render-lab")
	gpu := one.allocate(t, "nvidia-h100", "eu-west-2a", "seen twice")
	other.visit(t, "/gpus/"+gpu)
	other.wantGPU(t, "allocated")
	one.attach(t, gpu, vm)
	other.wantGPU(t, "attaching")
	must(t, c.lab.Drivers["eu-west-2a"].PowerOffGuest(vm), "power the guest off")
	other.wantGPU(t, "attached")
	one.wantGPU(t, "attached")
}

func TestSessionGoneLeadsToTheSignIn(t *testing.T) {
	c := newConsole(t)
	p := signIn(t, c, lab.TenantA, visit{})
	gpu := p.allocate(t, "nvidia-l40", "eu-west-2a", "left open")
	cookies, err := p.Context().Cookies()
	must(t, err, "read the cookies")
	for _, k := range cookies {
		if k.Name == "berth_session" {
			must(t, c.Tenancy.SignOut(t.Context(), k.Value), "end the session elsewhere")
		}
	}
	must(t, p.WaitForURL("**/login**"), "wait for the sign-in")
	p.login(t, lab.TenantA)
	must(t, p.WaitForURL("**/gpus/"+gpu), "come back to the page that was left")
}

// F15
func TestDoubleSubmitByKeyboardAllocatesOnce(t *testing.T) {
	c := newConsole(t)
	p := signIn(t, c, lab.TenantA, visit{})
	p.visit(t, "/gpus/new?model=nvidia-l40&zone=eu-west-2a")
	name := p.form(t, "/gpus", "").Locator("[name=name]")
	must(t, name.Fill("once only"), "name the GPU")
	must(t, name.Press("Enter"), "press Enter")
	_ = name.Press("Enter", playwright.LocatorPressOptions{Timeout: new(float64(500))}) // the page may have gone by now
	must(t, p.WaitForURL("**/gpus/fgpu-*"), "wait for the GPU's page")
	_, err := p.Reload()
	must(t, err, "reload the result")
	p.visit(t, "/gpus?q=once")
	must(t, expect.Locator(p.Locator(`main [data-id^="fgpu-"]`)).ToHaveCount(1), "see one GPU")
}

// F6 and F11
func TestPickerDisablesWhatCannotBeWithItsReason(t *testing.T) {
	c := newConsole(t)
	p := signIn(t, c, lab.TenantA, visit{})
	vm, slow, apart := p.vmNamed(t, "render-lab"), p.vmNamed(t, "web-01"), p.vmNamed(t, "vault")
	first := p.allocate(t, "nvidia-l40", "eu-west-2a", "first")
	p.attach(t, first, vm)
	p.wantGPU(t, "attaching")
	second := p.allocate(t, "nvidia-h100", "eu-west-2a", "second")
	for _, id := range []string{vm, slow, apart} {
		must(t, expect.Locator(p.Locator(fmt.Sprintf(`[name=vm][value=%q]`, id))).ToBeDisabled(), "see "+id+" disabled")
	}
	p.expectStatus(422)
	answer, err := p.Context().Request().Post(c.URL()+"/gpus/"+second+"/attach", playwright.APIRequestContextPostOptions{Form: map[string]any{"vm": vm}})
	must(t, err, "attach as a stale form would")
	text, err := answer.Text()
	must(t, err, "read the answer")
	if answer.Status() != 422 || !contains(text, `data-error="model-mismatch"`) {
		t.Errorf("a stale choice is answered with %d, want 422 with model-mismatch", answer.Status())
	}
}

// F2
func TestStopSaysThatGPUsStayReserved(t *testing.T) {
	c := newConsole(t)
	p := signIn(t, c, lab.TenantA, visit{})
	vm := p.vmNamed(t, "render-lab")
	gpu := p.allocate(t, "nvidia-h100", "eu-west-2a", "kept")
	p.attach(t, gpu, vm)
	p.wantGPU(t, "attaching")
	must(t, c.lab.Drivers["eu-west-2a"].PowerOffGuest(vm), "power the guest off")
	p.wantGPU(t, "attached")
	p.visit(t, "/vms/"+vm)
	p.send(t, "/vms/"+vm+"/power", "action=start")
	p.wantVM(t, "running")
	stop := p.form(t, "/vms/"+vm+"/power", "action=stop")
	must(t, expect.Locator(stop.GetByText("reserved").First()).ToBeVisible(), "read that the GPU stays reserved")
}

func TestOtherTenantsObjectsAreNotFound(t *testing.T) {
	c := newConsole(t)
	a, b := signIn(t, c, lab.TenantA, visit{}), signIn(t, c, lab.TenantB, visit{})
	vm, gpu := a.vmNamed(t, "render-lab"), a.allocate(t, "nvidia-h100", "eu-west-2a", "mine")
	b.expectStatus(404)
	for _, path := range []string{"/gpus/" + gpu, "/vms/" + vm, "/vms/" + vm + "/resize"} {
		answer, err := b.Goto(path)
		must(t, err, "go to "+path)
		if answer.Status() != 404 {
			t.Errorf("%s of another tenant is answered with %d, want 404", path, answer.Status())
		}
	}
}
