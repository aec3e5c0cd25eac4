package compute_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"berth/services"
	"berth/services/agentapi"
	"berth/services/compute"
)

// small is a zone with shared storage and one with local storage.
func small(t *testing.T) *world {
	return newWorld(t, 8, map[string][]shape{
		"eu-west-2a": {{"host-1", "v7", []string{l40, l40, h100}}, {"host-2", "v7", []string{l40, h100, h100}}, {"host-3", "v6", []string{a100}}},
		"eu-west-2b": {{"host-4", "v7", []string{h100, l40}}, {"host-5", "v7", []string{h100}}, {"host-6", "v7", []string{h200, h200, h200, h200, h200, h200, h200, h200}}},
	})
}

func (w *world) newVM(t *testing.T, a services.Actor, zone, typ string) services.VMID {
	t.Helper()
	id, err := w.compute.CreateVM(t.Context(), a, compute.NewVM{Name: "vm", Zone: zone, Type: typ})
	must(t, err)
	w.settle(t.Context(), t)
	if p := w.vm(t.Context(), t, a, id).Power; p != services.PowerRunning {
		t.Fatalf("new VM is %s, want running", p)
	}
	return id
}

func (w *world) newGPU(t *testing.T, a services.Actor, zone, model string) services.GPUID {
	t.Helper()
	id, err := w.compute.Allocate(t.Context(), a, compute.Allocation{Model: model, Zone: zone})
	must(t, err)
	return id
}

func (w *world) attach(t *testing.T, a services.Actor, vm services.VMID, gpus ...services.GPUID) {
	t.Helper()
	must(t, w.compute.Attach(t.Context(), a, vm, gpus, ""))
}

func (w *world) power(t *testing.T, a services.Actor, vm services.VMID, action services.PowerAction) {
	t.Helper()
	must(t, w.compute.Power(t.Context(), a, vm, action, ""))
	w.settle(t.Context(), t)
}

func (w *world) wantState(t *testing.T, a services.Actor, id services.GPUID, want services.GPUState) {
	t.Helper()
	if got := w.state(t.Context(), t, a, id); got != want {
		t.Fatalf("GPU %s is %q, want %q", id, got, want)
	}
}

func wantCode(t *testing.T, err error, kind services.Kind, code services.Code) *services.Error {
	t.Helper()
	e, ok := services.AsError(err)
	if !ok || e.Kind != kind || !e.Has(code) {
		t.Fatalf("error is %v, want kind %d with %s", err, kind, code)
	}
	return e
}

func TestGPUFollowsItsLifeCycle(t *testing.T) {
	w := small(t)
	a := w.accounts[0]
	vm, gpu := w.newVM(t, a, "eu-west-2a", "tinav7.c24r192p1"), w.newGPU(t, a, "eu-west-2a", "nvidia-h100")
	w.wantState(t, a, gpu, services.GPUAllocated)
	w.attach(t, a, vm, gpu)
	w.settle(t.Context(), t)
	w.wantState(t, a, gpu, services.GPUAttaching)
	w.power(t, a, vm, services.ActionStop)
	w.wantState(t, a, gpu, services.GPUAttached)
	w.power(t, a, vm, services.ActionStart)
	w.wantState(t, a, gpu, services.GPUAttached)
	must(t, w.compute.Detach(t.Context(), a, gpu, ""))
	w.settle(t.Context(), t)
	w.wantState(t, a, gpu, services.GPUDetaching)
	w.power(t, a, vm, services.ActionStopStart)
	w.wantState(t, a, gpu, services.GPUAllocated)
	if p := w.vm(t.Context(), t, a, vm).Power; p != services.PowerRunning {
		t.Errorf("VM is %s after stop-start, want running", p)
	}
	must(t, w.compute.Release(t.Context(), a, gpu, ""))
	w.settle(t.Context(), t)
	w.check(t.Context(), t)
}

