// Package contract is the test that every driver must pass before the agent may
// run with it. A driver's own tests call Test with hosts to try it on.
package contract

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"berth/services/agentapi"
	"berth/services/hostagent"
)

// patience bounds every wait and every step, so that a driver that hangs fails.
const patience = 30 * time.Second

// Fixture is a fresh host that is set up well, with at least two free cards, no
// VM that a console handed out, and room for two VMs of VM's size.
type Fixture struct {
	Driver hostagent.Driver
	Host   string
	VM     agentapi.DesiredVM // size and image that fit the host; ID and Devices are filled in
	// PowerOff powers a running VM off from inside.
	PowerOff func(t *testing.T, vm string)
	// Hold lets a process have a card's device open and returns its name and pid,
	// and what ends it.
	Hold func(t *testing.T, card string) (process string, pid int, release func())
	// Reopen makes a driver anew for the same host, as after a kill of the agent.
	Reopen func(t *testing.T) hostagent.Driver
}

// Test runs the whole contract, each part on a host of its own.
func Test(t *testing.T, newHost func(t *testing.T) Fixture) {
	for _, part := range []struct {
		name string
		run  func(*run)
	}{
		{"an inspection lists every card once and nothing as null", inspection},
		{"an unknown host is an error", unknownHost},
		{"a VM is made stopped, never started, without cards", definition},
		{"a stopped VM gets type and cards, and a repeat changes nothing", application},
		{"a card goes back to its former drivers", restoration},
		{"a VM that runs is left alone", applyWhileRunning},
		{"a card that is not what the console knows is not bound", identity},
		{"a card of another VM is not bound", inUse},
		{"of two VMs at once one gets the card", race},
		{"a held device is reported with its holder and binds afterwards", held},
		{"a start keeps its counts", start},
		{"a start of a VM that runs only keeps the counts", adoption},
		{"a stop is the console's", stop},
		{"a power-off from inside is the guest's and keeps the run", powerOff},
		{"a reboot is no stop and happens once", reboot},
		{"a VM that does not run can't be rebooted", rebootWhileStopped},
		{"a removal gives the cards back and may be repeated", removal},
		{"cleaning keeps its order, and spares a card in use", cleaning},
		{"a step whose context has ended does nothing", cancelled},
		{"a change is announced", announcement},
		{"everything outlives the agent", restart},
	} {
		t.Run(part.name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			part.run(&run{T: t, ctx: ctx, f: newHost(t)})
		})
	}
}

// run is one part on one host.
type run struct {
	*testing.T
	ctx context.Context //nolint:containedctx // bounds one part of the test
	f   Fixture
}

func (r *run) must(doing string, err error) {
	r.Helper()
	if err != nil {
		r.Fatalf("%s: %v", doing, err)
	}
}

// wantProblem checks that err is a Blocked with that code and returns it.
func (r *run) wantProblem(doing string, err error, code string) agentapi.Problem {
	r.Helper()
	var b *hostagent.Blocked
	if !errors.As(err, &b) {
		r.Fatalf("%s: error %v, want one with problem %q", doing, err, code)
	}
	if b.Problem.Code != code || b.Problem.Message == "" {
		r.Errorf("%s: problem %+v, want code %q and a message", doing, b.Problem, code)
	}
	return b.Problem
}

func (r *run) look() hostagent.Inspection {
	r.Helper()
	in, err := r.f.Driver.Inspect(r.ctx, r.f.Host)
	r.must("inspect", err)
	if in.Partial {
		r.Fatal("the inspection is partial")
	}
	return in
}

func (r *run) vm(id string) *agentapi.VMReport {
	r.Helper()
	vms := r.look().Host.VMs
	i := slices.IndexFunc(vms, func(v agentapi.VMReport) bool { return v.ID == id })
	if i < 0 {
		return nil
	}
	return &vms[i]
}

// seen is the VM, which must be there.
func (r *run) seen(id string) agentapi.VMReport {
	r.Helper()
	v := r.vm(id)
	if v == nil {
		r.Fatalf("VM %s is not there", id)
	}
	return *v
}

func (r *run) card(key string) agentapi.CardReport {
	r.Helper()
	cards := r.look().Host.Cards
	i := slices.IndexFunc(cards, func(c agentapi.CardReport) bool { return c.Key == key })
	if i < 0 {
		r.Fatalf("card %s is not there", key)
	}
	return cards[i]
}

// device is the host's nth card, as the console would hand it out.
func (r *run) device(n int) agentapi.Device {
	r.Helper()
	cards := r.look().Host.Cards
	if len(cards) < 2 {
		r.Fatalf("the host has %d cards, the contract needs 2", len(cards))
	}
	c := cards[n]
	return agentapi.Device{Key: c.Key, PCIAddress: c.PCIAddress, IOMMUGroup: c.IOMMUGroup}
}

// desired is the nth VM with cards.
func (r *run) desired(n int, devices ...agentapi.Device) agentapi.DesiredVM {
	vm := r.f.VM
	vm.ID, vm.Devices = fmt.Sprintf("i-c0ffee%02x", n), devices
	return vm
}

// apply gives a VM its cards, which must work.
func (r *run) apply(vm agentapi.DesiredVM) {
	r.Helper()
	r.must("apply", r.f.Driver.Apply(r.ctx, r.f.Host, vm))
}

// started makes and starts a VM.
func (r *run) started(devices ...agentapi.Device) agentapi.DesiredVM {
	r.Helper()
	vm := r.desired(1, devices...)
	r.apply(vm)
	r.must("start", r.f.Driver.Start(r.ctx, r.f.Host, vm.ID, hostagent.Counts{Run: 1}))
	return vm
}

func (r *run) wantPower(id, power, by string) agentapi.VMReport {
	r.Helper()
	v := r.seen(id)
	if v.Power != power || v.StoppedBy != by {
		r.Errorf("VM is %q, stopped by %q, want %q and %q", v.Power, v.StoppedBy, power, by)
	}
	return v
}

// eventually polls until so holds.
func (r *run) eventually(what string, so func() bool) {
	r.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !so() {
		select {
		case <-r.ctx.Done():
			r.Fatalf("not in time: %s", what)
		case <-tick.C:
		}
	}
}
