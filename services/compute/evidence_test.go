package compute_test

import (
	"testing"

	"berth/services"
)

// claim sends a report in which the VM has exactly these devices (nil: the
// report does not say), whatever the played host has, at the newest revision.
func (w *world) claim(t *testing.T, a *agent, vm services.VMID, devices []string) {
	t.Helper()
	a.mu.Lock()
	defer a.mu.Unlock()
	desired, err := w.fleet.Desired(t.Context(), a.id)
	must(t, err)
	reached := a.reached
	a.reached = desired.Revision
	r := a.now()
	a.reached = reached
	for h := range r.Hosts {
		for v := range r.Hosts[h].VMs {
			if r.Hosts[h].VMs[v].ID == string(vm) {
				r.Hosts[h].VMs[v].Devices = devices
			}
		}
	}
	w.send(t.Context(), t, a, r)
}

func (w *world) cardKey(t *testing.T, a services.Actor, id services.GPUID) string {
	t.Helper()
	g, err := w.db.AccountGPU(t.Context(), a.Account, id)
	must(t, err)
	return g.CardKey
}

func TestNoClaimMovesAPlanWhileTheVMRuns(t *testing.T) {
	w := small(t)
	a, host := w.accounts[0], w.agents[0]
	vm, gpu := w.newVM(t, a, "eu-west-2a", "tinav7.c8r32p1"), w.newGPU(t, a, "eu-west-2a", "nvidia-l40")
	w.attach(t, a, vm, gpu)
	w.claim(t, host, vm, []string{w.cardKey(t, a, gpu)})
	w.wantState(t, a, gpu, services.GPUAttaching)
	w.power(t, a, vm, services.ActionStopStart)
	must(t, w.compute.Detach(t.Context(), a, gpu, ""))
	w.claim(t, host, vm, []string{})
	w.wantState(t, a, gpu, services.GPUDetaching)
}

func TestStoppedVMWaitsForWhatItsHostShows(t *testing.T) {
	w := small(t)
	a, host := w.accounts[0], w.agents[0]
	vm, gpu := w.newVM(t, a, "eu-west-2a", "tinav7.c8r32p1"), w.newGPU(t, a, "eu-west-2a", "nvidia-l40")
	w.power(t, a, vm, services.ActionStop)
	w.attach(t, a, vm, gpu)
	key := w.cardKey(t, a, gpu)
	w.claim(t, host, vm, []string{})
	w.wantState(t, a, gpu, services.GPUAttaching)
	w.claim(t, host, vm, []string{key})
	w.wantState(t, a, gpu, services.GPUAttached)
	must(t, w.compute.Detach(t.Context(), a, gpu, ""))
	w.claim(t, host, vm, []string{key})
	w.wantState(t, a, gpu, services.GPUDetaching)
	w.claim(t, host, vm, nil)
	w.wantState(t, a, gpu, services.GPUDetaching) // devices left out of the report say nothing
	w.claim(t, host, vm, []string{})
	w.wantState(t, a, gpu, services.GPUAllocated)
}

func TestReportOfAnOlderRevisionConfirmsNothing(t *testing.T) {
	w := small(t)
	a, host := w.accounts[0], w.agents[0]
	vm, gpu := w.newVM(t, a, "eu-west-2a", "tinav7.c8r32p1"), w.newGPU(t, a, "eu-west-2a", "nvidia-l40")
	w.attach(t, a, vm, gpu)
	w.power(t, a, vm, services.ActionStop)
	w.wantState(t, a, gpu, services.GPUAttached)
	must(t, w.compute.Detach(t.Context(), a, gpu, ""))
	w.settle(t.Context(), t)
	w.attach(t, a, vm, gpu) // planned again; the host still shows what it had for the plan before
	_, m := host.on(vm)
	m.devices = []string{w.cardKey(t, a, gpu)}
	w.report(t.Context(), t, host)
	w.wantState(t, a, gpu, services.GPUAttaching)
	w.settle(t.Context(), t)
	w.wantState(t, a, gpu, services.GPUAttached)
}
