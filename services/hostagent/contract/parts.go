package contract

import (
	"context"
	"errors"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"berth/services/agentapi"
	"berth/services/hostagent"
)

var address = regexp.MustCompile(`^[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]$`)

func inspection(r *run) {
	in := r.look()
	h := in.Host
	if h.Name != r.f.Host || h.Generation == "" || h.VCores <= 0 || h.MemoryMiB <= 0 || len(h.Findings) == 0 {
		r.Errorf("the host is not described: %+v", h)
	}
	if h.VMs == nil || h.Cards == nil || in.Holders == nil {
		r.Error("VMs, cards or holders are null, not empty")
	}
	seen := make(map[string]bool)
	for _, c := range h.Cards {
		if c.Key == "" || seen[c.Key] {
			r.Errorf("card key %q is empty or listed twice", c.Key)
		}
		seen[c.Key] = true
		checkCard(r, c)
	}
	names, err := r.f.Driver.Hosts(r.ctx)
	r.must("list hosts", err)
	if !slices.Contains(names, r.f.Host) || r.f.Driver.Name() == "" {
		r.Errorf("driver %q lists %v, without %s", r.f.Driver.Name(), names, r.f.Host)
	}
}

// checkCard: all functions stand in one slot, and the GPU's is the card's address.
func checkCard(r *run, c agentapi.CardReport) {
	slot, _, _ := strings.Cut(c.PCIAddress, ".")
	if len(c.VendorID) != 4 || len(c.DeviceID) != 4 || len(c.Functions) == 0 || !address.MatchString(c.PCIAddress) {
		r.Errorf("card is not described: %+v", c)
	}
	own := false
	for _, f := range c.Functions {
		own = own || f.Address == c.PCIAddress
		if !address.MatchString(f.Address) || !strings.HasPrefix(f.Address, slot+".") || len(f.Class) != 4 {
			r.Errorf("function %+v does not belong to the slot %s", f, slot)
		}
	}
	if !own {
		r.Errorf("none of the functions stands at %s", c.PCIAddress)
	}
}

func unknownHost(r *run) {
	d, vm := r.f.Driver, r.desired(1)
	const host = "no-such-host"
	_, err := d.Inspect(r.ctx, host)
	for doing, err := range map[string]error{
		"inspect": err,
		"apply":   d.Apply(r.ctx, host, vm),
		"start":   d.Start(r.ctx, host, vm.ID, hostagent.Counts{}),
		"stop":    d.Stop(r.ctx, host, vm.ID, 0),
		"reboot":  d.Reboot(r.ctx, host, vm.ID, 1),
		"remove":  d.Remove(r.ctx, host, vm.ID, false),
		"clean":   d.Clean(r.ctx, host, r.device(0).Key, 1),
	} {
		if err == nil {
			r.Errorf("%s on a host that there is not: no error", doing)
		}
	}
}

func definition(r *run) {
	vm := r.desired(1)
	r.apply(vm)
	v := r.wantPower(vm.ID, agentapi.PowerStopped, "")
	if v.Run != 0 || v.Reboots != 0 || v.Devices == nil || len(v.Devices) != 0 || v.VCores != vm.VCores || v.MemoryMiB != vm.MemoryMiB {
		r.Errorf("a new VM is %+v", v)
	}
}

func application(r *run) {
	a, b := r.device(0), r.device(1)
	vm := r.desired(1, a, b)
	vm.VCores++
	for range 2 {
		r.apply(vm)
		v := r.wantPower(vm.ID, agentapi.PowerStopped, "")
		if !sameSet(v.Devices, a.Key, b.Key) || v.VCores != vm.VCores {
			r.Errorf("VM has %v and %d cores, want both cards and %d", v.Devices, v.VCores, vm.VCores)
		}
	}
	for _, dev := range vm.Devices {
		if holder := r.look().Holders[dev.Key]; holder != vm.ID {
			r.Errorf("holder of %s is %q, want %s", dev.Key, holder, vm.ID)
		}
		for _, f := range r.card(dev.Key).Functions {
			if f.Driver != "vfio-pci" {
				r.Errorf("function %s has driver %q, want vfio-pci", f.Address, f.Driver)
			}
		}
	}
}

