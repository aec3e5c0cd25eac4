package e2e

import (
	"fmt"
	"regexp"
	"testing"
	"time"

	"github.com/playwright-community/playwright-go"

	"berth/cmd/berth/lab"
	"berth/services/agentapi"
	"berth/services/hostagent/sim"
)

// firstRow gives the id of a list's first row.
func (p *page) firstRow(t *testing.T, list string) string {
	t.Helper()
	p.visit(t, list)
	id, err := p.Locator("main tr[data-id]").First().GetAttribute("data-id")
	must(t, err, "find a row of "+list)
	return id
}

// ask opens a form of the page that asks before it does something, gives the
// reason, agrees to what it says and sends it.
func (p *page) ask(t *testing.T, panel, reason string) {
	t.Helper()
	box := p.Locator(panel)
	must(t, box.Locator("summary").Click(), "open "+panel)
	if reason != "" {
		must(t, box.Locator("[name=reason]").Fill(reason), "give the reason")
	}
	n, err := box.Locator("[name=confirm][type=checkbox]").Count()
	must(t, err, "look for what to agree to")
	if n > 0 {
		must(t, box.Locator("[name=confirm]").Check(), "agree")
	}
	must(t, box.Locator("button[type=submit]").Click(), "send "+panel)
}

func (p *page) sees(t *testing.T, selector string) {
	t.Helper()
	must(t, expect.Locator(p.Locator(selector).First()).ToBeVisible(), "see "+selector)
}

func (p *page) wantTotal(t *testing.T, n int) {
	t.Helper()
	p.sees(t, fmt.Sprintf(`main [data-total="%d"]`, n))
}

// F10: one machine with a GPU, one without; maintenance and its end, both seen
// live by operator and tenant.
func TestAHostGoesIntoMaintenanceAndEverythingComesBack(t *testing.T) {
	for _, v := range []visit{{}, {locale: "fr-FR", dark: true, width: 390, height: 844}, {noScripts: true}} {
		t.Run(fmt.Sprintf("%s scripts=%v", v.locale, !v.noScripts), func(t *testing.T) {
			c := newConsole(t)
			tenant, p := signIn(t, c, lab.TenantB, visit{}), signIn(t, c, lab.Admin, v)
			vm := tenant.vmNamed(t, "batch-1")
			gpu := tenant.allocate(t, "nvidia-l40", "eu-west-2a", "busy")
			tenant.attach(t, gpu, vm)
			tenant.wantGPU(t, "attaching")
			must(t, c.lab.Drivers["eu-west-2a"].PowerOffGuest(vm), "power the guest off")
			tenant.wantGPU(t, "attached")
			tenant.visit(t, "/vms/"+vm)
			tenant.send(t, "/vms/"+vm+"/power", "action=start")
			tenant.wantVM(t, "running")

			p.visit(t, "/admin/cards/"+p.firstRow(t, "/admin/cards?q="+gpu))
			must(t, p.Locator(`main a[href^="/admin/hosts/host-"]`).First().Click(), "go to the card's host")
			p.sees(t, `#mode-maintenance`)
			host := p.path(t)
			must(t, expect.Locator(p.Locator(`#mode-draining [data-fate="stays"] [data-id="`+vm+`"]`)).ToHaveCount(1), "find that a drain leaves it")
			must(t, expect.Locator(p.Locator(`#mode-maintenance [data-fate="stops"] [data-id="`+vm+`"]`)).ToHaveCount(1), "find that maintenance stops it")
			p.ask(t, "#mode-maintenance", "new fan")
			p.sees(t, `.head-title [data-state="maintenance"]`)
			tenant.wantVM(t, "stopped") // live, without a reload
			tenant.sees(t, `[data-resumes]`)
			p.visit(t, host)
			p.ask(t, "#mode-accepting", "")
			p.sees(t, `.head-title [data-state="accepting"]`)
			tenant.wantVM(t, "running")
			tenant.visit(t, "/gpus/"+gpu)
			tenant.wantGPU(t, "attached")
		})
	}
}

// cardBy gives the driver's key of a host's card: the one at a PCI address, or
// the first where none is given.
func cardBy(t *testing.T, zone *sim.Driver, host, address string) string {
	t.Helper()
	seen, err := zone.Inspect(t.Context(), host)
	must(t, err, "inspect "+host)
	for _, c := range seen.Host.Cards {
		if address == "" || c.PCIAddress == address {
			return c.Key
		}
	}
	t.Fatalf("%s has no card at %q", host, address)
	return ""
}

