package compute_test

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"berth/services"
	"berth/services/agentapi"
	"berth/services/catalog"
	"berth/services/compute"
)

// check holds the books against themselves, after whatever was done to them.
func (w *world) check(ctx context.Context, t tb) {
	t.Helper()
	broken, err := w.db.Audit(ctx)
	must(t, err)
	if len(broken) > 0 {
		t.Fatalf("the books are wrong: %v", broken)
	}
	w.checkEvents(ctx, t)
}

// checkEvents replays every GPU's events: each is an arrow of the life cycle
// that starts where the one before ended, and the last leads to the present state.
func (w *world) checkEvents(ctx context.Context, t tb) {
	t.Helper()
	legal := map[string]bool{" allocated": true}
	for _, tr := range compute.Transitions() {
		for _, from := range tr.From {
			to := string(tr.To)
			if to == "" {
				to = "released"
			}
			legal[string(from)+" "+to] = true
		}
	}
	histories, err := w.db.Histories(ctx)
	must(t, err)
	state := map[services.GPUID]string{}
	for _, h := range histories {
		if h.From != state[h.GPU] || !legal[h.From+" "+h.To] {
			t.Fatalf("GPU %s was %q, and an event leads from %q to %q", h.GPU, state[h.GPU], h.From, h.To)
		}
		state[h.GPU] = h.To
	}
	states, err := w.db.GPUStates(ctx)
	must(t, err)
	for id, s := range states {
		if state[id] != s {
			t.Fatalf("GPU %s is %q, its events lead to %q", id, s, state[id])
		}
	}
}

// action is one thing that a tenant, a guest or an agent does. Its result is
// allowed to be a refusal, never an unexpected error.
type action func(ctx context.Context, t tb, w *world)

func refusable(t tb, what string, err error) {
	t.Helper()
	if _, ok := services.AsError(err); err != nil && !ok {
		t.Fatalf("%s: %v", what, err)
	}
}

var (
	zones  = []string{"eu-west-2a", "eu-west-2b"}
	models = []string{"nvidia-l40", "nvidia-h100", "nvidia-a100-80"}
	sizes  = []string{"tinav7.c8r32p1", "tinav7.c32r256p1", "tinav7.c36r64p1", "tinav6.c8r32p1", "tinav7.c8r32p2", "u1.2xlarge", "ns-inf7-16c128r-1l40g"}
)

// draw chooses the next action from what there is.
func draw(rt *rapid.T, ctx context.Context, w *world, i int) action {
	label := func(s string) string { return fmt.Sprintf("%s %d", s, i) }
	a := w.accounts[rapid.IntRange(0, len(w.accounts)-1).Draw(rt, label("account"))]
	gpus, err := w.db.ListGPUs(ctx, compute.GPUFilter{Account: a.Account})
	must(rt, err)
	vms, err := w.db.ListVMs(ctx, compute.VMFilter{Account: a.Account})
	must(rt, err)
	gpu := services.GPUID("fgpu-00000000")
	if n := rapid.IntRange(0, 99).Draw(rt, label("gpu")); len(gpus) > 0 {
		gpu = gpus[n%len(gpus)].ID
	}
	vm := services.VMID("i-00000000")
	if n := rapid.IntRange(0, 99).Draw(rt, label("vm")); len(vms) > 0 {
		vm = vms[n%len(vms)].ID
	}
	zone, model := rapid.SampledFrom(zones).Draw(rt, label("zone")), rapid.SampledFrom(models).Draw(rt, label("model"))
	size := rapid.SampledFrom(sizes).Draw(rt, label("size"))
	power := rapid.SampledFrom([]services.PowerAction{
		services.ActionStart, services.ActionStop, services.ActionReboot, services.ActionStopStart,
	}).Draw(rt, label("power"))
	agent := w.agents[rapid.IntRange(0, len(w.agents)-1).Draw(rt, label("agent"))]
	flag := rapid.Bool().Draw(rt, label("flag"))
	kind := rapid.SampledFrom([]string{
		"allocate", "allocate", "create", "attach", "attach", "attach", "attach-all", "detach", "detach", "power", "power", "power", "resize", "delete",
		"release", "behaviour", "work", "work", "work", "work", "poweroff", "replay", "empty", "foreign", "partial", "reconcile", "cancel",
	}).Draw(rt, label("action"))
	rt.Logf("%s: %s by %s: gpu %s vm %s", label("step"), kind, a.Account, gpu, vm)
	return func(ctx context.Context, t tb, w *world) {
		refusable(t, kind, perform(ctx, t, w, kind, a, gpu, vm, zone, model, size, power, agent, flag))
	}
}