func TestStoppedVMGetsAndLosesGPUsWhenItsHostConfirms(t *testing.T) {
	w := small(t)
	a := w.accounts[0]
	vm, gpu := w.newVM(t, a, "eu-west-2b", "tinav7.c8r32p1"), w.newGPU(t, a, "eu-west-2b", "nvidia-l40")
	w.power(t, a, vm, services.ActionStop)
	w.attach(t, a, vm, gpu)
	w.wantState(t, a, gpu, services.GPUAttaching)
	w.settle(t.Context(), t)
	w.wantState(t, a, gpu, services.GPUAttached)
	must(t, w.compute.Detach(t.Context(), a, gpu, ""))
	w.wantState(t, a, gpu, services.GPUDetaching)
	w.settle(t.Context(), t)
	w.wantState(t, a, gpu, services.GPUAllocated)
}

// F5
func TestOnlyAStopMovesPlannedGPUs(t *testing.T) {
	w := small(t)
	a := w.accounts[0]
	vm, gpu := w.newVM(t, a, "eu-west-2a", "tinav7.c8r32p1"), w.newGPU(t, a, "eu-west-2a", "nvidia-l40")
	w.attach(t, a, vm, gpu)
	w.power(t, a, vm, services.ActionReboot)
	w.wantState(t, a, gpu, services.GPUAttaching)
	host := w.agents[0]
	_, guest := host.on(vm)
	guest.reboots++ // from inside
	w.settle(t.Context(), t)
	w.wantState(t, a, gpu, services.GPUAttaching)
	w.powerOff(t.Context(), t, host, vm)
	w.settle(t.Context(), t)
	w.wantState(t, a, gpu, services.GPUAttached)
	if v := w.vm(t.Context(), t, a, vm); v.DesiredPower != services.PowerStopped {
		t.Fatalf("a VM powered off from inside is wanted %s, want stopped", v.DesiredPower)
	}
	w.power(t, a, vm, services.ActionStart)
	must(t, w.compute.Detach(t.Context(), a, gpu, ""))
	w.power(t, a, vm, services.ActionReboot)
	w.wantState(t, a, gpu, services.GPUDetaching)
	w.attach(t, a, vm, gpu) // cancels
	w.wantState(t, a, gpu, services.GPUAttached)
	must(t, w.compute.Detach(t.Context(), a, gpu, ""))
	w.powerOff(t.Context(), t, host, vm)
	w.settle(t.Context(), t)
	w.wantState(t, a, gpu, services.GPUAllocated)
	w.power(t, a, vm, services.ActionStart)
	w.attach(t, a, vm, gpu)
	must(t, w.compute.Detach(t.Context(), a, gpu, "")) // cancels
	w.wantState(t, a, gpu, services.GPUAllocated)
	w.check(t.Context(), t)
}

// F2
func TestStoppedVMKeepsTheLastCard(t *testing.T) {
	w := newWorld(t, 8, map[string][]shape{"eu-west-2a": {{"host-1", "v7", []string{h100}}}})
	a, b := w.accounts[0], w.accounts[1]
	vm := w.newVM(t, a, "eu-west-2a", "tinav7.c8r32p1")
	gpu := w.newGPU(t, a, "eu-west-2a", "nvidia-h100")
	w.attach(t, a, vm, gpu)
	w.power(t, a, vm, services.ActionStop)
	_, err := w.compute.Allocate(t.Context(), a, compute.Allocation{Model: "nvidia-h100", Zone: "eu-west-2a"})
	e := wantCode(t, err, services.KindCapacity, services.CodeNoCapacity)
	if got := e.Violations[0].Args["Holders"]; got != "vm" {
		t.Errorf("the refusal names %q, want the account's own VM", got)
	}
	_, err = w.compute.Allocate(t.Context(), b, compute.Allocation{Model: "nvidia-h100", Zone: "eu-west-2a"})
	e = wantCode(t, err, services.KindCapacity, services.CodeNoCapacity)
	if got := e.Violations[0].Args["Holders"]; got != "" {
		t.Errorf("the refusal tells another tenant of %q", got)
	}
	w.power(t, a, vm, services.ActionStart)
	w.wantState(t, a, gpu, services.GPUAttached)
}