func sameSet(got []string, want ...string) bool {
	return slices.Equal(slices.Sorted(slices.Values(got)), slices.Sorted(slices.Values(want)))
}

func restoration(r *run) {
	dev := r.device(0)
	before := r.card(dev.Key).Functions
	r.apply(r.desired(1, dev))
	r.apply(r.desired(1))
	if v := r.seen(r.desired(1).ID); len(v.Devices) != 0 {
		r.Errorf("VM still has %v", v.Devices)
	}
	if after := r.card(dev.Key).Functions; !slices.Equal(before, after) {
		r.Errorf("functions are %v, want %v as before", after, before)
	}
	if holder := r.look().Holders[dev.Key]; holder != "" {
		r.Errorf("%s still has the card", holder)
	}
}

func applyWhileRunning(r *run) {
	vm := r.started()
	changed := r.desired(1, r.device(0))
	changed.VCores++
	if err := r.f.Driver.Apply(r.ctx, r.f.Host, changed); err == nil {
		r.Error("a VM that runs was changed")
	}
	v := r.wantPower(vm.ID, agentapi.PowerRunning, "")
	if len(v.Devices) != 0 || v.VCores != vm.VCores {
		r.Errorf("the VM is %+v", v)
	}
}

func identity(r *run) {
	dev, other := r.device(0), r.device(1)
	group := 4095
	absent, elsewhere, grouped, ungrouped := dev, dev, dev, dev
	absent.Key += "-absent"
	elsewhere.PCIAddress = other.PCIAddress
	grouped.IOMMUGroup = &group
	ungrouped.IOMMUGroup = nil
	for _, c := range []struct {
		name   string
		device agentapi.Device
		code   string
	}{
		{"absent", absent, agentapi.ProblemIdentity},
		{"at another address", elsewhere, agentapi.ProblemIdentity},
		{"in another group", grouped, agentapi.ProblemGroup},
		{"in no group", ungrouped, agentapi.ProblemGroup},
	} {
		err := r.f.Driver.Apply(r.ctx, r.f.Host, r.desired(1, c.device))
		p := r.wantProblem("bind a card that is "+c.name, err, c.code)
		if p.Card != c.device.Key {
			r.Errorf("the problem names card %q, want %q", p.Card, c.device.Key)
		}
	}
	if holders := r.look().Holders; holders[dev.Key] != "" || holders[other.Key] != "" {
		r.Errorf("cards were bound: %v", holders)
	}
}

func inUse(r *run) {
	dev := r.device(0)
	first, second := r.desired(1, dev), r.desired(2, dev)
	r.apply(first)
	err := r.f.Driver.Apply(r.ctx, r.f.Host, second)
	if p := r.wantProblem("bind a card of another VM", err, agentapi.ProblemInUse); p.Holder != first.ID {
		r.Errorf("the problem names %q, want %s", p.Holder, first.ID)
	}
	r.apply(r.desired(1))
	r.apply(second)
	if v := r.seen(second.ID); !sameSet(v.Devices, dev.Key) {
		r.Errorf("the second VM has %v after the first gave the card up", v.Devices)
	}
}

func race(r *run) {
	dev := r.device(0)
	errs := make([]error, 2)
	var wg sync.WaitGroup
	for n := range errs {
		wg.Go(func() { errs[n] = r.f.Driver.Apply(r.ctx, r.f.Host, r.desired(n+1, dev)) })
	}
	wg.Wait()
	won := 0
	for n, err := range errs {
		if has := slices.Contains(r.seen(r.desired(n+1).ID).Devices, dev.Key); has != (err == nil) {
			r.Errorf("VM %d: error %v, has the card: %t", n+1, err, has)
		}
		if err == nil {
			won++
		} else {
			r.wantProblem("lose the race", err, agentapi.ProblemInUse)
		}
	}
	if won != 1 {
		r.Errorf("%d VMs won the card, want 1", won)
	}
}

