package handlers_test

import (
	"bufio"
	"encoding/csv"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	"berth/services"
	"berth/services/agentapi"
	"berth/services/fleet"
)

// cardIDs lists the ids of the cards that a page lists.
func (a answer) rows() []string { return a.found("tr[data-id]", "data-id") }

func TestHostsAreListedFilteredAndPaged(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.addHost("eu-west-2a", l40, h100)
	w.addHost("hikube-1", a100)
	b := w.signIn(olga)
	for query, want := range map[string]string{
		"": "2", "?zone=hikube-1": "1", "?region=eu-west-2": "1", "?model=nvidia-h100": "1", "?q=HIKUBE": "1", "?state=accepting": "2", "?state=draining": "0",
		"?state=silent": "0", "?version=1": "2", "?version=2": "0", "?state=odd": "2", "?sort=-name": "2", "?sort=%27": "2", "?after=host-00000000": "2", "?after=x": "2",
	} {
		page := b.get("/admin/hosts" + query).wants(200)
		if got := page.found("[data-total]", "data-total"); len(got) != 1 || got[0] != want || want != "0" && len(page.rows()) == 0 {
			t.Errorf("%q: total %v with rows %v, want %s", query, got, page.rows(), want)
		}
		b.get("/fragments/admin/hosts" + query).wants(200).lacks(".sidebar")
	}
	up, down := b.get("/admin/hosts?sort=name").rows(), b.get("/admin/hosts?sort=-name").rows()
	slices.Reverse(down)
	if !slices.Equal(up, down) {
		t.Errorf("sorted by name %v, the other way round %v", up, down)
	}
}

// F10, as far as pages go: preview, confirmation, capacity at once, restoration.
func TestMaintenanceOfAHostByItsForm(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	h := w.addHost("eu-west-2a", l40, l40)
	vm := string(w.addVM(h, w.actor(alice, "Alpha", services.RoleOwner), "trainer", "u1.2xlarge"))
	b, tenant := w.signIn(olga), w.signIn(alice)
	id := b.get("/admin/hosts").rows()[0]
	page := "/admin/hosts/" + id
	b.get(page).wants(200).has(`#mode-maintenance [data-fate="stops"] [data-id="` + vm + `"]`).has(`#mode-draining [data-fate="stays"]`)

	b.post(page+"/mode", "mode", "maintenance").wants(422).has(`[data-error="required"][data-field="reason"]`)
	b.post(page+"/mode", "mode", "closed", "reason", "x").wants(422).has(`[data-error="invalid-value"]`)
	refused := b.post(page+"/mode", "mode", "maintenance", "reason", "new fan").wants(422).has(`[data-error="confirm"]`)
	refused.has(`#mode-maintenance[open] input[name="reason"][value="new fan"]`)
	tenant.get("/gpus/new?model=nvidia-l40&zone=eu-west-2a").wants(200).lacks(`[data-error="no-capacity"]`)
	b.post(page+"/mode", "mode", "maintenance", "reason", "new fan", "confirm", "true").leads(page)
	tenant.post("/gpus", "model", "nvidia-l40", "zone", "eu-west-2a").wants(409).has(`[data-error="no-capacity"]`)
	for range 3 {
		h.work()
	}
	tenant.get("/vms/" + vm).wants(200).has(`[data-state="stopped"]`).has(`[data-resumes]`)
	tenant.post("/vms/"+vm+"/power", "action", "start").wants(409).has(`[data-error="host-maintenance"]`).says("new fan")
	b.get(page).has(`[data-state="maintenance"]`).says("No machine runs here any more").says("1 machine starts again")
	b.get("/admin/cards?state=unavailable").has(`[data-total="2"]`).says("its host is in maintenance")

	b.post(page+"/mode", "mode", "accepting").leads(page)
	for range 3 {
		w.must(w.compute.TendHosts(t.Context()))
		h.work()
	}
	tenant.get("/vms/" + vm).has(`[data-state="running"]`).lacks(`[data-resumes]`)
	tenant.get("/activity").says("the operator").says("Taken off its host for maintenance: new fan")
	b.get("/admin/activity?object=" + id).has(`tr[data-state="host.maintenance"]`).has(`tr[data-state="host.accepting"]`).says(olga).says("127.0.0.1")
}