// F6
func TestModelsDoNotMix(t *testing.T) {
	w := small(t)
	a := w.accounts[0]
	vm := w.newVM(t, a, "eu-west-2a", "tinav7.c8r32p1")
	l, h := w.newGPU(t, a, "eu-west-2a", "nvidia-l40"), w.newGPU(t, a, "eu-west-2a", "nvidia-h100")
	refused := func(gpus ...services.GPUID) {
		t.Helper()
		wantCode(t, w.compute.Attach(t.Context(), a, vm, gpus, ""), services.KindInvalid, services.CodeModelMismatch)
	}
	refused(l, h)
	w.wantState(t, a, l, services.GPUAllocated)
	w.attach(t, a, vm, l)
	refused(h)
	w.power(t, a, vm, services.ActionStopStart)
	refused(h)
	must(t, w.compute.Detach(t.Context(), a, l, ""))
	refused(h)
	w.power(t, a, vm, services.ActionStopStart)
	w.attach(t, a, vm, h)
	w.check(t.Context(), t)
}

func TestEveryBrokenRuleIsReportedTogether(t *testing.T) {
	w := small(t)
	a := w.accounts[0]
	id, err := w.compute.CreateVM(t.Context(), a, compute.NewVM{Name: "x", Zone: "eu-west-2b", Type: "tinav7.c40r300p2", Tenancy: "dedicated"})
	must(t, err)
	gpu := w.newGPU(t, a, "eu-west-2a", "nvidia-a100-80")
	e := wantCode(t, w.compute.Attach(t.Context(), a, id, []services.GPUID{gpu}, ""), services.KindInvalid, services.CodeVMSpecsMismatch)
	want := map[string]bool{
		"vm-specs-mismatch/performance": true, "vm-specs-mismatch/vcores": true, "vm-specs-mismatch/memory": true,
		"vm-specs-mismatch/generation": true, "vm-dedicated/": true, "zone-mismatch/": true,
	}
	for _, v := range e.Violations {
		delete(want, string(v.Code)+"/"+string(v.Limit))
	}
	if len(want) > 0 {
		t.Errorf("not reported: %v", want)
	}
}

func TestMaximumsAreInclusive(t *testing.T) {
	w := small(t)
	a := w.accounts[0]
	fits, over := w.newVM(t, a, "eu-west-2a", "tinav7.c35r250p1"), w.newVM(t, a, "eu-west-2a", "tinav7.c36r250p1")
	gpu := w.newGPU(t, a, "eu-west-2a", "nvidia-l40")
	wantCode(t, w.compute.Attach(t.Context(), a, over, []services.GPUID{gpu}, ""), services.KindInvalid, services.CodeVMSpecsMismatch)
	w.attach(t, a, fits, gpu)
}

func TestResizeIsRefusedWholeOrDone(t *testing.T) {
	w := small(t)
	a := w.accounts[0]
	vm, gpu := w.newVM(t, a, "eu-west-2a", "tinav7.c24r192p1"), w.newGPU(t, a, "eu-west-2a", "nvidia-h100")
	w.attach(t, a, vm, gpu)
	e := wantCode(t, w.compute.Resize(t.Context(), a, vm, compute.Resizing{Type: "tinav6.c33r257p2", Restart: true}),
		services.KindInvalid, services.CodeVMSpecsMismatch)
	if len(e.Violations) != 4 {
		t.Errorf("%d limits reported, want 4: %v", len(e.Violations), e)
	}
	wantCode(t, w.compute.Resize(t.Context(), a, vm, compute.Resizing{Type: "tinav7.c32r256p1"}), services.KindInvalid, services.CodeVMRunning)
	must(t, w.compute.Resize(t.Context(), a, vm, compute.Resizing{Type: "tinav7.c32r256p1", Restart: true}))
	w.settle(t.Context(), t)
	v := w.vm(t.Context(), t, a, vm)
	if v.Type != "tinav7.c32r256p1" || v.Power != services.PowerRunning {
		t.Errorf("VM is %s and %s, want tinav7.c32r256p1 and running", v.Type, v.Power)
	}
	w.wantState(t, a, gpu, services.GPUAttached)
	w.check(t.Context(), t)
}