func perform(ctx context.Context, t tb, w *world, kind string, a services.Actor, gpu services.GPUID, vm services.VMID,
	zone, model, size string, power services.PowerAction, agent *agent, flag bool,
) error {
	switch kind {
	case "allocate":
		_, err := w.compute.Allocate(ctx, a, compute.Allocation{Model: model, Zone: zone, DeleteOnVMDeletion: flag})
		return err
	case "create":
		_, err := w.compute.CreateVM(ctx, a, compute.NewVM{Name: "vm", Zone: zone, Type: size, Tenancy: catalog.TenancyDefault})
		return err
	case "attach-all":
		return w.compute.Attach(ctx, a, vm, everyGPU(ctx, t, w, a), "")
	case "attach":
		return w.compute.Attach(ctx, a, vm, []services.GPUID{gpu}, "")
	case "detach":
		return w.compute.Detach(ctx, a, gpu, "")
	case "release":
		return w.compute.Release(ctx, a, gpu, "")
	case "behaviour":
		return w.compute.SetDeleteOnVMDeletion(ctx, a, gpu, flag, "")
	case "power":
		return w.compute.Power(ctx, a, vm, power, "")
	case "resize":
		return w.compute.Resize(ctx, a, vm, compute.Resizing{Type: size, Restart: flag})
	case "delete":
		return w.compute.DeleteVM(ctx, a, vm, "")
	case "reconcile":
		return w.compute.Reconcile(ctx)
	case "cancel":
		return cancelOne(ctx, w, a)
	case "poweroff":
		w.powerOff(ctx, t, agent, vm)
	default:
		disturb(ctx, t, w, kind, agent)
	}
	return nil
}

func everyGPU(ctx context.Context, t tb, w *world, a services.Actor) []services.GPUID {
	gpus, err := w.db.ListGPUs(ctx, compute.GPUFilter{Account: a.Account, States: []services.GPUState{services.GPUAllocated}})
	must(t, err)
	ids := make([]services.GPUID, 0, len(gpus))
	for _, g := range gpus {
		ids = append(ids, g.ID)
	}
	return ids
}

func cancelOne(ctx context.Context, w *world, a services.Actor) error {
	ops, err := w.db.OpenOperations(ctx, a.Account)
	if err != nil || len(ops) == 0 {
		return err
	}
	_, err = w.compute.Cancel(ctx, a, ops[0].ID)
	return err
}