func TestSeveralHostsAreDrainedTogether(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.addHost("eu-west-2a", l40)
	w.addHost("hikube-1", a100)
	b := w.signIn(olga)
	ids := b.get("/admin/hosts").rows()
	b.header.Set("Referer", w.pages.URL+"/admin/hosts?sort=-name")
	b.post("/admin/hosts/bulk", "mode", "draining", "reason", "x").wants(422).has(`[data-error="required"]`)
	b.post("/admin/hosts/bulk", "mode", "draining", "host", ids[0], "host", ids[1]).wants(422).has(`input[name=host][value="` + ids[0] + `"][checked]`)
	b.post("/admin/hosts/bulk", "mode", "draining", "reason", "x", "host", "host-00000000").wants(404)
	to := b.post("/admin/hosts/bulk", "mode", "draining", "reason", "move", "host", ids[0], "host", ids[1]).leads("/admin/hosts")
	if to != "/admin/hosts?sort=-name" {
		t.Errorf("it leads to %s, want the list as it was", to)
	}
	b.get("/admin/hosts?state=draining").has(`[data-total="2"]`)
}

// F8 and F13 by their forms.
func TestACardsActionsByTheirForm(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	h := w.addHost("eu-west-2a", l40, l40)
	tenant, b := w.signIn(alice), w.signIn(olga)
	gpu := idIn(tenant.post("/gpus", "model", "nvidia-l40", "zone", "eu-west-2a", "name", "mine").leads("/gpus/"))
	held := b.get("/admin/cards?state=held").wants(200).has(`[data-total="1"]`).rows()[0]
	other := b.get("/admin/cards?state=free").has(`[data-total="1"]`).rows()[0]
	b.get("/admin/cards/" + held).wants(200).says("Alpha").says("mine").has(`#ask-force-release [data-impact="none"]`).has(`#holdings [data-id="` + gpu + `"]`)

	post := func(id string, fields ...string) answer { return b.post("/admin/cards/"+id+"/condition", fields...) }
	post(other, "action", "disable").wants(422).has(`[data-error="required"][data-field="reason"]`).has(`#ask-disable[open]`)
	post(other, "action", "melt", "reason", "x").wants(422).has(`[data-error="invalid-value"]`)
	post(other, "action", "enable").leads("/admin/cards/") // it is ready: nothing to do
	post(other, "action", "disable", "reason", "burn-in").leads("/admin/cards/" + other)
	b.get("/admin/cards/" + other).has(`.head-title [data-state="disabled"]`).says("burn-in").says(olga)
	tenant.post("/gpus", "model", "nvidia-l40", "zone", "eu-west-2a").wants(409).has(`[data-error="no-capacity"]`)
	post(other, "action", "enable").leads("/admin/cards/" + other)
	b.get("/admin/cards/" + other).has(`[data-enabling] time[data-time="elapsed"]`).has(`#do-retry`).has(`#do-roll-back`)
	h.work()
	b.get("/admin/cards/" + other).has(`.head-title [data-state="ready"]`)

	post(held, "action", "force-release", "reason", "left the company").wants(422).has(`[data-error="confirm"]`).
		has(`#ask-force-release[open] input[name="reason"][value="left the company"]`)
	post(held, "action", "force-release", "reason", "left the company", "confirm", held).leads("/admin/cards/" + held)
	tenant.get("/gpus/" + gpu).wants(200).has(`[data-state="released"]`).says("Taken back by the operator: left the company")
	w.signIn(bob).get("/gpus/" + gpu).wants(404)
	post(held, "action", "force-release", "reason", "again", "confirm", held).wants(409).has(`[data-error="wrong-state"]`)
	h.work()
	b.get("/admin/cards/" + held).has(`.head-title [data-state="ready"]`).has(`#holdings [data-id="` + gpu + `"]`)

	post(other, "action", "retire").wants(422).has(`[data-error="confirm"]`)
	post(other, "action", "retire", "confirm", other).leads("/admin/cards/" + other)
	b.get("/admin/cards").has(`[data-total="1"]`)
	b.get("/admin/cards?state=retired").has(`[data-total="1"] tr[data-state="retired"]`)
	b.get("/admin/cards/card-00000000").wants(404)
	b.post("/admin/cards/card-00000000/condition", "action", "disable", "reason", "x").wants(404)

	w.must(w.fleet.SetModes(t.Context(), services.Actor{Email: olga}, nil, modeOf("accepting")))
	both := b.get("/admin/cards").rows()
	b.post("/admin/cards/bulk", "action", "disable", "card", both[0], "reason", "together").leads("/admin/cards")
	b.post("/admin/cards/bulk", "action", "force-release", "card", both[0], "reason", "x").wants(409).has(`[data-error="confirm"]`)
}

