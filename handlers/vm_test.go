package handlers_test

import (
	"strings"
	"testing"

	"berth/services"
)

func TestAVMIsMadeRunStoppedAndDeletedByForms(t *testing.T) {
	w := newWorld(t)
	h := w.addHost("eu-west-2a", l40)
	b := w.signIn(alice)
	b.get("/vms/new").wants(200).has(`form[action="/vms"] [name=name]`).has("[name=zone]").has("[name=type]").has("[name=tenancy]").has("[name=image]")

	page := b.post("/vms", "name", "trainer", "zone", "eu-west-2a", "type", "tinav7.c8r32p1", "tenancy", "default", "image", "debian-12").leads("/vms/i-")
	b.get(page).wants(200).has(`[data-id="` + idIn(page) + `"]`).says("trainer").says("tinav7.c8r32p1")
	h.work()
	b.get(page).has(`[data-state="running"]`)
	b.get("/vms").has(`tr[data-id="` + idIn(page) + `"]`)
	b.get("/vms?power=stopped").lacks(`tr[data-id="` + idIn(page) + `"]`)

	b.post(page+"/power", "action", "start").wants(409).has(`[data-error="wrong-state"]`)
	b.post(page+"/power", "action", "explode").wants(422).has(`[data-error="invalid-value"]`)
	b.post(page + "/power").wants(422).has(`[data-error="required"]`)
	b.post(page+"/power", "action", "reboot").leads(page)
	b.post(page+"/power", "action", "start").wants(409).has(`[data-error="busy"]`)
	h.work()
	b.post(page+"/power", "action", "stop").leads(page)
	h.work()
	b.get(page).has(`[data-state="stopped"]`)
	b.get("/vms?power=stopped").has(`tr[data-id="` + idIn(page) + `"]`)
	b.post(page + "/delete").leads(page)
	b.get(page).wants(200).says("trainer")
	b.get("/vms").lacks(`tr[data-id="` + idIn(page) + `"]`)
	b.post(page + "/delete").wants(409).has(`[data-error="wrong-state"]`)
}

func TestAVMFormKeepsWhatWasFilledIn(t *testing.T) {
	w := newWorld(t)
	w.addHost("eu-west-2a", l40)
	b := w.signIn(alice)
	a := b.post("/vms", "name", "kept", "type", "tinav7.c8", "ssh_key", "ssh-ed25519 AAAA kept").wants(422)
	a.has(`[data-error="invalid-type"]`).has(`[data-error="required"][data-field="zone"]`).has(`[name=name][value=kept]`).has(`[name=type][value="tinav7.c8"]`)
	if got := a.Find("[name=ssh_key]").Text(); !strings.Contains(got, "AAAA kept") {
		t.Errorf("the key is %q", got)
	}
	b.post("/vms", "name", "huge", "zone", "eu-west-2a", "type", "tinav7.c1000r1").wants(409).has(`[data-error="no-capacity"]`)
	b.post("/vms", "name", "x", "zone", "eu-west-2a", "type", "u1.large", "tenancy", "shared").wants(422).has(`[data-error="invalid-value"]`)
	first := b.post("/vms", "name", "x", "zone", "eu-west-2a", "type", "u1.large", "idempotency_key", "k").leads("/vms/")
	if again := b.post("/vms", "name", "x", "zone", "eu-west-2a", "type", "u1.large", "idempotency_key", "k").leads("/vms/"); again != first {
		t.Errorf("a repeat made %s beside %s", again, first)
	}
}

func TestAResizeAnswersForEachGPU(t *testing.T) {
	w := newWorld(t)
	h := w.addHost("eu-west-2a", l40, l40)
	b := w.signIn(alice)
	vm := w.addVM(h, w.actor(alice, "Alpha", services.RoleOwner), "trainer", "tinav7.c8r32p1")
	page := "/vms/" + string(vm)
	var gpus []string
	for range 2 {
		gpus = append(gpus, idIn(b.post("/gpus", "model", "nvidia-l40", "zone", "eu-west-2a").leads("/gpus/")))
	}
	b.post(page+"/gpus", "gpu", gpus[0], "gpu", gpus[1]).leads(page)
	b.get(page).has(`[data-id="` + gpus[0] + `"]`).has(`[data-id="` + gpus[1] + `"]`)

	for _, path := range []string{page + "/resize", "/fragments" + page + "/resize"} {
		a := b.get(path + "?type=tinav7.c36r256p1").wants(200)
		for _, limit := range []string{"vcores", "memory"} {
			a.has(`[data-error="vm-specs-mismatch"][data-limit="` + limit + `"]`)
		}
		a.has(`[data-id="` + gpus[0] + `"]`).has(`[data-id="` + gpus[1] + `"]`).says("tinav7.c35r250p1")
		b.get(path + "?type=tinav7.c35r250p1").wants(200).lacks(`[data-error="vm-specs-mismatch"]`)
	}
	b.post(page+"/resize", "type", "tinav7.c36r32p1", "restart", "true").wants(422).
		has(`[data-error="vm-specs-mismatch"][data-limit="vcores"]`).has(`[name=type][value="tinav7.c36r32p1"]`)
	b.post(page+"/resize", "type", "tinav7.c35r250p1").wants(422).has(`[data-error="vm-running"]`)
	b.post(page+"/resize", "type", "nonsense").wants(422).has(`[data-error="invalid-type"]`)
	b.post(page+"/resize", "type", "tinav7.c35r250p1", "restart", "true").leads(page)
	for range 4 {
		h.work()
	}
	b.get(page).says("tinav7.c35r250p1").has(`[data-state="running"]`)
	b.get("/gpus/" + gpus[0]).has(`[data-state="attached"]`)
}

