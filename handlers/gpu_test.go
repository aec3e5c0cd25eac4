package handlers_test

import (
	"net/http"
	"strings"
	"testing"

	"berth/services"
	"berth/services/compute"
)

// actor is somebody of an account, for what a test sets up without a browser.
func (w *world) actor(email, account string, role services.Role) services.Actor {
	w.t.Helper()
	x, err := w.tenancy.SignIn(w.t.Context(), email, password)
	w.must(err)
	return services.Actor{User: x.User, Email: email, Account: w.accounts[account], Role: role}
}

// addVM makes a running VM.
func (w *world) addVM(h *host, a services.Actor, name, vmType string) services.VMID {
	w.t.Helper()
	id, err := w.compute.CreateVM(w.t.Context(), a, compute.NewVM{Name: name, Zone: h.zone, Type: vmType})
	w.must(err)
	h.work()
	return id
}

// newVM is a VM of the zone that tests use most.
func newVM(name string) compute.NewVM {
	return compute.NewVM{Name: name, Zone: "eu-west-2a", Type: "u1.2xlarge"}
}

func idIn(path string) string { return path[strings.LastIndex(path, "/")+1:] }

func TestAGPUIsAllocatedAttachedDetachedAndReleasedByForms(t *testing.T) {
	w := newWorld(t)
	h := w.addHost("eu-west-2a", l40, h100)
	b := w.signIn(alice)
	vm := w.addVM(h, w.actor(alice, "Alpha", services.RoleOwner), "trainer", "u1.2xlarge")

	page := b.post("/gpus", "model", "nvidia-l40", "zone", "eu-west-2a", "name", "first", "delete_on_vm_deletion", "true").leads("/gpus/fgpu-")
	b.get(page).wants(200).has(`[data-id="` + idIn(page) + `"]`).has(`[data-state="allocated"]`).has(`[data-delete-on-vm-deletion="true"]`).says("first")

	b.post(page+"/attach", "vm", string(vm)).leads(page)
	b.get(page).has(`[data-state="attaching"]`).has(`[data-pending="attaching"]`)
	b.post(page+"/attach", "vm", string(vm), "back", "/vms/"+string(vm)).leads("/vms/" + string(vm))
	b.post(page+"/attach", "vm", string(vm), "back", "https://elsewhere.test/vms").leads("/")
	h.work() // a running machine is not interrupted
	b.get(page).has(`[data-state="attaching"]`)

	b.post("/vms/"+string(vm)+"/power", "action", "stop").leads("/vms/" + string(vm))
	h.work()
	h.work()
	b.get(page).has(`[data-state="attached"]`)

	b.post(page + "/detach").leads(page)
	h.work()
	b.get(page).has(`[data-state="allocated"]`)
	b.post(page+"/rename", "name", "second").leads(page)
	b.post(page + "/on-deletion").leads(page)
	b.get(page).says("second").has(`[data-delete-on-vm-deletion="false"]`)
	b.post(page + "/release").leads(page)
	b.get(page).wants(200).lacks(`[data-state="allocated"]`).says("second")
	b.get("/gpus").lacks(`[data-id="` + idIn(page) + `"]`)
}

func TestBrokenRulesComeBackWithTheFormAndWhatWasFilledIn(t *testing.T) {
	w := newWorld(t)
	h := w.addHost("eu-west-2a", l40)
	b := w.signIn(alice)
	form := func(status int, fields ...string) answer { return b.post("/gpus", fields...).wants(status) }

	form(422, "zone", "eu-west-2a", "name", "kept").has(`[data-error="required"][data-field="model"]`).has(`input[name=name][value=kept]`)
	form(422, "model", "nvidia-l40s", "zone", "eu-west-2a").has(`[data-error="not-offered"]`)
	form(422, "model", "nvidia-l40", "zone", "eu-west-2a", "generation", "v6").has(`[data-error="invalid-value"]`)
	form(422, "model", "nvidia-l40", "zone", "eu-west-2a", "delete_on_vm_deletion", "maybe").has(`[data-error="invalid-value"]`)
	form(409, "model", "nvidia-h100", "zone", "eu-west-2a", "name", "late").has(`[data-error="no-capacity"]`).
		has(`input[name=model][value=nvidia-h100][checked]`).has(`input[name=zone][value=eu-west-2a][checked]`)

	gpu := b.post("/gpus", "model", "nvidia-l40", "zone", "eu-west-2a").leads("/gpus/")
	small := w.addVM(h, w.actor(alice, "Alpha", services.RoleOwner), "wide", "tinav7.c40r300p2")
	a := b.post(gpu+"/attach", "vm", string(small)).wants(422)
	for _, limit := range []string{"performance", "vcores", "memory"} {
		a.has(`[data-error="vm-specs-mismatch"][data-limit="` + limit + `"]`)
	}
	b.post(gpu + "/attach").wants(422).has(`[data-error="required"]`)
	b.post(gpu + "/detach").wants(409).has(`[data-error="wrong-state"]`)
	b.post(gpu+"/rename", "name", strings.Repeat("x", 101)).wants(422).has(`[data-error="too-long"]`)
}