func held(r *run) {
	dev, other := r.device(0), r.device(1)
	process, pid, release := r.f.Hold(r.T, dev.Key)
	bounded, cancel := context.WithTimeout(r.ctx, time.Second)
	defer cancel()
	err := r.f.Driver.Apply(bounded, r.f.Host, r.desired(1, dev))
	p := r.wantProblem("bind a held device", err, agentapi.ProblemHeld)
	if p.Holder != process || p.PID != pid || p.Card != dev.Key {
		r.Errorf("problem is %+v, want card %s held by %s, pid %d", p, dev.Key, process, pid)
	}
	r.apply(r.desired(2, other)) // another card is not affected
	release()
	r.eventually("the card binds once it is let go", func() bool {
		return r.f.Driver.Apply(r.ctx, r.f.Host, r.desired(1, dev)) == nil
	})
}

func start(r *run) {
	vm := r.desired(1, r.device(0))
	r.apply(vm)
	r.must("start", r.f.Driver.Start(r.ctx, r.f.Host, vm.ID, hostagent.Counts{Run: 3, Reboots: 2}))
	v := r.wantPower(vm.ID, agentapi.PowerRunning, "")
	if v.Run != 3 || v.Reboots != 2 || !sameSet(v.Devices, vm.Devices[0].Key) {
		r.Errorf("VM is %+v, want run 3, 2 reboots and its card", v)
	}
}

func adoption(r *run) {
	vm := r.started()
	r.must("start again", r.f.Driver.Start(r.ctx, r.f.Host, vm.ID, hostagent.Counts{Run: 5, Reboots: 4}))
	if v := r.wantPower(vm.ID, agentapi.PowerRunning, ""); v.Run != 5 || v.Reboots != 4 {
		r.Errorf("VM has run %d and %d reboots, want 5 and 4", v.Run, v.Reboots)
	}
}

func stop(r *run) {
	vm := r.started(r.device(0))
	for range 2 {
		r.must("stop", r.f.Driver.Stop(r.ctx, r.f.Host, vm.ID, 5*time.Second))
		v := r.wantPower(vm.ID, agentapi.PowerStopped, agentapi.StoppedByConsole)
		if v.Run != 1 || len(v.Devices) != 1 {
			r.Errorf("VM is %+v, want run 1 and its card", v)
		}
	}
	r.must("start", r.f.Driver.Start(r.ctx, r.f.Host, vm.ID, hostagent.Counts{Run: 2}))
	r.must("turn off", r.f.Driver.Stop(r.ctx, r.f.Host, vm.ID, 0))
	r.wantPower(vm.ID, agentapi.PowerStopped, agentapi.StoppedByConsole)
}

func powerOff(r *run) {
	vm := r.started(r.device(0))
	r.f.PowerOff(r.T, vm.ID)
	r.eventually("the VM stops", func() bool { return r.seen(vm.ID).Power == agentapi.PowerStopped })
	v := r.wantPower(vm.ID, agentapi.PowerStopped, agentapi.StoppedByGuest)
	if v.Run != 1 || len(v.Devices) != 1 {
		r.Errorf("VM is %+v, want run 1 and its card", v)
	}
}

func reboot(r *run) {
	vm := r.started()
	done := make(chan error, 1)
	go func() { done <- r.f.Driver.Reboot(r.ctx, r.f.Host, vm.ID, 7) }()
	r.eventually("the reboot ends", func() bool {
		if v := r.seen(vm.ID); v.Power == agentapi.PowerStopped {
			r.Fatal("the VM was seen stopped")
		}
		select {
		case err := <-done:
			r.must("reboot", err)
			return true
		default:
			return false
		}
	})
	r.must("reboot again", r.f.Driver.Reboot(r.ctx, r.f.Host, vm.ID, 7))
	if v := r.wantPower(vm.ID, agentapi.PowerRunning, ""); v.Reboots != 7 || v.Run != 1 {
		r.Errorf("VM has run %d and %d reboots, want 1 and 7", v.Run, v.Reboots)
	}
}

func rebootWhileStopped(r *run) {
	vm := r.desired(1)
	r.apply(vm)
	if err := r.f.Driver.Reboot(r.ctx, r.f.Host, vm.ID, 1); err == nil {
		r.Error("a stopped VM was rebooted")
	}
	if v := r.wantPower(vm.ID, agentapi.PowerStopped, ""); v.Reboots != 0 {
		r.Errorf("VM counts %d reboots", v.Reboots)
	}
}