// F7 and odd devices: nothing of a card breaks a page, functions count as one.
func TestOddCardsBreakNoPage(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	h := w.enrol("eu-west-2a")
	_, d := h.desired(0, "0s")
	r := h.report(d)
	r.Hosts[0].Name = `<img src=x onerror=alert(1)>`
	r.Hosts[0].Kernel = `"><script>`
	r.Hosts[0].Findings = []agentapi.Finding{{Code: `<b>`, Detail: `<i>`, Fix: `<u>`}, {Code: "iommu-off"}}
	group := 0
	r.Hosts[0].Cards = []agentapi.CardReport{
		{Key: "k1", Serial: `<s>"`, VendorID: "10de", DeviceID: "26b5", PCIAddress: "10000:e1:00.0", IOMMUGroup: &group, Parents: []string{"<p>"}, Functions: []agentapi.Function{
			{Address: "10000:e1:00.0", Class: "0300", Driver: "<d>"}, {Address: "10000:e1:00.1", Class: "0403"}, {Address: "10000:e1:00.2", Class: "<c>"}, {Address: "10000:e1:00.3", Class: ""},
		}},
		{Key: "k2", VendorID: "ffff", DeviceID: "0000", PCIAddress: "0000:01:00.7", VBIOS: strings.Repeat("v", 500)},
		{Key: strings.Repeat("k", 100), UUID: "GPU-1", VendorID: "10de", DeviceID: "2331", PCIAddress: "ffffffff:ff:00.0"},
	}
	if status, body := h.call(http.MethodPost, agentapi.PathReport, r); status != http.StatusOK {
		t.Fatalf("report: %d %s", status, body)
	}
	b := w.signIn(olga)
	ids := b.get("/admin/cards").wants(200).has(`[data-total="3"]`).rows()
	host := b.get("/admin/hosts").rows()[0]
	for _, path := range []string{
		"/admin", "/admin/hosts", "/admin/hosts/" + host, "/admin/hosts/" + host + "?topology=table", "/admin/cards/" + ids[0], "/admin/cards/" + ids[1],
		"/admin/cards/" + ids[2], "/admin/capacity", "/admin/agents", "/admin/activity", "/search?q=ser", "/fragments/palette?q=img", "/admin/cards?model=none",
	} {
		page := b.get(path).wants(200)
		if page.Find("main img, main b, main i, main u, main script, main s, main d, main p p").Length() > 0 {
			t.Errorf("%s takes a text for HTML", path)
		}
	}
	b.get("/admin/hosts/" + host).has(`[data-check="iommu-off"][data-ok="false"]`)
	if n := b.get("/admin/hosts/" + host).Find("a.t-card").Length(); n != 3 {
		t.Errorf("the picture has %d cards, want 3", n)
	}
}