func TestResizeToAnotherGenerationTakesTheGPUsAlong(t *testing.T) {
	w := newWorld(t, 8, map[string][]shape{
		"cloudgouv-eu-west-1a": {{"old", "v6", []string{a100}}, {"new", "v7", []string{a100}}},
	})
	a := w.accounts[0]
	vm, gpu := w.newVM(t, a, "cloudgouv-eu-west-1a", "tinav6.c8r32p1"), w.newGPU(t, a, "cloudgouv-eu-west-1a", "nvidia-a100-80")
	w.attach(t, a, vm, gpu)
	w.power(t, a, vm, services.ActionStop)
	w.wantState(t, a, gpu, services.GPUAttached)
	must(t, w.compute.Resize(t.Context(), a, vm, compute.Resizing{Type: "tinav7.c8r32p1"}))
	w.power(t, a, vm, services.ActionStart)
	w.wantState(t, a, gpu, services.GPUAttached)
	if host, m := w.agents[0].on(vm); host != "new" || m.power != agentapi.PowerRunning || len(m.devices) != 1 {
		t.Errorf("the host has %+v, want it running with its card on host new", *m)
	}
	w.check(t.Context(), t)
}

// F1
func TestDeletedVMLeavesItsGPUsAsEachOneSays(t *testing.T) {
	w := small(t)
	a := w.accounts[0]
	vm := w.newVM(t, a, "eu-west-2a", "tinav7.c8r32p1")
	gone, kept := w.newGPU(t, a, "eu-west-2a", "nvidia-h100"), w.newGPU(t, a, "eu-west-2a", "nvidia-h100")
	must(t, w.compute.SetDeleteOnVMDeletion(t.Context(), a, gone, true, ""))
	w.attach(t, a, vm, gone, kept)
	w.power(t, a, vm, services.ActionStopStart)
	w.agents[0].offline = true
	must(t, w.compute.DeleteVM(t.Context(), a, vm, ""))
	w.wantState(t, a, gone, "")
	w.wantState(t, a, kept, services.GPUAllocated)
	if use, err := w.db.QuotaUse(t.Context(), a.Account, "eu-west-2", "nvidia-h100"); err != nil || use.Used != 1 {
		t.Errorf("quota use is %d (%v), want 1", use.Used, err)
	}
	d, err := w.compute.VM(t.Context(), a.Account, vm)
	if err != nil || d.Operation == nil || !d.Operation.Open() {
		t.Fatalf("the clean-up of an offline host does not show as open: %+v (%v)", d.Operation, err)
	}
	w.agents[0].offline = false
	w.settle(t.Context(), t)
	if d, err = w.compute.VM(t.Context(), a.Account, vm); err != nil || d.Operation.State != services.OpDone {
		t.Errorf("clean-up is %s (%v), want done", d.Operation.State, err)
	}
	next := w.newVM(t, a, "eu-west-2a", "tinav7.c8r32p1")
	w.attach(t, a, next, kept)
	w.power(t, a, next, services.ActionStopStart)
	w.wantState(t, a, kept, services.GPUAttached)
	w.check(t.Context(), t)
}

// F11
func TestPickerSaysWhyAVMIsNoChoice(t *testing.T) {
	w := small(t)
	a := w.accounts[0]
	local := w.newVM(t, a, "eu-west-2b", "tinav7.c8r32p1") // on host-4, the one with most cards that are flexible
	l := w.newGPU(t, a, "eu-west-2b", "nvidia-l40")
	choices, err := w.compute.VMChoices(t.Context(), a.Account, l)
	must(t, err)
	host := w.vm(t.Context(), t, a, local).HostName
	for _, c := range choices {
		if fits := len(c.Broken) == 0; c.VM.ID == local && fits != (host == "host-4") {
			t.Errorf("VM on %s: selectable is %v (%v)", host, fits, c.Broken)
		}
	}
	if host != "host-4" {
		wantCode(t, w.compute.Attach(t.Context(), a, local, []services.GPUID{l}, ""), services.KindInvalid, services.CodeNoCardOnHost)
	}
}

