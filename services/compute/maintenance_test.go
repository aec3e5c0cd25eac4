package compute_test

import (
	"testing"

	"berth/db"
	"berth/services"
	"berth/services/compute"
	"berth/services/fleet"
)

var olga = services.Actor{Email: "olga@example.test"}

// tended lets hosts' modes take their effect, until nothing moves any more.
func (w *world) tended(t *testing.T) {
	t.Helper()
	for range 6 {
		must(t, w.compute.TendHosts(t.Context()))
		w.settle(t.Context(), t)
	}
}

func (w *world) mode(t *testing.T, host services.HostID, mode services.HostMode, confirm bool) error {
	t.Helper()
	return w.fleet.SetMode(t.Context(), olga, host, fleet.NewMode{Mode: mode, Reason: "new fan", Confirm: confirm})
}

// manned is a zone of two hosts with cards, the first of which has a VM with a
// GPU and a plain one.
func manned(t *testing.T) (w *world, a services.Actor, host services.HostID, withGPU, plain services.VMID, gpu services.GPUID) {
	t.Helper()
	w = newWorld(t, 8, map[string][]shape{"eu-west-2a": {
		{name: "one", generation: "v7", cards: []string{h100, h100}}, {name: "two", generation: "v7", cards: []string{h100, h100}},
	}})
	a = w.accounts[0]
	withGPU, gpu = w.newVM(t, a, "eu-west-2a", "tinav7.c8r32p1"), w.newGPU(t, a, "eu-west-2a", "nvidia-h100")
	w.attach(t, a, withGPU, gpu)
	w.power(t, a, withGPU, services.ActionStopStart)
	w.settle(t.Context(), t)
	w.wantState(t, a, gpu, services.GPUAttached)
	host = w.vm(t.Context(), t, a, withGPU).Host
	for range 6 { // until one is placed beside it
		plain = w.newVM(t, a, "eu-west-2a", "tinav7.c4r16p2")
		if w.vm(t.Context(), t, a, plain).Host == host {
			return w, a, host, withGPU, plain, gpu
		}
	}
	t.Fatal("no plain VM is placed beside the one with a GPU")
	return w, a, host, withGPU, plain, gpu
}

func free(t *testing.T, w *world) int {
	t.Helper()
	cells, err := w.db.Inventory(t.Context())
	must(t, err)
	n := 0
	for _, c := range cells {
		n += c.Free
	}
	return n
}

func TestMaintenancePreviewsStopsMovesAndRestores(t *testing.T) {
	w, a, host, withGPU, plain, gpu := manned(t)
	ctx := t.Context()
	fates, err := w.compute.Fates(ctx, host)
	must(t, err)
	for _, f := range fates {
		if want := f.VM.ID == plain || f.GPUs == 0; f.Moves != want || f.VM.ID == withGPU && f.GPUs != 1 {
			t.Errorf("%s with %d GPUs: moves %v, want %v", f.VM.ID, f.GPUs, f.Moves, want)
		}
	}
	before := free(t, w)

	wantCode(t, w.mode(t, host, services.HostMaintenance, false), services.KindInvalid, services.CodeConfirm)
	if free(t, w) != before {
		t.Error("without a confirmation capacity changed")
	}
	must(t, w.mode(t, host, services.HostMaintenance, true))
	if n := free(t, w); n != before-1 {
		t.Errorf("%d cards are free, want %d: those of the host leave at once", n, before-1)
	}
	w.tended(t)
	if vm := w.vm(ctx, t, a, withGPU); vm.Power != services.PowerStopped || !vm.Resume {
		t.Errorf("the VM with a GPU is %s, to resume: %v; want it stopped and remembered", vm.Power, vm.Resume)
	}
	w.wantState(t, a, gpu, services.GPUAttached)
	if vm := w.vm(ctx, t, a, plain); vm.Host == host || vm.Power != services.PowerRunning {
		t.Errorf("the plain VM is %s on the host: %v; want it running elsewhere", vm.Power, vm.Host == host)
	}

	must(t, w.mode(t, host, services.HostAccepting, false))
	w.tended(t)
	for _, id := range []services.VMID{withGPU, plain} {
		if vm := w.vm(ctx, t, a, id); vm.Power != services.PowerRunning || vm.Resume {
			t.Errorf("after the maintenance %s is %s, to resume: %v", id, vm.Power, vm.Resume)
		}
	}
	w.wantState(t, a, gpu, services.GPUAttached)
	if found, err := w.db.Audit(ctx); err != nil || len(found) > 0 {
		t.Errorf("the books: %v, %v", found, err)
	}
}

