package e2e

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/playwright-community/playwright-go"

	"berth/cmd/berth/lab"
	"berth/services/compute"
	"berth/services/hostagent/sim"
)

// F14
func TestAStartThatFailsNamesItsStepAndCanBeRetried(t *testing.T) {
	c := newConsoleWith(t, setting{waits: compute.Waits{Boot: time.Second}})
	p := signIn(t, c, lab.TenantA, visit{})
	vm := p.vmNamed(t, "render-lab")
	p.visit(t, "/vms/"+vm)
	p.send(t, "/vms/"+vm+"/power", "action=stop")
	p.wantVM(t, "stopped")
	zone := c.lab.Drivers["eu-west-2a"]
	must(t, zone.FailStarts(vm, "no memory on NUMA node 1", 1000), "make its starts fail")
	p.send(t, "/vms/"+vm+"/power", "action=start")
	stuck := p.Locator(`main .progress[data-state="stuck"]`)
	must(t, expect.Locator(stuck.Locator(`[data-step="boot"][data-state="stuck"]`)).ToBeVisible(), "see which step is stuck")
	must(t, expect.Locator(stuck.GetByText("no memory on NUMA node 1")).ToBeVisible(), "read what the host says")
	p.axe(t)
	must(t, zone.FailStarts(vm, "", 0), "let it start")
	must(t, stuck.Locator(`form[action$="/retry"] button`).Click(), "retry")
	p.wantVM(t, "running")
}

// F14: the first deadline passes, the page says so by itself and offers a way out.
func TestAStepThatTakesTooLongShowsAsStuckAndCanBeCancelled(t *testing.T) {
	c := newConsoleWith(t, setting{waits: compute.Waits{Settle: time.Second}})
	p := signIn(t, c, lab.TenantA, visit{})
	vm := p.vmNamed(t, "render-lab")
	gpu := p.allocate(t, "nvidia-h100", "eu-west-2a", "held back")
	p.attach(t, gpu, vm)
	p.wantGPU(t, "attaching")
	zone := c.lab.Drivers["eu-west-2a"]
	eachCard(t, zone, func(key string) error { return zone.HoldCard(key, "python3", 4711, time.Hour) })
	p.visit(t, "/vms/"+vm)
	p.send(t, "/vms/"+vm+"/power", "action=stop-start")
	stuck := p.Locator(`main .progress[data-state="stuck"]`)
	must(t, expect.Locator(stuck.Locator(`[data-step="settle"]`)).ToBeVisible(), "see the step that is stuck")
	must(t, expect.Locator(stuck.GetByText("python3")).ToBeVisible(), "read which process holds the card")
	must(t, stuck.Locator(`form[action$="/cancel"] button`).Click(), "cancel the operation")
	must(t, expect.Locator(stuck).ToHaveCount(0), "see it gone")
	eachCard(t, zone, zone.ReleaseCard)
	p.visit(t, "/gpus/"+gpu)
	p.wantGPU(t, "attached")
}

// eachCard does something to every card of a zone.
func eachCard(t *testing.T, zone *sim.Driver, do func(key string) error) {
	t.Helper()
	hosts, err := zone.Hosts(t.Context())
	must(t, err, "list the hosts")
	for _, h := range hosts {
		seen, err := zone.Inspect(t.Context(), h)
		must(t, err, "inspect "+h)
		for _, card := range seen.Host.Cards {
			must(t, do(card.Key), "touch card "+card.Key)
		}
	}
}

// How soon a change made by an agent shows in another browser.
func TestAChangeShowsElsewhereWithin300Milliseconds(t *testing.T) {
	c := newConsole(t)
	p := signIn(t, c, lab.TenantA, visit{})
	vm := p.vmNamed(t, "render-lab")
	gpu := p.allocate(t, "nvidia-h100", "eu-west-2a", "in sight")
	p.visit(t, "/gpus/"+gpu)
	must(t, expect.Locator(p.Locator(`#live[data-live-state="live"]`)).ToBeVisible(), "see the page live")
	const seenAt = `(state) => new Promise((resolve) => {
		const look = () => document.querySelector('main .page-head [data-state="' + state + '"]') && resolve(String(Date.now()));
		new MutationObserver(look).observe(document.body, { subtree: true, childList: true, attributes: true });
		look();
	})`
	var all []time.Duration
	for range 5 {
		for _, change := range []struct {
			action string
			form   map[string]any
			state  string
		}{{"attach", map[string]any{"vm": vm}, "attaching"}, {"detach", map[string]any{}, "allocated"}} {
			_, err := p.Evaluate(`(state) => { window.seen = (`+seenAt+`)(state) }`, change.state)
			must(t, err, "watch for the change")
			began := time.Now()
			answer, err := p.Context().Request().Post(c.URL()+"/gpus/"+gpu+"/"+change.action, playwright.APIRequestContextPostOptions{
				Form: change.form, MaxRedirects: new(0),
			})
			must(t, err, "make the change")
			if answer.Status() != 303 {
				t.Fatalf("%s is answered with %d", change.action, answer.Status())
			}
			at, err := p.Evaluate(`() => window.seen`)
			must(t, err, "see the change")
			ms, err := strconv.ParseInt(fmt.Sprint(at), 10, 64)
			must(t, err, "read when the page saw it")
			took := time.UnixMilli(ms).Sub(began)
			t.Logf("%s after %v", change.state, took)
			all = append(all, took)
		}
	}
	slices.Sort(all)
	if median := all[len(all)/2]; median > 300*time.Millisecond {
		t.Errorf("half of the changes show later than %v", median)
	}
}