// F14
func TestRefusedWriteLeavesNothingBehind(t *testing.T) {
	w := small(t)
	a := w.accounts[0]
	before := w.count(t, "gpus") + w.count(t, "vms") + w.count(t, "events") + w.count(t, "operations")
	_, err := w.compute.CreateVM(t.Context(), a, compute.NewVM{Name: "big", Zone: "eu-west-2a", Type: "tinav7.c1024r64p1"})
	wantCode(t, err, services.KindCapacity, services.CodeNoCapacity)
	_, err = w.compute.CreateVM(t.Context(), a, compute.NewVM{Name: "8 cards", Zone: "eu-west-2a", Type: "ns-inf7-126c1024r-8h200g"})
	wantCode(t, err, services.KindCapacity, services.CodeNoCapacity)
	for range 2 {
		w.newGPU(t, a, "eu-west-2b", "nvidia-h100")
	}
	_, err = w.compute.Allocate(t.Context(), a, compute.Allocation{Model: "nvidia-h100", Zone: "eu-west-2b"})
	wantCode(t, err, services.KindCapacity, services.CodeNoCapacity)
	if after := w.count(t, "gpus") + w.count(t, "vms") + w.count(t, "events") + w.count(t, "operations"); after != before+4 {
		t.Errorf("%d rows more, want 4: two GPUs and their events", after-before)
	}
	w.check(t.Context(), t)
}

func (w *world) count(t *testing.T, table string) int {
	t.Helper()
	n, err := w.db.Count(t.Context(), table)
	must(t, err)
	return n
}

// F15
func TestRepeatsAndParallelAttachments(t *testing.T) {
	w := small(t)
	a := w.accounts[0]
	vm := w.newVM(t, a, "eu-west-2a", "tinav7.c8r32p1")
	in := compute.Allocation{Model: "nvidia-l40", Zone: "eu-west-2a", Name: "twice", Key: "one"}
	ids := make([]services.GPUID, 8)
	var wg sync.WaitGroup
	for i := range ids {
		wg.Go(func() {
			id, err := w.compute.Allocate(t.Context(), a, in)
			if err != nil {
				t.Errorf("repeat %d: %v", i, err)
			}
			ids[i] = id
		})
	}
	wg.Wait()
	for _, id := range ids {
		if id != ids[0] {
			t.Fatalf("repeats made several GPUs: %v", ids)
		}
	}
	in.Name = "other"
	_, err := w.compute.Allocate(t.Context(), a, in)
	wantCode(t, err, services.KindInvalid, services.CodeKeyReused)
	other := w.newGPU(t, a, "eu-west-2a", "nvidia-l40")
	for i, gpu := range []services.GPUID{ids[0], ids[0], other, other} {
		wg.Go(func() {
			if err := w.compute.Attach(t.Context(), a, vm, []services.GPUID{gpu}, fmt.Sprintf("attach-%d", i/2)); err != nil {
				t.Errorf("attach %d: %v", i, err)
			}
		})
	}
	wg.Wait()
	w.wantState(t, a, ids[0], services.GPUAttaching)
	w.wantState(t, a, other, services.GPUAttaching)
	w.check(t.Context(), t)
}

func TestInferenceTypeBringsItsGPUs(t *testing.T) {
	w := small(t)
	a := w.accounts[0]
	id, err := w.compute.CreateVM(t.Context(), a, compute.NewVM{Name: "llm", Zone: "eu-west-2b", Type: "ns-inf7-126c1024r-8h200g"})
	must(t, err)
	w.settle(t.Context(), t)
	if _, m := w.agents[1].on(id); m == nil || len(m.devices) != 8 {
		t.Fatalf("the host has %+v, want eight cards", m)
	}
	gpu := w.newGPU(t, a, "eu-west-2b", "nvidia-h100")
	wantCode(t, w.compute.Attach(t.Context(), a, id, []services.GPUID{gpu}, ""), services.KindInvalid, services.CodeInferenceType)
	must(t, w.compute.DeleteVM(t.Context(), a, id, ""))
	w.settle(t.Context(), t)
	_, err = w.compute.CreateVM(t.Context(), a, compute.NewVM{Name: "again", Zone: "eu-west-2b", Type: "ns-inf7-126c1024r-8h200g"})
	must(t, err)
	w.check(t.Context(), t)
}

func TestOtherTenantsObjectsAreNotFound(t *testing.T) {
	w := small(t)
	a, b := w.accounts[0], w.accounts[1]
	vm, gpu := w.newVM(t, a, "eu-west-2a", "tinav7.c8r32p1"), w.newGPU(t, a, "eu-west-2a", "nvidia-l40")
	ctx := t.Context()
	for name, err := range map[string]error{
		"attach":  w.compute.Attach(ctx, b, vm, []services.GPUID{gpu}, ""),
		"detach":  w.compute.Detach(ctx, b, gpu, ""),
		"release": w.compute.Release(ctx, b, gpu, ""),
		"power":   w.compute.Power(ctx, b, vm, services.ActionStop, ""),
		"resize":  w.compute.Resize(ctx, b, vm, compute.Resizing{Type: "tinav7.c8r32p1"}),
		"delete":  w.compute.DeleteVM(ctx, b, vm, ""),
	} {
		if services.KindOf(err) != services.KindNotFound {
			t.Errorf("%s by another tenant: %v, want not found", name, err)
		}
	}
}

