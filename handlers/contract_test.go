package handlers_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"berth/services"
)

// write is a form, right in every field.
type write struct {
	name   string
	path   string
	fields []string
	after  func() // what the host does of it
}

// writes are all forms about GPUs and VMs, in an order in which each can be done.
func (w *world) writes(h *host, gpu, vm string) []write {
	nothing := func() {}
	work := func() {
		for range 4 { // halt, settle, convert, boot
			h.work()
		}
	}
	return []write{
		{"allocate", "/gpus", []string{"model", "nvidia-l40", "zone", "eu-west-2a", "name", "x", "generation", "v7", "delete_on_vm_deletion", "true"}, nothing},
		{"make a VM", "/vms", []string{"name", "x", "zone", "eu-west-2a", "type", "tinav7.c2r4", "performance", "high", "tenancy", "default",
			"image", "debian-12", "ssh_key", "", "user_data", "#cloud-config"}, work},
		{"attach", "/gpus/" + gpu + "/attach", []string{"vm", vm}, nothing},
		{"detach", "/gpus/" + gpu + "/detach", nil, nothing},
		{"attach to the VM", "/vms/" + vm + "/gpus", []string{"gpu", gpu}, nothing},
		{"detach several", "/gpus/bulk", []string{"action", "detach", "gpu", gpu}, nothing},
		{"attach several", "/gpus/bulk", []string{"action", "attach", "gpu", gpu, "vm", vm}, nothing},
		{"detach again", "/gpus/" + gpu + "/detach", nil, nothing},
		{"rename", "/gpus/" + gpu + "/rename", []string{"name", "y"}, nothing},
		{"go with the VM", "/gpus/" + gpu + "/on-deletion", []string{"delete_on_vm_deletion", "true"}, nothing},
		{"reboot", "/vms/" + vm + "/power", []string{"action", "reboot"}, work},
		{"resize", "/vms/" + vm + "/resize", []string{"type", "tinav7.c4r8", "performance", "highest", "restart", "true"}, work},
		{"stop and start", "/vms/" + vm + "/power", []string{"action", "stop-start"}, work},
		{"stop", "/vms/" + vm + "/power", []string{"action", "stop"}, work},
		{"start", "/vms/" + vm + "/power", []string{"action", "start"}, work},
		{"delete", "/vms/" + vm + "/delete", nil, work},
		{"release", "/gpus/" + gpu + "/release", nil, work},
	}
}

// written counts what was written so far.
func (w *world) written() int {
	w.t.Helper()
	n := 0
	for _, table := range []string{"events", "gpus", "vms", "operations"} {
		rows, err := w.db.Count(w.t.Context(), table)
		w.must(err)
		n += rows
	}
	return n
}

func TestEveryWriteIsDoneOnceUnderItsKey(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	h := w.addHost("eu-west-2a", l40, l40)
	b := w.signIn(alice)
	gpu := idIn(b.post("/gpus", "model", "nvidia-l40", "zone", "eu-west-2a", "name", "first").leads("/gpus/"))
	vm := string(w.addVM(h, w.actor(alice, "Alpha", services.RoleOwner), "trainer", "u1.2xlarge"))
	for i, c := range w.writes(h, gpu, vm) {
		key := fmt.Sprintf("key %d", i)
		send := func(key string) answer {
			return b.post(c.path, append(slices.Clone(c.fields), "idempotency_key", key)...)
		}

		before := w.written()
		first := send(key).leads("/")
		done := w.written()
		if done == before {
			t.Errorf("%s: nothing was written", c.name)
		}
		if again := send(key).leads("/"); again != first || w.written() != done {
			t.Errorf("%s: the repeat leads to %s, the first to %s; %d rows were written more", c.name, again, first, w.written()-done)
		}
		switch {
		case c.name == "detach several": // each GPU has a key of its own, and is detached already
			send("key 0").wants(http.StatusConflict).has(`[data-error="wrong-state"]`)
		case i > 0:
			send("key 0").wants(http.StatusUnprocessableEntity).has(`[data-error="key-reused"]`)
		}
		if n := w.written(); n != done {
			t.Errorf("%s: under another's key %d rows were written", c.name, n-done)
		}
		c.after()
	}
}

// One odd value among right ones gets further than odd ones alone.
func TestNoOddValueAmongRightOnesBreaksAWrite(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	h := w.addHost("eu-west-2a", slices.Repeat([]string{l40}, 120)...)
	w.must(w.tenancy.SetQuota(t.Context(), w.accounts["Alpha"], "eu-west-2", "nvidia-l40", nil))
	b := w.signIn(alice)
	actor := w.actor(alice, "Alpha", services.RoleOwner)
	odd := []string{
		"<script>alert(1)</script>", "\r\nX-Injected: yes", "99999999999999999999", "\u202e", strings.Repeat("é", 10_000),
	}
	for i := range w.writes(h, "", "") {
		gpu := b.post("/gpus", "model", "nvidia-l40", "zone", "eu-west-2a", "name", "first").leads("/gpus/")
		vm := string(w.addVM(h, actor, "trainer", "tinav7.c2r4p1"))
		c := w.writes(h, idIn(gpu), vm)[i]
		names := []string{"idempotency_key"}
		for j := 0; j < len(c.fields); j += 2 {
			names = append(names, c.fields[j])
		}
		for _, name := range names {
			for _, value := range odd {
				fields := []string{name, value} // the first of a name counts
				for j := 0; j < len(c.fields); j += 2 {
					if c.fields[j] != name {
						fields = append(fields, c.fields[j], c.fields[j+1])
					}
				}
				b.post(c.path, fields...).survived(t, c.name+" "+name, value)
			}
		}
		b.get(gpu).survived(t, gpu, "what was written")
		b.get("/vms/"+vm).survived(t, vm, "what was written")
		h.work()
	}
	for _, path := range []string{"/", "/gpus", "/vms", "/activity", "/search?q=script"} {
		b.get(path).wants(http.StatusOK).survived(t, path, "what was written")
	}
}