func TestDrainingMovesWhatCanAndLeavesTheRest(t *testing.T) {
	w, a, host, withGPU, plain, _ := manned(t)
	must(t, w.mode(t, host, services.HostDraining, true))
	w.tended(t)
	if vm := w.vm(t.Context(), t, a, withGPU); vm.Power != services.PowerRunning || vm.Host != host {
		t.Errorf("the VM with a GPU is %s, want it to go on", vm.Power)
	}
	if vm := w.vm(t.Context(), t, a, plain); vm.Host == host || vm.Power != services.PowerRunning {
		t.Errorf("the plain VM is %s on the host: %v", vm.Power, vm.Host == host)
	}
}

func TestInMaintenanceNothingStartsThatFitsNowhereElse(t *testing.T) {
	w := newWorld(t, 8, map[string][]shape{"eu-west-2b": {{name: "only", generation: "v7", cards: []string{l40}}}})
	a := w.accounts[0]
	vm := w.newVM(t, a, "eu-west-2b", "tinav7.c8r32p1")
	host := w.vm(t.Context(), t, a, vm).Host
	must(t, w.mode(t, host, services.HostMaintenance, true))
	w.tended(t)
	if v := w.vm(t.Context(), t, a, vm); v.Power != services.PowerStopped {
		t.Fatalf("the VM is %s, want it stopped", v.Power)
	}
	e := wantCode(t, w.compute.Power(t.Context(), a, vm, services.ActionStart, ""), services.KindConflict, services.CodeMaintenance)
	if e.Violations[0].Args["Reason"] != "new fan" {
		t.Errorf("the refusal says %v, want the reason", e.Violations[0].Args)
	}
	must(t, w.mode(t, host, services.HostAccepting, false))
	w.tended(t)
	if v := w.vm(t.Context(), t, a, vm); v.Power != services.PowerRunning {
		t.Errorf("after the maintenance the VM is %s", v.Power)
	}
}

func TestWhatItsOwnerStopsStaysStoppedAfterMaintenance(t *testing.T) {
	w, a, host, withGPU, _, _ := manned(t)
	w.power(t, a, withGPU, services.ActionStop)
	must(t, w.mode(t, host, services.HostMaintenance, true))
	w.tended(t)
	must(t, w.mode(t, host, services.HostAccepting, false))
	w.tended(t)
	if vm := w.vm(t.Context(), t, a, withGPU); vm.Power != services.PowerStopped {
		t.Errorf("the VM is %s, want it as its owner left it", vm.Power)
	}
}

func TestAForcedReleaseTakesTheGPUAndLetsItsVMGoOn(t *testing.T) {
	w, a, _, withGPU, _, gpu := manned(t)
	ctx := t.Context()
	must(t, w.compute.ForceRelease(ctx, olga, gpu, "unpaid"))
	w.settle(ctx, t)
	w.settle(ctx, t)
	w.settle(ctx, t)
	g, err := w.db.AccountGPU(ctx, a.Account, gpu)
	must(t, err)
	if !g.Released() {
		t.Errorf("the GPU is %q, want it released", g.State)
	}
	if vm := w.vm(ctx, t, a, withGPU); vm.Power != services.PowerRunning {
		t.Errorf("its VM is %s, want it running without the GPU", vm.Power)
	}
	use, err := w.db.QuotaUse(ctx, a.Account, "eu-west-2", "nvidia-h100")
	must(t, err)
	if use.Used != 0 {
		t.Errorf("%d GPUs are counted, want none", use.Used)
	}
	events, err := w.db.ListEvents(ctx, db.EventFilter{Account: a.Account, GPU: gpu, Limit: 1})
	must(t, err)
	if len(events) != 1 || events[0].Kind != "gpu.force-released" || events[0].Actor != olga.Email {
		t.Errorf("the account is told %+v", events)
	}
	cards, err := w.db.HostCards(ctx, g.Host)
	must(t, err)
	for _, c := range cards {
		if c.GPU != "" || c.Condition != services.CardReady {
			t.Errorf("card %s is %s, held by %q; want it clean and free", c.ID, c.Condition, c.GPU)
		}
	}
	wantCode(t, w.compute.ForceRelease(ctx, olga, gpu, "again"), services.KindConflict, services.CodeWrongState)
	if found, err := w.db.Audit(ctx); err != nil || len(found) > 0 {
		t.Errorf("the books: %v, %v", found, err)
	}
}