// F4: 0, 5 and unlimited read the same on every page.
func TestAQuotaReadsTheSameEverywhere(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.addHost("eu-west-2a", l40, l40)
	b, tenant := w.signIn(olga), w.signIn(alice)
	alpha := string(w.accounts["Alpha"])
	tenant.post("/gpus", "model", "nvidia-l40", "zone", "eu-west-2a").leads("/gpus/")
	row := `tr[data-account="` + alpha + `"][data-region="eu-west-2"][data-model="nvidia-l40"]`
	for _, c := range []struct{ limit, shown, state string }{{"5", "5", "open"}, {"0", "0", "full"}, {"unlimited", "unlimited", "unlimited"}, {"1", "1", "full"}} {
		b.post("/admin/quotas", "account", alpha, "region", "eu-west-2", "model", "nvidia-l40", "limit", c.limit).leads("/admin/quotas")
		for _, page := range []answer{b.get("/admin/quotas"), b.get("/admin/accounts/" + alpha), tenant.get("/quotas")} {
			page.wants(200).has(row + `[data-state="` + c.state + `"] [data-limit="` + c.shown + `"]`)
			if used := page.Find(row + " [data-used]").Text(); used != "1" {
				t.Errorf("%s: %q in use, want 1", page.what, used)
			}
		}
	}
	tenant.post("/gpus", "model", "nvidia-l40", "zone", "eu-west-2a").wants(422).has(`[data-error="quota-exceeded"]`)
	for _, c := range [][]string{
		{"account", "acc-00000000", "region", "eu-west-2", "model", "nvidia-l40", "limit", "1"}, {"account", alpha, "region", "mars", "model", "nvidia-l40", "limit", "1"},
		{"account", alpha, "region", "eu-west-2", "model", "voodoo", "limit", "1"}, {"account", alpha, "region", "eu-west-2", "model", "nvidia-l40", "limit", "-1"},
		{"account", alpha, "region", "eu-west-2", "model", "nvidia-l40", "limit", "many"}, {"account", alpha, "region", "eu-west-2", "model", "nvidia-l40", "limit", "1.5"},
		{"account", alpha, "region", "eu-west-2", "model", "nvidia-l40", "limit", "99999999999999999999"}, {},
	} {
		refused := b.post("/admin/quotas", c...).wants(422).has("#set-quota[open]")
		if len(c) > 0 && refused.Find(`#set-quota input[name="limit"]`).AttrOr("value", "") != c[7] {
			t.Errorf("%v: what was typed is lost", c)
		}
	}
	b.post("/admin/quotas", "account", alpha, "region", "eu-west-2", "resource", "vms", "limit", "0").leads("/admin/quotas")
	tenant.get("/quotas").has(`tr[data-model="vms"][data-state="none"] [data-limit="0"]`)
	tenant.post("/vms", "name", "x", "zone", "eu-west-2a", "type", "u1.small").wants(422).has(`[data-error="quota-exceeded"][data-limit="vms"]`)
	w.signIn(bob).get("/quotas").wants(200).lacks(`tr[data-account="` + alpha + `"]`)
}

func TestAccountsAreOpenedSuspendedAndStaffed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.addHost("eu-west-2a", l40)
	b, tenant := w.signIn(olga), w.signIn(alice)
	page := b.post("/admin/accounts", "name", " Gamma ", "email", bob).leads("/admin/accounts/acc-")
	b.get(page).wants(200).says("Gamma").has(`[data-id="` + bob + `"]`)
	b.post("/admin/accounts", "name", "gamma").wants(422).has(`[data-error="taken"]`).has(`#open-account[open] input[name="name"][value="gamma"]`)
	b.post("/admin/accounts", "name", "").wants(422).has(`[data-error="required"]`)
	b.post("/admin/accounts", "name", strings.Repeat("é", 101)).wants(422).has(`[data-error="too-long"]`)
	b.post("/admin/accounts", "name", "Delta", "email", "nobody@example.test").wants(422).has(`[data-error="invalid-value"][data-field="email"]`)
	b.post(page+"/members", "email", bob, "role", "").wants(409).has(`[data-error="last-owner"]`)
	b.post(page+"/members", "email", vera, "role", "owner").leads(page)
	b.post(page+"/members", "email", bob, "role", "").leads(page)
	b.post(page+"/members", "email", vera, "role", "king").wants(422).has(`[data-error="invalid-value"]`)
	b.get(page).lacks(`[data-id="` + bob + `"]`)

	alpha := "/admin/accounts/" + string(w.accounts["Alpha"])
	b.post(alpha+"/state", "action", "suspend").wants(422).has(`[data-error="required"]`)
	b.post(alpha+"/state", "action", "explode").wants(422).has(`[data-error="invalid-value"]`)
	b.post(alpha+"/state", "action", "suspend", "reason", "unpaid").leads(alpha)
	tenant.get("/gpus").wants(200).has("[data-suspended]").says("unpaid").lacks(`a[href^="/gpus/new"]`)
	tenant.post("/gpus", "model", "nvidia-l40", "zone", "eu-west-2a").wants(403).says("suspended")
	b.get("/admin/accounts?state=suspended").has(`[data-total="1"] tr[data-state="suspended"]`)
	b.post(alpha+"/state", "action", "resume").leads(alpha)
	tenant.post("/gpus", "model", "nvidia-l40", "zone", "eu-west-2a").leads("/gpus/")
	b.get("/admin/accounts/acc-00000000").wants(404)
	b.post("/admin/accounts/acc-00000000/state", "action", "suspend", "reason", "x").wants(404)
}