func TestARepeatUnderTheSameKeyGetsTheFirstAnswer(t *testing.T) {
	w := newWorld(t)
	w.addHost("eu-west-2a", l40, l40, l40)
	b := w.signIn(alice)
	send := func(key string) answer {
		return b.post("/gpus", "model", "nvidia-l40", "zone", "eu-west-2a", "idempotency_key", key)
	}
	first, again, other := send("k1").leads("/gpus/"), send("k1").leads("/gpus/"), send("k2").leads("/gpus/")
	if first != again || first == other {
		t.Errorf("got %s, %s for the same key and %s for another", first, again, other)
	}
	b.post("/gpus", "model", "nvidia-l40", "zone", "eu-west-2a", "name", "else", "idempotency_key", "k1").wants(422).has(`[data-error="key-reused"]`)

	id := idIn(first)
	release := func() answer { return b.post("/gpus/bulk", "action", "release", "gpu", id, "idempotency_key", "k3") }
	release().leads("/gpus")
	release().leads("/gpus")
	if n := b.get("/gpus").Find(`tr[data-id]`).Length(); n != 1 {
		t.Errorf("%d GPUs are listed, want 1", n)
	}
}

func TestWhatIsAnotherAccountsIsNotFound(t *testing.T) {
	w := newWorld(t)
	h := w.addHost("eu-west-2a", l40, l40)
	owner, other := w.signIn(alice), w.signIn(bob)
	gpu := owner.post("/gpus", "model", "nvidia-l40", "zone", "eu-west-2a").leads("/gpus/")
	vm := "/vms/" + string(w.addVM(h, w.actor(alice, "Alpha", services.RoleOwner), "mine", "u1.large"))
	own := other.post("/gpus", "model", "nvidia-l40", "zone", "eu-west-2a").leads("/gpus/")

	for _, path := range []string{gpu, "/fragments" + gpu, "/gpus/fgpu-00000000", "/gpus/nonsense", "/nowhere"} {
		other.get(path).wants(404)
	}
	for _, action := range []string{"/attach", "/detach", "/release", "/rename", "/on-deletion"} {
		other.post(gpu+action, "vm", idIn(vm), "name", "stolen").wants(404)
	}
	other.post(own+"/attach", "vm", idIn(vm)).wants(404)
	other.post("/gpus/bulk", "action", "release", "gpu", idIn(gpu)).wants(404)
	other.get("/gpus").lacks(`[data-id="` + idIn(gpu) + `"]`)
	owner.get(gpu).has(`[data-state="allocated"]`)
}

func TestBulkActionsAreAllOrNothingWhereTheyAttach(t *testing.T) {
	w := newWorld(t)
	h := w.addHost("eu-west-2a", l40, l40, h100)
	b := w.signIn(alice)
	vm := string(w.addVM(h, w.actor(alice, "Alpha", services.RoleOwner), "trainer", "u1.2xlarge"))
	var ids []string
	for _, model := range []string{"nvidia-l40", "nvidia-l40", "nvidia-h100"} {
		ids = append(ids, idIn(b.post("/gpus", "model", model, "zone", "eu-west-2a").leads("/gpus/")))
	}
	bulk := func(action string, gpus ...string) answer {
		fields := []string{"action", action, "vm", vm}
		for _, id := range gpus {
			fields = append(fields, "gpu", id)
		}
		return b.post("/gpus/bulk", fields...)
	}
	bulk("attach", ids...).wants(422).has(`[data-error="model-mismatch"]`).
		has(`input[name=gpu][value="` + ids[0] + `"][checked]`).has(`option[value="` + vm + `"][selected]`)
	b.get("/gpus?state=allocated").has(`tr[data-id="` + ids[0] + `"]`)
	bulk("attach", ids[:2]...).leads("/vms/" + vm)
	if n := b.get("/gpus?state=waiting").Find("tr[data-id]").Length(); n != 2 {
		t.Errorf("%d GPUs wait, want 2", n)
	}
	bulk("detach", ids...).wants(409).has(`[data-error="wrong-state"]`) // the third is attached to nothing
	bulk("release", ids...).leads("/gpus")
	bulk("sell", ids...).wants(422).has(`[data-error="invalid-value"]`)
	bulk("release").wants(422).has(`[data-error="required"]`)
}