func TestABuiltInGPUIsNotTakenFromItsVM(t *testing.T) {
	w := newWorld(t, 8, map[string][]shape{"eu-west-2a": {{name: "one", generation: "v7", cards: []string{l40}}}})
	a := w.accounts[0]
	vm := w.newVM(t, a, "eu-west-2a", "ns-inf7-16c128r-1l40g")
	gpus, err := w.db.VMGPUs(t.Context(), vm)
	must(t, err)
	wantCode(t, w.compute.ForceRelease(t.Context(), olga, gpus[0].ID, "no"), services.KindConflict, services.CodeWrongState)
}

func TestLimitsOfCoresMemoryAndMachinesHold(t *testing.T) {
	w := small(t)
	a := w.accounts[0]
	ctx := t.Context()
	limit := func(resource string, n int) {
		must(t, w.db.Tx(ctx, func(tx *db.Tx) error { return tx.SetLimit(ctx, a.Account, "eu-west-2", resource, &n) }))
	}
	limit("vcores", 12)
	limit("memory", 48)
	limit("vms", 2)
	vm := w.newVM(t, a, "eu-west-2a", "tinav7.c8r32p1")
	_, err := w.compute.CreateVM(ctx, a, compute.NewVM{Name: "big", Zone: "eu-west-2a", Type: "tinav7.c8r32p1"})
	e := wantCode(t, err, services.KindInvalid, services.CodeQuotaExceeded)
	if len(e.Violations) != 2 || e.Violations[0].Limit != services.LimitVCores || e.Violations[1].Limit != services.LimitMemory {
		t.Errorf("refused by %v, want cores and memory together", e)
	}
	w.newVM(t, a, "eu-west-2a", "tinav7.c2r4p1")
	_, err = w.compute.CreateVM(ctx, a, compute.NewVM{Name: "third", Zone: "eu-west-2a", Type: "tinav7.c1r1p1"})
	if e := wantCode(t, err, services.KindInvalid, services.CodeQuotaExceeded); e.Violations[0].Limit != services.LimitVMs {
		t.Errorf("refused by %v, want the number of machines", e)
	}
	w.power(t, a, vm, services.ActionStop)
	err = w.compute.Resize(ctx, a, vm, compute.Resizing{Type: "tinav7.c16r32p1"})
	if e := wantCode(t, err, services.KindInvalid, services.CodeQuotaExceeded); e.Violations[0].Limit != services.LimitVCores || e.Violations[0].Args["Wanted"] != 8 {
		t.Errorf("a resize is refused by %v", e)
	}
	must(t, w.compute.Resize(ctx, a, vm, compute.Resizing{Type: "tinav7.c10r32p1"}))
	if _, err := w.compute.CreateVM(ctx, w.accounts[1], compute.NewVM{Name: "theirs", Zone: "eu-west-2a", Type: "tinav7.c8r32p1"}); err != nil {
		t.Errorf("another account's limits: %v", err)
	}
}

func TestOperatorsRetryAndCancelAnybodysOperation(t *testing.T) {
	w := small(t)
	a := w.accounts[0]
	ctx := t.Context()
	vm := w.newVM(t, a, "eu-west-2a", "tinav7.c2r4p1")
	must(t, w.compute.Power(ctx, a, vm, services.ActionStop, ""))
	page, err := w.compute.Operations(ctx, compute.OperationFilter{State: "open", Limit: 10})
	must(t, err)
	if len(page.Operations) != 1 || page.Operations[0].AccountName != "Tenant A" {
		t.Fatalf("under way: %+v", page.Operations)
	}
	must(t, w.compute.OperatorCancel(ctx, olga, page.Operations[0].ID))
	w.settle(ctx, t)
	if v := w.vm(ctx, t, a, vm); v.Power != services.PowerRunning {
		t.Errorf("after the cancelled stop the VM is %s", v.Power)
	}
	if err := w.compute.OperatorRetry(ctx, olga, "op-00000000"); services.KindOf(err) != services.KindNotFound {
		t.Errorf("an operation that is not: %v", err)
	}
}

func TestASuspendedAccountChangesNothing(t *testing.T) {
	w := small(t)
	a := w.accounts[0]
	a.Suspended = true
	_, err := w.compute.Allocate(t.Context(), a, compute.Allocation{Model: "nvidia-h100", Zone: "eu-west-2a"})
	wantCode(t, err, services.KindForbidden, services.CodeSuspended)
}