func TestAgentsJoinAndLeaveByTheirPage(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	h := w.addHost("eu-west-2a", l40)
	b := w.signIn(olga)
	made := b.post("/admin/agents/tokens", "zone", "eu-west-2a").wants(200)
	secret := made.found("[data-token]", "data-token")
	if len(secret) != 1 || !strings.HasPrefix(secret[0], "berth-enrol-v1.") {
		t.Fatalf("the token is %v", secret)
	}
	again := b.get("/admin/agents").wants(200).lacks("[data-token]")
	if strings.Contains(again.body, secret[0]) || strings.Contains(w.log.String(), secret[0]) {
		t.Error("the secret is shown twice, or logged")
	}
	id := again.found(".found li[data-id]", "data-id")
	b.post("/admin/agents/tokens", "zone", "mars").wants(422).has(`[data-error="invalid-value"][data-field="zone"]`).has("#new-token[open]")
	b.post("/admin/agents/tokens", "zone", "eu-west-2a", "life", "a while").wants(422).has(`[data-field="life"]`)
	b.post("/admin/agents/tokens/" + id[0] + "/revoke").leads("/admin/agents")
	b.post("/admin/agents/tokens/x/revoke").wants(404)
	b.get("/admin/agents").lacks(".found li[data-id]")

	b.post("/admin/agents/"+h.cert.AgentID+"/revoke", "confirm", "true").leads("/admin/agents")
	b.get("/admin/agents?state=revoked").has(`[data-total="1"] tr[data-state="revoked"]`)
	if status, _ := h.call(http.MethodPost, agentapi.PathReport, agentapi.Report{Epoch: 9, Sequence: 1}); status != http.StatusUnauthorized {
		t.Errorf("a revoked agent gets %d, want 401", status)
	}
}

func TestOperatorsSeeAndMoveEveryOperation(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	h := w.addHost("eu-west-2a", l40)
	vm := string(w.addVM(h, w.actor(alice, "Alpha", services.RoleOwner), "trainer", "u1.2xlarge"))
	w.signIn(alice).post("/vms/"+vm+"/power", "action", "stop").leads("/vms/")
	b := w.signIn(olga)
	list := b.get("/admin/operations?state=open").wants(200).has(`[data-total="1"]`).says("Alpha").says("trainer")
	id := list.rows()[0]
	b.get("/admin/operations?q=TRAINER&account=" + string(w.accounts["Alpha"])).has(`tr[data-state="running"]`)
	b.get("/admin/operations?state=failed").has(`[data-total="0"]`)
	b.post("/admin/operations/" + id + "/cancel").leads("/admin/operations")
	b.get("/admin/operations?state=cancelled").has(`tr[data-id="` + id + `"]`)
	b.post("/admin/operations/op-00000000/retry").wants(404)
}

func TestTheLogIsFilteredAndExported(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.addHost("eu-west-2a", l40)
	gpu := idIn(w.signIn(alice).post("/gpus", "model", "nvidia-l40", "zone", "eu-west-2a", "name", `=cmd|'"`).leads("/gpus/"))
	w.signIn(alice).post("/gpus/"+gpu+"/rename", "name", "-calc").leads("/gpus/")
	b := w.signIn(olga)
	for query, want := range map[string]bool{
		"": true, "?object=" + gpu: true, "?q=" + gpu: true, "?actor=" + alice: true, "?q=" + alice: true, "?state=gpu": true, "?account=" + string(w.accounts["Alpha"]): true,
		"?actor=" + bob: false, "?object=fgpu-00000000": false, "?object=odd": false, "?state=account": false, "?from=2999-01-01": false, "?until=2001-01-01": false,
		"?from=2001-01-01&until=2999-01-01": true, "?state=odd": true, "?after=x": true, "?after=1": true,
	} {
		page := b.get("/admin/activity" + query).wants(200)
		if got := page.Find("tr[data-id]").Length() > 0; got != want {
			t.Errorf("%q lists something: %v, want %v", query, got, want)
		}
	}
	b.get("/admin/activity?from=yesterday").wants(200).has(`[data-error="invalid-value"][data-field="from"]`)
	b.get("/admin/activity/export.csv?from=yesterday").wants(422)

	file := b.get("/admin/activity/export.csv?object=" + gpu).wants(200)
	if d := file.Header.Get("Content-Disposition"); !strings.HasPrefix(d, `attachment; filename="berth-activity-`) {
		t.Errorf("the file is %q", d)
	}
	lines, err := csv.NewReader(strings.NewReader(file.body)).ReadAll()
	w.must(err)
	if len(lines) != 3 || lines[0][0] != "id" || lines[1][2] != "gpu.renamed" || lines[1][3] != alice || lines[1][4] != "127.0.0.1" || lines[2][6] != gpu {
		t.Errorf("the file holds %q", lines)
	}
	scan := bufio.NewScanner(strings.NewReader(b.get("/admin/activity/export.jsonl?actor=" + alice).wants(200).body))
	n := 0
	for ; scan.Scan(); n++ {
		var line struct {
			Kind, Actor, Address string
			Data                 map[string]any
		}
		if err := json.Unmarshal(scan.Bytes(), &line); err != nil || line.Actor != alice || line.Address == "" {
			t.Errorf("line %d: %+v, %v", n, line, err)
		}
	}
	if n != 2 {
		t.Errorf("%d lines, want 2", n)
	}
	w.signIn(alice).get("/admin/activity/export.csv").wants(403)
}