// disturb lets an agent work, or sends what no working agent would.
func disturb(ctx context.Context, t tb, w *world, kind string, a *agent) {
	if kind == "work" {
		w.work(ctx, t, a)
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	switch kind {
	case "replay":
		w.send(ctx, t, a, a.last)
	case "empty":
		r := a.now()
		r.Hosts = nil
		w.send(ctx, t, a, r)
	case "partial":
		r := a.now()
		r.Partial = true
		for i := range r.Hosts {
			r.Hosts[i].Cards, r.Hosts[i].VMs = nil, nil
		}
		w.send(ctx, t, a, r)
	case "foreign":
		other := w.agents[0]
		if other == a {
			other = w.agents[1]
		}
		r := a.now()
		r.Hosts = append(r.Hosts, foreign(other))
		w.send(ctx, t, a, r)
	}
}

// foreign claims another agent's cards, free and clean, under a host of its
// own; that takes no VMs, since nobody plays it.
func foreign(other *agent) agentapi.HostReport {
	h := other.hosts[0]
	h.Name, h.VCores = "intruder", 0
	return h
}

// actions is how many actions one run draws.
const actions = 40

// Whatever tenants, operators, guests and agents do, in whatever order and side by side,
// the books stay right; and when all is quiet nothing waits for ever.
func TestBooksStayRight(t *testing.T) {
	if os.Getenv("RAPID_CHECKS") == "" {
		setRapidChecks(t, 25)
	}
	rapid.Check(t, func(rt *rapid.T) {
		w := newWorld(t, 3, map[string][]shape{
			"eu-west-2a": {{"host-1", "v7", []string{l40, h100, h100}}, {"host-2", "v7", []string{l40, h100}}, {"host-3", "v6", []string{a100}}},
			"eu-west-2b": {{"host-4", "v7", []string{h100, l40}}, {"host-5", "v7", []string{h100}}},
		})
		defer func() { must(rt, w.db.Close()) }() // now, not at the end of all runs
		ctx := t.Context()
		w.begin(ctx, rt)
		for i := 0; i < actions; {
			beside := rapid.IntRange(1, 3).Draw(rt, fmt.Sprintf("beside %d", i))
			batch := make([]action, 0, beside)
			for range beside {
				choose := draw
				if rapid.IntRange(0, 6).Draw(rt, fmt.Sprintf("operator %d", i)) == 0 {
					choose = drawOperator
				}
				batch = append(batch, choose(rt, ctx, w, i))
				i++
			}
			together(ctx, rt, w, batch)
			w.check(ctx, rt)
		}
		w.settle(ctx, rt)
		must(rt, w.compute.Reconcile(ctx))
		w.settle(ctx, rt)
		w.reopen(ctx, rt)
		w.check(ctx, rt)
		w.quiet(ctx, rt)
		w.restored(ctx, rt)
	})
}

// begin gives each account two running VMs and two GPUs, so that the actions
// have something to act on.
func (w *world) begin(ctx context.Context, t tb) {
	t.Helper()
	for _, a := range w.accounts {
		for _, zone := range zones {
			_, err := w.compute.CreateVM(ctx, a, compute.NewVM{Name: "vm", Zone: zone, Type: sizes[0]})
			must(t, err)
			_, err = w.compute.Allocate(ctx, a, compute.Allocation{Model: "nvidia-h100", Zone: zone})
			must(t, err)
		}
	}
	w.settle(ctx, t)
}

func setRapidChecks(t *testing.T, n int) {
	t.Helper()
	if err := flagSet("rapid.checks", strconv.Itoa(n)); err != nil {
		t.Fatalf("set the number of runs: %v", err)
	}
}

// together runs actions side by side; a failure in one is reported by the test's goroutine.
func together(ctx context.Context, t tb, w *world, batch []action) {
	t.Helper()
	failures := make([]failure, len(batch))
	var wg sync.WaitGroup
	for i, act := range batch {
		wg.Go(func() { failures[i].run(func(t tb) { act(ctx, t, w) }) })
	}
	wg.Wait()
	for _, f := range failures {
		if f.text != "" {
			t.Fatalf("%s", f.text)
		}
	}
}

// failure keeps what went wrong in a goroutine that may not end the test itself.
type failure struct{ text string }

type failed struct{ text string }

func (f *failure) Helper() {}

func (f *failure) Fatalf(format string, args ...any) { panic(failed{fmt.Sprintf(format, args...)}) }

func (f *failure) run(do func(tb)) {
	defer func() {
		if r := recover(); r != nil {
			stop, ok := r.(failed)
			if !ok {
				panic(r)
			}
			f.text = stop.text
		}
	}()
	do(f)
}

// quiet checks that with all agents at work nothing is left to wait for but a
// user's own stop.
func (w *world) quiet(ctx context.Context, t tb) {
	t.Helper()
	open, err := w.db.UnfinishedOperations(ctx)
	must(t, err)
	for _, p := range open {
		op, _, err := w.db.OpenOperation(ctx, p.VM)
		must(t, err)
		vms, err := w.db.VMsByID(ctx, []services.VMID{p.VM})
		must(t, err)
		t.Fatalf("an operation is still open: %+v of %+v", op, vms)
	}
	for _, a := range w.accounts {
		vms, err := w.db.ListVMs(ctx, compute.VMFilter{Account: a.Account})
		must(t, err)
		for _, v := range vms {
			gpus, err := w.db.VMGPUs(ctx, v.ID)
			must(t, err)
			for _, g := range gpus {
				if v.Power == services.PowerStopped && (g.State == services.GPUAttaching || g.State == services.GPUDetaching) {
					t.Fatalf("VM %s is stopped and GPU %s is still %s", v.ID, g.ID, g.State)
				}
			}
		}
	}
}