// F6
func TestBulkAttachIsAllOrNothing(t *testing.T) {
	c := newConsole(t)
	p := signIn(t, c, lab.TenantA, visit{})
	vm := p.vmNamed(t, "render-lab")
	l40 := p.allocate(t, "nvidia-l40", "eu-west-2a", "an L40")
	h100 := p.allocate(t, "nvidia-h100", "eu-west-2a", "an H100")
	other := p.allocate(t, "nvidia-h100", "eu-west-2a", "another H100")
	p.visit(t, "/gpus")
	tick := func(ids ...string) {
		t.Helper()
		for _, id := range ids {
			must(t, p.Locator("#tick-"+id).Check(), "tick "+id)
		}
		_, err := p.Locator("#bulk-vm").SelectOption(playwright.SelectOptionValues{Values: &[]string{vm}})
		must(t, err, "choose the VM")
		p.expectStatus(422)
		must(t, p.Locator(`.bulk button[value="attach"]`).Click(), "attach the ticked GPUs")
	}
	tick(l40, h100)
	p.wantError(t, "model-mismatch", "")
	for _, id := range []string{l40, h100} {
		must(t, expect.Locator(p.Locator("#tick-"+id)).ToBeChecked(), "see the choice kept")
		must(t, expect.Locator(p.Locator(fmt.Sprintf(`#row-%s [data-state="allocated"]`, id))).ToBeVisible(), "see nothing changed")
	}
	must(t, p.Locator("#tick-"+l40).Uncheck(), "leave the L40 out")
	tick(other)
	p.visit(t, "/gpus")
	for _, id := range []string{h100, other} {
		must(t, expect.Locator(p.Locator(fmt.Sprintf(`#row-%s [data-state="attaching"]`, id))).ToBeVisible(), "see both attaching")
	}
}

// htmx connects by itself; the console's own scripts may come after that.
func TestThePageKnowsThatItIsLiveThoughItsScriptsComeLate(t *testing.T) {
	c := newConsole(t)
	p := signIn(t, c, lab.TenantA, visit{})
	connected := make(chan struct{})
	once := sync.OnceFunc(func() { close(connected) })
	p.OnResponse(func(r playwright.Response) {
		if strings.Contains(r.URL(), "/events") && strings.HasSuffix(r.Request().Headers()["referer"], "/gpus") {
			once()
		}
	})
	must(t, p.Route("**/static/js/app.js*", func(r playwright.Route) {
		go func() {
			select {
			case <-connected:
			case <-time.After(patience * time.Millisecond):
				p.note("the stream did not connect while the scripts were missing")
			}
			_ = r.Continue()
		}()
	}), "hold the scripts back")
	p.visit(t, "/gpus")
	must(t, expect.Locator(p.Locator(`#live[data-live-state="live"]`)).ToBeVisible(), "see the page live")
}

func TestAStreamThatFailsAtFirstIsTriedAgain(t *testing.T) {
	c := newConsole(t)
	p := signIn(t, c, lab.TenantA, visit{})
	p.expectStatus(503)
	failing := 2
	must(t, p.Route("**/events*", func(r playwright.Route) {
		if failing == 0 {
			_ = r.Continue()
			return
		}
		failing--
		_ = r.Fulfill(playwright.RouteFulfillOptions{Status: new(503)})
	}), "let the stream fail twice")
	p.visit(t, "/gpus")
	must(t, expect.Locator(p.Locator(`#live[data-live-state="lost"]`)).ToBeVisible(), "see that the page is not live")
	must(t, expect.Locator(p.Locator(`#live[data-live-state="live"]`)).ToBeVisible(), "see it live again")
}