func TestTheListIsFilteredSortedAndPagedByItsAddress(t *testing.T) {
	w := newWorld(t)
	w.addHost("eu-west-2a", l40, l40, h100)
	b := w.signIn(alice)
	for name, model := range map[string]string{"beech": "nvidia-l40", "ash": "nvidia-l40", "cedar": "nvidia-h100"} {
		b.post("/gpus", "model", model, "zone", "eu-west-2a", "name", name).leads("/gpus/")
	}
	names := func(path string) string {
		var all []string
		for _, n := range b.get(path).wants(200).Find("tr[data-id] a.row-name").EachIter() {
			all = append(all, n.Text())
		}
		return strings.Join(all, " ")
	}
	for path, want := range map[string]string{
		"/gpus?sort=name":                   "ash beech cedar",
		"/gpus?sort=-name":                  "cedar beech ash",
		"/gpus?sort=-name&model=nvidia-l40": "beech ash",
		"/gpus?q=eDa":                       "cedar",
		"/gpus?state=attached":              "",
		"/gpus?sort=name&state=nonsense":    "ash beech cedar",
		"/gpus?zone=eu-west-2b":             "",
	} {
		if got := names(path); got != want {
			t.Errorf("%s: got %q, want %q", path, got, want)
		}
	}
	b.post("/session/region", "region", "hikube", "back", "/gpus").leads("/gpus")
	if got := names("/gpus"); got != "" {
		t.Errorf("in another region: got %q, want nothing", got)
	}
}

func TestTheAllocationFormNarrows(t *testing.T) {
	w := newWorld(t)
	w.addHost("eu-west-2a", l40)
	b := w.signIn(alice)
	b.get("/gpus/new?model=nvidia-l40&zone=eu-west-2a").wants(200).
		has(`form[action="/gpus"]`).has(`input[name=idempotency_key][value]`).has(`input[name=model][value=nvidia-l40][checked]`)
	f := b.get("/fragments/gpus/new?model=nvidia-l40").wants(200).lacks("html nav").
		has(`input[name=zone][value=eu-west-2a]:not([disabled])`).has(`input[name=zone][value=hikube-1][disabled]`)
	f.lacks(`input[name=model][value=nvidia-h200]`) // comes built in only
	f.has(`input[name=model][value=nvidia-h100][disabled]`)
}

// The catalogue shows all regions, so its links may lead out of the one looked at.
func TestTheAllocationFormOffersWhatTheCatalogueLeadsTo(t *testing.T) {
	w := newWorld(t)
	w.addHost("eu-west-2a", l40)
	b := w.signIn(alice)
	b.post("/session/region", "region", "hikube", "back", "/catalog").leads("/catalog")
	b.get("/gpus/new").wants(200).lacks(`input[name=model][value=nvidia-l40]`).lacks(`input[name=zone][value=eu-west-2a]`)
	to := b.get("/catalog").wants(200).Find(`#model-nvidia-l40 a[href^="/gpus/new"]`).AttrOr("href", "")
	b.get(to).wants(200).has(`input[name=model][value=nvidia-l40][checked]`).has(`input[name=zone][value=eu-west-2a][checked]`)
	b.get("/gpus/new?model=nvidia-l40").wants(200).has(`input[name=model][value=nvidia-l40][checked]`).has(`input[name=zone][value=eu-west-2a]`)
	b.get("/gpus/new?model=nvidia-h200").wants(200).lacks(`input[name=zone][value=eu-west-2a]`) // comes built in only
}

func TestViewersSeeAndChangeNothing(t *testing.T) {
	w := newWorld(t)
	w.addHost("eu-west-2a", l40)
	gpu := w.signIn(alice).post("/gpus", "model", "nvidia-l40", "zone", "eu-west-2a").leads("/gpus/")
	b := w.signIn(vera)
	b.get(gpu).wants(200).has(`[data-state="allocated"]`).lacks(`form[action="` + gpu + `/release"]`)
	b.post(gpu + "/release").wants(http.StatusForbidden)
	b.post("/gpus", "model", "nvidia-l40", "zone", "eu-west-2a").wants(http.StatusForbidden)
	b.get("/gpus/new").wants(http.StatusForbidden)
}