func TestTheCatalogueIsEditedByItsForms(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	h := w.addHost("eu-west-2a", l40)
	tenant, b := w.signIn(alice), w.signIn(olga)
	vm := w.addVM(h, w.actor(alice, "Alpha", services.RoleOwner), "trainer", "u1.2xlarge")
	gpu := idIn(tenant.post("/gpus", "model", "nvidia-l40", "zone", "eu-west-2a").leads("/gpus/"))
	tenant.post("/gpus/"+gpu+"/attach", "vm", string(vm)).leads("/")
	b.get("/admin/catalog").wants(200).has(`tr[data-id="nvidia-l40"] [data-region="eu-west-2"]`).has(`tr[data-id="u1.large"]`)
	model := "/admin/catalog/models/nvidia-l40"
	page := b.get(model).wants(200)
	version := page.Find(`#offer-eu-west-2 input[name="version"]`).AttrOr("value", "")
	offer := func(fields ...string) answer {
		return b.post(model+"/offers", append([]string{"region", "eu-west-2", "offered", "true", "generations", "v7"}, fields...)...)
	}
	offer("max_vcores", "lots").wants(422).has(`[data-error="invalid-value"]`).has(`#offer-eu-west-2 input[name="max_vcores"][value="lots"]`)
	offer("max_vcores", "4", "version", version).wants(422).has(`[data-error="misfits"]`).has(`[data-misfits] [data-id="` + string(vm) + `"]`)
	offer("max_vcores", "4", "version", version, "hourly_price", "2,5", "confirm", "true").leads(model)
	tenant.get("/gpus/" + gpu).has(`[data-state="attaching"]`)
	offer("max_vcores", "5", "version", version).wants(409).has(`[data-error="stale"]`).has(`#offer-eu-west-2 input[name="max_vcores"][value="5"]`)
	b.get("/admin/catalog").says("€2.50")

	b.get("/admin/catalog/models/new").wants(200)
	b.post("/admin/catalog/models", "id", "Big One", "vram", "x").wants(422).has(`input[name="id"][value="Big One"]`)
	b.post("/admin/catalog/models", "id", "nvidia-b200", "memory_gb", "192", "pci_ids", "10DE:2901, 10de:2920").leads("/admin/catalog/models/nvidia-b200")
	b.get("/admin/catalog").has(`tr[data-id="nvidia-b200"]`)
	b.post("/admin/catalog/models/nvidia-b200/delete").leads("/admin/catalog")
	b.post(model + "/delete").wants(409).has(`[data-error="in-use"]`)
	b.get("/admin/catalog/models/none").wants(404)
	b.post("/admin/catalog/models/none/offers", "region", "eu-west-2").wants(404)

	b.get("/admin/catalog/types/new").wants(200)
	b.post("/admin/catalog/types", "name", "u9.huge", "vcores", "64", "memory", "0.5").leads("/admin/catalog")
	b.get("/admin/catalog/types/u9.huge").wants(200).has(`input[name="memory"][value="0.5"]`)
	b.post("/admin/catalog/types", "name", "tinav7.c8r32", "vcores", "1", "memory", "1").wants(422).has(`[data-error="invalid-value"][data-field="name"]`)
	b.post("/admin/catalog/types/u9.huge", "vcores", "0", "memory", "NaN").wants(422)
	b.post("/admin/catalog/types/u9.huge/delete").leads("/admin/catalog")
	b.post("/admin/catalog/types/u1.2xlarge/delete").wants(409).has(`[data-error="in-use"]`)
	b.get("/admin/catalog/types/none").wants(404)
}