// codes makes what each refusal is about.
type codes struct {
	*world
	*browser
	hosts []*host
}

func (c codes) work() {
	c.t.Helper()
	for range 4 {
		for _, h := range c.hosts {
			h.work()
		}
	}
}

func (c codes) gpu(model, zone string) string {
	c.t.Helper()
	return idIn(c.post("/gpus", "model", model, "zone", zone).leads("/gpus/"))
}

func (c codes) machine(zone, vmType, tenancy string) string {
	c.t.Helper()
	id := idIn(c.post("/vms", "name", vmType, "zone", zone, "type", vmType, "tenancy", tenancy).leads("/vms/"))
	c.work()
	return id
}

func TestEveryCodeOfTheListIsMet(t *testing.T) {
	const shared, local = "eu-west-2a", "eu-west-2b" // storage
	w := newWorld(t)
	c := codes{world: w, browser: w.signIn(alice)}
	c.hosts = []*host{w.addHost(shared, l40, h100, h100, h100), w.addHost(local, l40)}
	small, far := c.machine(shared, "tinav7.c8r32p1", "default"), c.machine(local, "tinav7.c8r32p1", "default")
	l40a, l40b, h100a := c.gpu("nvidia-l40", shared), c.gpu("nvidia-l40", local), c.gpu("nvidia-h100", shared)
	slow, alone := c.machine(shared, "tinav7.c8r32p3", "default"), c.machine(shared, "tinav7.c8r32p1", "dedicated")
	ready := c.machine(shared, "ns-inf7-32c256r-2h100g", "default")
	w.addHost(local, l40, h100) // its first card has the serial of one that is known
	h100b := c.gpu("nvidia-h100", local)
	c.post("/gpus/"+l40a+"/attach", "vm", small).leads("/gpus/")
	none := 0
	w.must(w.tenancy.SetQuota(t.Context(), w.accounts["Alpha"], "eu-west-2", "nvidia-a100-80", &none))

	for _, x := range []struct {
		code   services.Code
		status int
		path   string
		fields []string
	}{
		{services.CodeVMSpecsMismatch, 422, "/gpus/" + h100a + "/attach", []string{"vm", slow}},
		{services.CodeVMSpecsMismatch, 422, "/vms/" + small + "/resize", []string{"type", "tinav7.c36r32p1", "restart", "true"}},
		{services.CodeVMDedicated, 422, "/gpus/" + h100a + "/attach", []string{"vm", alone}},
		{services.CodeInferenceType, 422, "/gpus/" + h100a + "/attach", []string{"vm", ready}},
		{services.CodeModelMismatch, 422, "/gpus/" + h100a + "/attach", []string{"vm", small}},
		{services.CodeZoneMismatch, 422, "/gpus/" + l40b + "/attach", []string{"vm", small}},
		{services.CodeNoCardOnHost, 422, "/gpus/" + h100b + "/attach", []string{"vm", far}},
		{services.CodeQuotaExceeded, 422, "/gpus", []string{"model", "nvidia-a100-80", "zone", "eu-west-2a"}},
		{services.CodeNoCapacity, 409, "/gpus", []string{"model", "nvidia-l40", "zone", "eu-west-2a"}},
		{services.CodeWrongState, 409, "/gpus/" + l40a + "/release", nil},
		{services.CodeWrongState, 409, "/gpus/" + h100a + "/detach", nil},
		{services.CodeVMRunning, 422, "/vms/" + small + "/resize", []string{"type", "tinav7.c4r8p1"}},
		{services.CodeInvalidType, 422, "/vms", []string{"name", "x", "zone", "eu-west-2a", "type", "tinav7"}},
		{services.CodeInvalidType, 422, "/vms/" + small + "/resize", []string{"type", "large"}},
		{services.CodeRequired, 422, "/gpus", []string{"model", "nvidia-l40"}},
		{services.CodeRequired, 422, "/vms/" + small + "/power", nil},
		{services.CodeNotOffered, 422, "/gpus", []string{"model", "nvidia-l40s", "zone", "eu-west-2a"}},
		{services.CodeInvalidValue, 422, "/vms/" + small + "/power", []string{"action", "explode"}},
		{services.CodeInvalidValue, 422, "/vms", []string{"name", "x", "zone", "eu-west-2a", "type", "u1.large", "image", "os-2"}},
		{services.CodeTooLong, 422, "/gpus/" + l40a + "/rename", []string{"name", strings.Repeat("é", 101)}},
	} {
		a := c.post(x.path, x.fields...).wants(x.status).has(`[data-error="` + string(x.code) + `"]`)
		if words := a.Find(`[data-error="` + string(x.code) + `"]`).First().Text(); len(words) < 10 {
			t.Errorf("%s at %s says %q", x.code, x.path, words)
		}
	}
	c.post("/vms/"+small+"/power", "action", "reboot").leads("/vms/")
	c.post("/vms/"+small+"/power", "action", "start").wants(http.StatusConflict).has(`[data-error="busy"]`)
}