func removal(r *run) {
	dev := r.device(0)
	before := r.card(dev.Key).Functions
	vm := r.started(dev)
	if err := r.f.Driver.Remove(r.ctx, r.f.Host, vm.ID, false); err == nil {
		r.Error("a VM that runs was removed")
	}
	r.wantPower(vm.ID, agentapi.PowerRunning, "")
	r.must("stop", r.f.Driver.Stop(r.ctx, r.f.Host, vm.ID, 0))
	for range 2 {
		r.must("remove", r.f.Driver.Remove(r.ctx, r.f.Host, vm.ID, false))
		if r.vm(vm.ID) != nil {
			r.Error("the VM is still there")
		}
	}
	if after := r.card(dev.Key).Functions; !slices.Equal(before, after) || r.look().Holders[dev.Key] != "" {
		r.Errorf("functions are %v, want %v as before", after, before)
	}
}

func cleaning(r *run) {
	dev := r.device(0)
	r.apply(r.desired(1, dev))
	err := r.f.Driver.Clean(r.ctx, r.f.Host, dev.Key, 4)
	r.wantProblem("clean a card that a VM has", err, agentapi.ProblemInUse)
	if c := r.card(dev.Key); c.CleanedOrder != 0 || c.FailedOrder != 0 {
		r.Errorf("an order that was not tried is kept: %+v", c)
	}
	r.apply(r.desired(1))
	r.must("clean", r.f.Driver.Clean(r.ctx, r.f.Host, dev.Key, 4))
	if c := r.card(dev.Key); c.CleanedOrder != 4 || c.FailedOrder != 0 || c.Problem != nil {
		r.Errorf("after cleaning the card is %+v, want order 4 kept", c)
	}
	r.wantProblem("clean a card that there is not", r.f.Driver.Clean(r.ctx, r.f.Host, dev.Key+"-absent", 1), agentapi.ProblemIdentity)
}

func cancelled(r *run) {
	dev := r.device(0)
	r.apply(r.desired(1))
	ended, cancel := context.WithCancel(r.ctx)
	cancel()
	if err := r.f.Driver.Apply(ended, r.f.Host, r.desired(1, dev)); !errors.Is(err, context.Canceled) {
		r.Errorf("apply: error %v, want that it was cancelled", err)
	}
	if err := r.f.Driver.Clean(ended, r.f.Host, dev.Key, 9); !errors.Is(err, context.Canceled) {
		r.Errorf("clean: error %v, want that it was cancelled", err)
	}
	if c := r.card(dev.Key); c.CleanedOrder != 0 || c.FailedOrder != 0 || r.look().Holders[dev.Key] != "" {
		r.Errorf("the card was touched: %+v", c)
	}
}

func announcement(r *run) {
	vm := r.started()
	drained := false
	for !drained {
		select {
		case <-r.f.Driver.Changes():
		default:
			drained = true
		}
	}
	r.f.PowerOff(r.T, vm.ID)
	r.eventually("the stop is seen after an announcement", func() bool {
		select {
		case <-r.f.Driver.Changes():
			return r.seen(vm.ID).Power == agentapi.PowerStopped
		default:
			return false
		}
	})
}

func restart(r *run) {
	dev := r.device(0)
	vm := r.started(dev)
	r.must("reboot", r.f.Driver.Reboot(r.ctx, r.f.Host, vm.ID, 2))
	r.must("clean", r.f.Driver.Clean(r.ctx, r.f.Host, r.device(1).Key, 6))
	before := r.look()
	r.f.Driver = r.f.Reopen(r.T)
	v := r.wantPower(vm.ID, agentapi.PowerRunning, "")
	if v.Run != 1 || v.Reboots != 2 || !sameSet(v.Devices, dev.Key) {
		r.Errorf("VM is %+v, want run 1, 2 reboots and its card", v)
	}
	for _, c := range before.Host.Cards {
		if now := r.card(c.Key); now.CleanedOrder != c.CleanedOrder {
			r.Errorf("card %s has order %d, want %d as before", c.Key, now.CleanedOrder, c.CleanedOrder)
		}
	}
	r.must("stop", r.f.Driver.Stop(r.ctx, r.f.Host, vm.ID, 0))
	r.must("remove", r.f.Driver.Remove(r.ctx, r.f.Host, vm.ID, false))
	if holder := r.look().Holders[dev.Key]; holder != "" {
		r.Errorf("%s still has the card", holder)
	}
}