func TestThePaletteAndTheSearchShowEachWhatIsTheirs(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	h := w.addHost("eu-west-2a", l40)
	vm := string(w.addVM(h, w.actor(alice, "Alpha", services.RoleOwner), "trainer", "u1.2xlarge"))
	gpu := idIn(w.signIn(alice).post("/gpus", "model", "nvidia-l40", "zone", "eu-west-2a", "name", "mine").leads("/gpus/"))
	a, theirs, b := w.signIn(alice), w.signIn(bob), w.signIn(olga)
	a.get("/fragments/palette").wants(200).has(`[role="option"][href="/gpus/new"]`).lacks(`[href="/admin/hosts"]`)
	a.get("/fragments/palette?q=train").has(`[data-id="` + vm + `"][href="/vms/` + vm + `"]`)
	theirs.get("/fragments/palette?q=train").wants(200).lacks(`[data-id="` + vm + `"]`)
	b.get("/fragments/palette").has(`[href="/admin/hosts"]`).lacks(`[href="/gpus/new"]`)
	for _, q := range []string{"train", vm, "mine", gpu, "eu-west-2a-0", "0000:3b:00.0", "host-eu", "alph"} {
		if b.get("/fragments/palette?q="+q).wants(200).Find("[data-id]").Length() == 0 {
			t.Errorf("an operator finds nothing by %q", q)
		}
	}
	card := b.get("/admin/cards").rows()[0]
	host := b.get("/admin/hosts").rows()[0]
	for q, to := range map[string]string{
		card: "/admin/cards/" + card, host: "/admin/hosts/" + host, gpu: "/admin/cards/" + card, vm: "/admin/hosts/" + host, "eu-west-2a-0": "/admin/cards/" + card,
		string(w.accounts["Alpha"]): "/admin/accounts/" + string(w.accounts["Alpha"]),
	} {
		if got := b.get("/search?q=" + q).leads("/"); got != to {
			t.Errorf("an operator's search for %q leads to %s, want %s", q, got, to)
		}
	}
	b.get("/search?q=eu-west").wants(200).has(`[data-fleet="host"]`)
	if got := a.get("/search?q=" + gpu).leads("/"); got != "/gpus/"+gpu {
		t.Errorf("a tenant's search leads to %s", got)
	}
	for _, q := range []string{card, host, "host-eu", "eu-west-2a-0"} {
		theirs.get("/search?q=" + q).wants(200).lacks("[data-fleet]").lacks(`main [data-id]`)
	}
	theirs.get("/fragments/palette?q=%25").wants(200)
	w.visitor().get("/fragments/palette").leads("/login")
}

func TestCapacityIsShownByZoneAndModel(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.addHost("eu-west-2a", l40, l40, h100, "ffff")
	w.must(w.fleet.Sample(t.Context()))
	w.signIn(alice).post("/gpus", "model", "nvidia-l40", "zone", "eu-west-2a").leads("/gpus/")
	b := w.signIn(olga)
	page := b.get("/admin/capacity").wants(200).has(".trend-area")
	page.has(`.heat-cell[data-model="nvidia-l40"][data-free="1"][data-held="1"][data-unavailable="0"][data-total="2"]`)
	page.has(`.heat-cell[data-model=""][data-unavailable="1"] [data-why="needs_review"][href="/admin/cards?model=none&state=needs_review&zone=eu-west-2a"]`)
	page.has(`tr[data-model="nvidia-h100"] [data-size="1"]`)
	b.get("/admin/capacity?range=30d&zone=hikube-1").wants(200).lacks(".heat-cell").has(`a[aria-current][href="/admin/capacity?zone=hikube-1&range=30d"]`)
	b.get("/admin/capacity?range=forever").wants(200)
	b.get("/fragments/admin/capacity").wants(200).lacks(".sidebar")
}

func modeOf(mode services.HostMode) fleet.NewMode { return fleet.NewMode{Mode: mode} }