// F8: a process holds the card that is to be enabled.
func TestEnablingACardThatAProcessHolds(t *testing.T) {
	c := newConsoleWith(t, setting{prepare: 3 * time.Second})
	p := signIn(t, c, lab.Admin, visit{})
	card := p.firstRow(t, "/admin/cards?q=par-a-gpu-03&state=free")
	p.visit(t, "/admin/cards/"+card)
	address, err := p.Locator("main .crumbs [aria-current]").TextContent()
	must(t, err, "read the card's address")
	zone := c.lab.Drivers["eu-west-2a"]
	key := cardBy(t, zone, "par-a-gpu-03", address)
	must(t, zone.HoldCard(key, "nv-hostengine", 4711, time.Hour), "hold the card")
	p.ask(t, "#ask-disable", "burn-in")
	p.sees(t, `.head-title [data-state="disabled"]`)
	must(t, p.Locator("#do-enable button").Click(), "enable it")
	p.sees(t, `[data-enabling] time[data-time="elapsed"]`)
	must(t, expect.Locator(p.Locator("[data-enabling]")).ToContainText("nv-hostengine"), "read who holds it")
	must(t, expect.Locator(p.Locator("[data-enabling]")).ToContainText("4711"), "read its pid")
	p.axe(t)
	p.sees(t, `[data-enabling][data-tone="bad"]`) // the deadline passes; the page says so by itself
	p.axe(t)
	must(t, p.Locator("#do-roll-back button").Click(), "roll back")
	p.sees(t, `.head-title [data-state="disabled"]`)
	must(t, p.Locator("#do-enable button").Click(), "enable it again")
	p.sees(t, `[data-enabling]`)
	must(t, expect.Locator(p.Locator("[data-enabling]")).ToContainText("nv-hostengine"), "read again who holds it")
	must(t, p.Locator("#do-retry button").Click(), "retry, though it is held still")
	must(t, expect.Locator(p.Locator("#happenings")).ToContainText("tried again"), "see that it was tried again")
	must(t, zone.ReleaseCard(key), "let the card go")
	p.sees(t, `.head-title [data-state="ready"]`)
	p.visit(t, "/admin/cards?q=par-a-gpu-03")
	must(t, expect.Locator(p.Locator(`main tr[data-state="ready"]`)).ToHaveCount(4), "see the others unaffected")
}

// F12, with the cards of a fleet.
func TestAListOfManyRowsKeepsItsPlace(t *testing.T) {
	c := newConsoleWith(t, setting{hosts: 40, cards: 8})
	p := signIn(t, c, lab.Admin, visit{})
	p.visit(t, "/admin/cards")
	p.wantTotal(t, 320)
	next := func() {
		t.Helper()
		here := p.path(t)
		must(t, p.Locator("main a[rel=next]").Click(), "turn the page")
		must(t, expect.Page(p.Page).Not().ToHaveURL(exactly(here)), "come to another page")
	}
	next()
	first := p.tickOne(t)
	next()
	second := p.tickOne(t)
	must(t, expect.Locator(p.Locator("[data-count]")).ToContainText("2"), "see two ticked")

	must(t, p.Locator(`main [data-state-filter="unavailable"]`).Click(), "filter to what is out")
	p.wantTotal(t, 0)
	must(t, p.Locator(`main [data-state-filter="free"]`).Click(), "filter to what is free")
	p.wantTotal(t, 320)
	must(t, expect.Page(p.Page).ToHaveURL(regexp.MustCompile(`state=free$`)), "find the filter in the address, and page one")
	must(t, p.Locator("main thead a.sorter").First().Click(), "sort by the first column")
	must(t, expect.Page(p.Page).ToHaveURL(regexp.MustCompile(`sort=.*state=free|state=free.*sort=`)), "find both in the address")
	sorted := p.path(t)
	next()
	_, err := p.GoBack()
	must(t, err, "go back")
	must(t, expect.Page(p.Page).ToHaveURL(exactly(sorted)), "come back to the sorted list")

	p.visit(t, "/admin/cards")
	zone := c.lab.Drivers["eu-west-2a"]
	must(t, zone.RemoveCard(cardBy(t, zone, "eu-west-2a-gpu-0001", "")), "pull a card out")
	p.sees(t, `main [data-state-filter="missing"] .pill-count:text-is("1")`) // live
	must(t, expect.Locator(p.Locator("[data-count]")).ToContainText("2"), "see two ticked still")
	must(t, p.Locator("#bulk-reason").Fill("recall"), "give a reason")
	must(t, p.Locator(`.bulk button[value="disable"]`).Click(), "disable the ticked cards")
	for _, id := range []string{first, second} {
		p.visit(t, "/admin/cards/"+id)
		p.sees(t, `.head-title [data-state="disabled"]`)
	}
}