func TestAVMOfAnotherAccountIsNotFound(t *testing.T) {
	w := newWorld(t)
	h := w.addHost("eu-west-2a", l40)
	page := "/vms/" + string(w.addVM(h, w.actor(alice, "Alpha", services.RoleOwner), "mine", "u1.large"))
	b := w.signIn(bob)
	for _, path := range []string{page, page + "/resize", "/fragments" + page, "/fragments" + page + "/resize"} {
		b.get(path).wants(404)
	}
	gpu := idIn(b.post("/gpus", "model", "nvidia-l40", "zone", "eu-west-2a").leads("/gpus/"))
	for _, action := range []string{"/power", "/gpus", "/resize", "/delete"} {
		b.post(page+action, "action", "stop", "gpu", gpu, "type", "u1.large").wants(404)
	}
	for _, action := range []string{"/retry", "/cancel"} {
		b.post("/operations/op-00000000" + action).wants(404)
	}
}

func TestAnOperationIsCancelled(t *testing.T) {
	w := newWorld(t)
	h := w.addHost("eu-west-2a", l40)
	b := w.signIn(alice)
	vm := w.addVM(h, w.actor(alice, "Alpha", services.RoleOwner), "trainer", "u1.large")
	page := "/vms/" + string(vm)
	b.post(page+"/power", "action", "stop").leads(page)
	d, err := w.compute.VM(t.Context(), w.accounts["Alpha"], vm)
	w.must(err)
	op := "/operations/" + string(d.Operation.ID)
	w.signIn(bob).post(op + "/cancel").wants(404)
	w.signIn(vera).post(op + "/cancel").wants(403)
	b.post(op + "/cancel").leads(page)
	b.post(op + "/cancel").leads(page)
	h.work()
	b.get(page).has(`[data-state="running"]`)
	b.post(op + "/retry").leads(page) // a cancelled one stays so
	b.post(page + "/delete").leads(page)
	d, err = w.compute.VM(t.Context(), w.accounts["Alpha"], vm)
	w.must(err)
	b.post("/operations/" + string(d.Operation.ID) + "/cancel").wants(409).has(`[data-error="wrong-state"]`)
}

func TestFormsNarrowForMachines(t *testing.T) {
	w := newWorld(t)
	w.addHost("eu-west-2a", l40)
	b := w.signIn(alice)
	f := b.get("/fragments/vms/new?zone=eu-west-2a&type=tinav7.c64r32p1").wants(200)
	f.has(`[data-id="nvidia-l40"] [data-limit="vcores"]`)
	f.lacks(`[data-id="nvidia-l40s"]`) // is not offered in that region
}

func TestOnlyAPublicKeyIsTakenForOne(t *testing.T) {
	w := newWorld(t)
	w.addHost("eu-west-2a", l40)
	b := w.signIn(alice)
	const public = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIIiLYfWLdB1Q3Q8S0cO6o5vHkF3r9Hq1dPDl2YwvTg6Q ops@example.test"
	for _, key := range []string{"-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXktdjEAAAAA", "ssh-ed25519 AAAA", public + "\n" + public} {
		a := b.post("/vms", "name", "keyed", "zone", "eu-west-2a", "type", "tinav7.c2r4p1", "ssh_key", key).wants(422)
		a.has(`[data-error="invalid-ssh-key"]`).has(`.has-error [name=ssh_key]`)
	}
	b.post("/vms", "name", "keyed", "zone", "eu-west-2a", "type", "tinav7.c2r4p1", "ssh_key", public+"\n").leads("/vms/")
}