// 20 takers of one last card, 50 times: one wins, 19 get a clear answer.
func TestOneLastCardHasOneTaker(t *testing.T) {
	w := newWorld(t, 100, map[string][]shape{"eu-west-2a": {{"host-1", "v7", []string{h100}}}})
	for round := range 50 {
		won := make(chan services.Actor, 20)
		ids := make(chan services.GPUID, 20)
		var wg sync.WaitGroup
		for i := range 20 {
			wg.Go(func() {
				a := w.accounts[i%2]
				id, err := w.compute.Allocate(t.Context(), a, compute.Allocation{Model: "nvidia-h100", Zone: "eu-west-2a"})
				switch {
				case err == nil:
					won <- a
					ids <- id
				case !services.HasCode(err, services.CodeNoCapacity):
					t.Errorf("round %d: %v, want no-capacity", round, err)
				}
			})
		}
		wg.Wait()
		if len(won) != 1 {
			t.Fatalf("round %d: %d winners, want 1", round, len(won))
		}
		must(t, w.compute.Release(t.Context(), <-won, <-ids, ""))
		w.settle(t.Context(), t)
	}
	w.check(t.Context(), t)
}

// 20 takers of one account with a quota of 3, and cards enough for all.
func TestQuotaHoldsAgainstParallelTakers(t *testing.T) {
	cards := make([]string, 24)
	for i := range cards {
		cards[i] = h100
	}
	w := newWorld(t, 3, map[string][]shape{"eu-west-2a": {{"host-1", "v7", cards}}})
	var won atomic.Int64
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			_, err := w.compute.Allocate(t.Context(), w.accounts[0], compute.Allocation{Model: "nvidia-h100", Zone: "eu-west-2a"})
			switch {
			case err == nil:
				won.Add(1)
			case !services.HasCode(err, services.CodeQuotaExceeded):
				t.Errorf("%v, want quota-exceeded", err)
			}
		})
	}
	wg.Wait()
	if won.Load() != 3 {
		t.Errorf("%d GPUs allocated with a quota of 3", won.Load())
	}
	w.check(t.Context(), t)
}

// A resize that finds no host for all GPUs on its way leaves each where it was.
func TestResizeThatFindsNoHostMovesNothing(t *testing.T) {
	w := newWorld(t, 8, map[string][]shape{
		"cloudgouv-eu-west-1a": {{"old", "v6", []string{a100, a100}}, {"new", "v7", []string{a100}}},
	})
	a := w.accounts[0]
	vm := w.newVM(t, a, "cloudgouv-eu-west-1a", "tinav6.c8r32p1")
	one, two := w.newGPU(t, a, "cloudgouv-eu-west-1a", "nvidia-a100-80"), w.newGPU(t, a, "cloudgouv-eu-west-1a", "nvidia-a100-80")
	w.attach(t, a, vm, one, two)
	w.power(t, a, vm, services.ActionStopStart)
	must(t, w.compute.Resize(t.Context(), a, vm, compute.Resizing{Type: "tinav7.c8r32p1", Restart: true}))
	w.settle(t.Context(), t)
	d, err := w.compute.VM(t.Context(), a.Account, vm)
	must(t, err)
	if d.Operation == nil || d.Operation.State != services.OpFailed || d.Operation.Reason != "error.no-capacity" {
		t.Errorf("the operation is %+v, want it failed for no-capacity", d.Operation)
	}
	w.check(t.Context(), t)
	w.power(t, a, vm, services.ActionStart)
	if host, m := w.agents[0].on(vm); host != "old" || m.power != agentapi.PowerRunning || len(m.devices) != 2 {
		t.Errorf("host %s has %+v, want it running on host old with both cards", host, *m)
	}
	w.check(t.Context(), t)
}