// exactly matches an address by its path and query alone.
func exactly(path string) *regexp.Regexp {
	return regexp.MustCompile("^https?://[^/]+" + regexp.QuoteMeta(path) + "$")
}

// tickOne ticks the first row of the page.
func (p *page) tickOne(t *testing.T) (id string) {
	t.Helper()
	box := p.Locator("main .row-check").First()
	id, err := box.GetAttribute("value")
	must(t, err, "read the row's id")
	must(t, box.Check(), "tick "+id)
	return id
}

// F13: the member who holds a GPU has left.
func TestAGPUIsTakenBackWithATypedConfirmation(t *testing.T) {
	c := newConsole(t)
	tenant, p := signIn(t, c, lab.TenantA, visit{}), signIn(t, c, lab.Admin, visit{})
	gpu := tenant.allocate(t, "nvidia-l40", "eu-west-2a", "left behind")
	card := p.firstRow(t, "/admin/cards?q="+gpu)
	p.visit(t, "/admin/cards/"+card)
	p.expectStatus(422)
	must(t, p.Locator("#ask-force-release summary").Click(), "open the form")
	must(t, p.Locator("#ask-force-release [name=reason]").Fill("left the company"), "give the reason")
	must(t, p.Locator("#ask-force-release [name=confirm]").Fill("yes"), "name something else")
	must(t, p.Locator("#ask-force-release button[type=submit]").Click(), "try to take it back")
	p.wantError(t, "confirm", "")
	must(t, expect.Locator(p.Locator("#ask-force-release [name=reason]")).ToHaveValue("left the company"), "see the reason kept")
	p.axe(t)
	must(t, p.Locator("#ask-force-release [name=confirm]").Fill(card), "name the card")
	must(t, p.Locator("#ask-force-release button[type=submit]").Click(), "take it back")
	must(t, expect.Locator(p.Locator("#ask-force-release")).ToHaveCount(0), "see it gone")
	tenant.sees(t, `main [data-state="released"]`)
	must(t, expect.Locator(tenant.Locator("main").GetByText("left the company").First()).ToBeVisible(), "read why")
	p.sees(t, `.head-title [data-state="ready"]`)
}

// F9
func TestAHostThatIsNotReadyOffersNothing(t *testing.T) {
	c := newConsole(t)
	p := signIn(t, c, lab.Admin, visit{})
	host := p.firstRow(t, "/admin/hosts?state=not-ready")
	p.visit(t, "/admin/hosts/"+host)
	p.sees(t, `[data-check="nouveau-bound"][data-ok="false"] code`)
	p.visit(t, "/admin/cards?host="+host+"&state=free")
	p.wantTotal(t, 0)
	must(t, c.lab.Drivers["cloudgouv-eu-west-1a"].SetFinding("gov-gpu-03", agentapi.Finding{Code: agentapi.FindingNouveauBound, OK: true}), "blacklist nouveau")
	p.wantTotal(t, 4) // live
}

func TestThePaletteFindsAnything(t *testing.T) {
	c := newConsole(t)
	p := signIn(t, c, lab.Admin, visit{})
	p.visit(t, "/admin/capacity")
	p.sees(t, `#live[data-live-state="live"]`)
	must(t, p.Keyboard().Press("Control+k"), "open the palette")
	field := p.Locator("#palette input")
	must(t, expect.Locator(field).ToBeFocused(), "see the palette open")
	p.sees(t, `#palette [role=option]`)
	p.axe(t)
	must(t, field.Fill("par-a-gpu-01"), "type a host's name")
	must(t, expect.Locator(p.Locator(`#palette [role=option][aria-selected=true]`)).ToContainText("par-a-gpu-01"), "see it chosen")
	p.axe(t)
	must(t, p.Keyboard().Press("Enter"), "go there")
	must(t, p.WaitForURL("**/admin/hosts/host-*"), "come to the host")
	serial, err := p.Locator(".topology a.t-card").First().GetAttribute("href")
	must(t, err, "find one of its cards")
	must(t, p.Keyboard().Press("Control+k"), "open the palette again")
	must(t, field.Fill(serial[len("/admin/cards/"):]), "type a card's id")
	must(t, expect.Locator(p.Locator(`#palette [role=option][aria-selected=true]`)).ToHaveAttribute("href", serial), "see it chosen")
	must(t, p.Keyboard().Press("Escape"), "close it")
	must(t, expect.Locator(p.Locator("#palette")).ToBeHidden(), "see it closed")
	must(t, p.Keyboard().Press("Control+k"), "open it once more")
	must(t, field.Fill("no such thing"), "type what nothing is called")
	p.sees(t, "#palette .palette-none")
	p.axe(t)
}

// F4, the accounts and the catalogue, by their forms, with and without scripts.
func TestOperatorsKeepTheBooks(t *testing.T) {
	for _, v := range []visit{{}, {noScripts: true}} {
		t.Run(fmt.Sprintf("scripts=%v", !v.noScripts), func(t *testing.T) {
			c := newConsole(t)
			p := signIn(t, c, lab.Admin, v)
			p.visit(t, "/admin/accounts")
			open := p.Locator("#open-account")
			must(t, open.Locator("summary").Click(), "open the form")
			must(t, open.Locator("[name=name]").Fill("Harbour"), "name the account")
			must(t, open.Locator("[name=email]").Fill(lab.TenantB), "name its owner")
			must(t, open.Locator("button[type=submit]").Click(), "open the account")
			must(t, p.WaitForURL("**/admin/accounts/acc-*"), "come to the account")
			account := regexp.MustCompile("acc-[0-9a-f]{8}").FindString(p.path(t))
			p.limit(t, "0")
			p.limit(t, "5")
			p.limit(t, "unlimited")
			p.expectStatus(422)
			p.fillLimit(t, "some")
			p.wantError(t, "invalid-value", "")
			must(t, expect.Locator(p.Locator("#set-quota [name=limit]")).ToHaveValue("some"), "see what was typed")
			p.visit(t, "/admin/accounts/"+account)
			p.ask(t, "#suspend", "unpaid")
			p.sees(t, `.head-title .chip[data-tone="bad"]`)
			p.price(t)
		})
	}
}

// limit sets the quota of L40s on the account's page, and sees it there.
func (p *page) limit(t *testing.T, limit string) {
	t.Helper()
	p.fillLimit(t, limit)
	p.sees(t, `tr[data-model="nvidia-l40"][data-region="eu-west-2"] [data-limit="`+limit+`"]`)
}

func (p *page) fillLimit(t *testing.T, limit string) {
	t.Helper()
	form := p.Locator("#set-quota")
	must(t, form.Locator("summary").Click(), "open the form")
	for name, value := range map[string]string{"region": "eu-west-2", "model": "nvidia-l40"} {
		_, err := form.Locator("[name=" + name + "]").SelectOption(playwright.SelectOptionValues{Values: &[]string{value}})
		must(t, err, "choose "+value)
	}
	must(t, form.Locator("[name=limit]").Fill(limit), "type the limit")
	must(t, form.Locator("button[type=submit]").Click(), "set it")
}

// price changes what an L40 costs, and is refused a price that is none.
func (p *page) price(t *testing.T) {
	t.Helper()
	p.visit(t, "/admin/catalog/models/nvidia-l40")
	offer := p.Locator("#offer-eu-west-2")
	must(t, offer.Locator("[name=hourly_price]").Fill("much"), "type what is no price")
	must(t, offer.Locator("button[type=submit]").Click(), "save")
	p.wantError(t, "invalid-value", "")
	must(t, expect.Locator(offer.Locator("[name=hourly_price]")).ToHaveValue("much"), "see what was typed")
	must(t, offer.Locator("[name=hourly_price]").Fill("1.25"), "type a price")
	must(t, offer.Locator("button[type=submit]").Click(), "save")
	p.wantCount(t, "main [data-error]", 0)
	p.visit(t, "/admin/catalog")
	must(t, expect.Locator(p.Locator(`tr[data-id="nvidia-l40"] [data-region="eu-west-2"]`)).ToContainText("1.25"), "see the price")
}

func TestATokenIsShownOnceAndLetsAnAgentIn(t *testing.T) {
	c := newConsole(t)
	p := signIn(t, c, lab.Admin, visit{})
	p.visit(t, "/admin/agents")
	must(t, p.Locator("#new-token summary").Click(), "open the form")
	must(t, p.Locator("#new-token button[type=submit]").Click(), "make a token")
	p.sees(t, "[data-token]")
	must(t, c.lab.Drivers["eu-west-2a"].SetFinding("par-a-gpu-01", agentapi.Finding{Code: "iommu-off"}), "let the page change by itself")
	p.sees(t, `#nav`)
	must(t, expect.Locator(p.Locator("[data-token]")).ToContainText("berth-enrol-v1."), "read the command")
	p.axe(t)
	p.visit(t, "/admin/agents")
	p.wantCount(t, "[data-token]", 0)
	p.sees(t, ".found li[data-id] time[data-time=remaining]")
}
