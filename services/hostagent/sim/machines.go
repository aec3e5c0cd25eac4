package sim

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"berth/services/agentapi"
	"berth/services/hostagent"
)

// Apply makes a VM or gives a stopped one its type and cards.
func (d *Driver) Apply(ctx context.Context, hostName string, want agentapi.DesiredVM) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	h, err := d.host(hostName)
	if err != nil {
		return err
	}
	v := h.vm(want.ID)
	if v == nil {
		v = &vm{ID: want.ID, Image: want.Image, Power: agentapi.PowerStopped}
		h.vms = append(h.vms, v)
		h.disks[want.ID] = true
	}
	if v.Power != agentapi.PowerStopped {
		return fmt.Errorf("VM %s is %s, not stopped", v.ID, v.Power)
	}
	v.VCores, v.MemoryMiB = want.VCores, want.MemoryMiB
	v.Devices = slices.DeleteFunc(slices.Clone(v.Devices), func(key string) bool {
		return !slices.ContainsFunc(want.Devices, func(dev agentapi.Device) bool { return dev.Key == key })
	})
	d.alter()
	for _, dev := range want.Devices {
		if err := d.bind(ctx, h, v, dev); err != nil {
			return err
		}
	}
	return nil
}

// bind gives a card to a stopped VM. It checks before the card's driver is
// exchanged and once more afterwards, since that takes its time.
func (d *Driver) bind(ctx context.Context, h *host, v *vm, dev agentapi.Device) error {
	if err := h.mayBind(v.ID, dev); err != nil {
		return err
	}
	if slices.Contains(v.Devices, dev.Key) {
		return nil
	}
	if err := d.unheld(ctx, h.card(dev.Key)); err != nil {
		return err
	}
	if err := d.rest(ctx, d.latency.Bind); err != nil {
		return err
	}
	if err := h.mayBind(v.ID, dev); err != nil {
		return err
	}
	if h.vm(v.ID) != v || v.Power != agentapi.PowerStopped {
		return fmt.Errorf("VM %s did not stay stopped", v.ID)
	}
	v.Devices = append(v.Devices, dev.Key)
	d.alter()
	return nil
}

func (h *host) mayBind(vm string, dev agentapi.Device) error {
	c := h.card(dev.Key)
	switch {
	case c == nil || c.gone:
		return hostagent.Block(agentapi.ProblemIdentity, dev.Key, "there is no card %s", dev.Key)
	case c.spec.PCIAddress != dev.PCIAddress:
		return hostagent.Block(agentapi.ProblemIdentity, dev.Key, "another device stands at %s", dev.PCIAddress)
	case c.spec.IOMMUGroup == nil || dev.IOMMUGroup == nil || *c.spec.IOMMUGroup != *dev.IOMMUGroup:
		return hostagent.Block(agentapi.ProblemGroup, dev.Key, "the card has no IOMMU group, or another")
	}
	holder := h.holder(dev.Key)
	if c.cleaning {
		holder = "cleaning"
	}
	if holder != "" && holder != vm {
		return inUse(dev.Key, holder)
	}
	return nil
}

func inUse(key, holder string) error {
	b := hostagent.Block(agentapi.ProblemInUse, key, "%s has the card", holder)
	b.Problem.Holder = holder
	return b
}

// unheld finds out whether a process has the device open. One that is found
// beforehand is named at once; one that is not makes the unbind hang until it
// lets go or ctx ends.
func (d *Driver) unheld(ctx context.Context, c *card) error {
	if c.hold == nil {
		return nil
	}
	held := held(c)
	if !c.hold.hidden {
		return held
	}
	if c.problem == nil || c.problem.Code != agentapi.ProblemHeld {
		p := held.Problem
		p.Since = time.Now()
		c.problem = &p
		d.alter()
	}
	if err := d.until(ctx, func() bool { return c.hold == nil }); err != nil {
		held.Cause = err
		return held
	}
	return nil
}

func held(c *card) *hostagent.Blocked {
	b := hostagent.Block(agentapi.ProblemHeld, c.spec.Key(), "%s (pid %d) has %s open", c.hold.process, c.hold.pid, c.spec.PCIAddress)
	b.Problem.Holder, b.Problem.PID = c.hold.process, c.hold.pid
	return b
}

// Start boots a stopped VM.
func (d *Driver) Start(ctx context.Context, hostName, id string, counts hostagent.Counts) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	h, v, err := d.find(hostName, id)
	if err != nil {
		return err
	}
	switch v.Power {
	case agentapi.PowerRunning:
		v.Run, v.Reboots = counts.Run, counts.Reboots
		d.alter()
		return nil
	case agentapi.PowerStopping:
		return fmt.Errorf("VM %s is shutting down", id)
	case agentapi.PowerStopped:
		if err := h.mayStart(v); err != nil {
			return err
		}
		v.Power = agentapi.PowerStarting
		d.begin(v, change{Kind: booting, Until: time.Now().Add(d.latency.Boot), Count: counts})
	case agentapi.PowerStarting:
		v.Change.Count = counts
	}
	if err := d.until(ctx, func() bool { return v.Power != agentapi.PowerStarting }); err != nil {
		return err
	}
	if v.Power != agentapi.PowerRunning {
		return hostagent.Block(agentapi.ProblemStart, "", "VM %s ended while it booted", id)
	}
	return nil
}

// mayStart refuses what a hypervisor would: a start that a test wants to fail,
// a card that has vanished, too little memory or too few cores.
func (h *host) mayStart(v *vm) error {
	if len(v.failStart) > 0 {
		message := v.failStart[0]
		v.failStart = v.failStart[1:]
		return hostagent.Block(agentapi.ProblemStart, "", "%s", message)
	}
	for _, key := range v.Devices {
		if c := h.card(key); c == nil || c.gone {
			return hostagent.Block(agentapi.ProblemStart, key, "the card does not answer")
		}
	}
	cores, memory := v.VCores, v.MemoryMiB
	for _, other := range h.vms {
		if other.Power != agentapi.PowerStopped {
			cores += other.VCores
			memory += other.MemoryMiB
		}
	}
	if cores > h.spec.VCores || memory > h.spec.MemoryMiB {
		return hostagent.Block(agentapi.ProblemStart, "", "the host has %d cores and %d MiB; with this VM %d and %d would be used",
			h.spec.VCores, h.spec.MemoryMiB, cores, memory)
	}
	return nil
}

// Stop shuts a VM down, or turns it off when grace has passed.
func (d *Driver) Stop(ctx context.Context, hostName, id string, grace time.Duration) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	_, v, err := d.find(hostName, id)
	if err != nil {
		return err
	}
	if v.Power == agentapi.PowerStopped {
		return nil
	}
	if grace <= 0 {
		d.off(v, agentapi.StoppedByConsole)
		return nil
	}
	if v.Power != agentapi.PowerStopping {
		d.pressButton(v)
	}
	bounded, cancel := context.WithTimeout(ctx, grace)
	defer cancel()
	err = d.until(bounded, func() bool { return v.Power == agentapi.PowerStopped })
	switch {
	case err == nil:
	case ctx.Err() != nil:
		if v.Change == nil && v.Power == agentapi.PowerStopping { // the guest did not listen
			v.Power = agentapi.PowerRunning
			d.alter()
		}
		return ctx.Err()
	default:
		d.off(v, agentapi.StoppedByConsole)
	}
	return nil
}

// pressButton asks the guest to shut down.
func (d *Driver) pressButton(v *vm) {
	v.Power, v.Change = agentapi.PowerStopping, nil
	if v.deaf {
		d.alter()
		return
	}
	d.begin(v, change{Kind: shuttingDown, Until: time.Now().Add(d.latency.Shutdown), By: agentapi.StoppedByConsole})
}

// Reboot restarts the guest; the VM runs all the while.
func (d *Driver) Reboot(ctx context.Context, hostName, id string, reboots int64) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	_, v, err := d.find(hostName, id)
	if err != nil {
		return err
	}
	if v.Power != agentapi.PowerRunning {
		return fmt.Errorf("VM %s is %s, not running", id, v.Power)
	}
	if v.Reboots >= reboots {
		return nil
	}
	if v.Change == nil {
		d.begin(v, change{Kind: rebooting, Until: time.Now().Add(d.latency.Reboot), Count: hostagent.Counts{Reboots: reboots}})
	} else {
		v.Change.Count.Reboots = reboots
	}
	if err := d.until(ctx, func() bool { return v.Reboots >= reboots || v.Power != agentapi.PowerRunning }); err != nil {
		return err
	}
	if v.Reboots < reboots {
		return fmt.Errorf("VM %s ended while it rebooted", id)
	}
	return nil
}

// Remove forgets a stopped VM.
func (d *Driver) Remove(_ context.Context, hostName, id string, keepDisk bool) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	h, err := d.host(hostName)
	if err != nil {
		return err
	}
	v := h.vm(id)
	if v != nil && v.Power != agentapi.PowerStopped {
		return fmt.Errorf("VM %s is %s, not stopped", id, v.Power)
	}
	h.vms = slices.DeleteFunc(h.vms, func(other *vm) bool { return other == v })
	if !keepDisk {
		delete(h.disks, id)
	}
	d.alter()
	return nil
}

// Clean resets and scrubs a card.
func (d *Driver) Clean(ctx context.Context, hostName, key string, order int64) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	h, err := d.host(hostName)
	if err != nil {
		return err
	}
	c := h.card(key)
	switch {
	case c == nil || c.gone:
		return hostagent.Block(agentapi.ProblemIdentity, key, "there is no card %s", key)
	case h.holder(key) != "":
		return inUse(key, h.holder(key))
	case c.cleaning:
		return inUse(key, "cleaning")
	case c.cleaned >= order:
		return nil
	case c.hold != nil:
		return held(c)
	}
	c.cleaning = true
	err = d.rest(ctx, d.latency.Clean)
	c.cleaning = false
	return d.cleaned(c, order, err)
}

// cleaned notes how cleaning ended.
func (d *Driver) cleaned(c *card, order int64, err error) error {
	defer d.alter()
	switch {
	case errors.Is(err, context.Canceled): // the agent ends; whatever made it end says nothing of the card
		return err
	case err != nil:
		return c.failReset(order, "the scrub did not end in time")
	case c.gone:
		return c.failReset(order, "the card did not come back from its reset")
	case c.failResets > 0:
		c.failResets--
		return c.failReset(order, "the card did not come back from its reset")
	}
	c.cleaned, c.problem = order, nil
	return nil
}

func (c *card) failReset(order int64, message string) error {
	b := hostagent.Block(agentapi.ProblemReset, c.spec.Key(), "%s", message)
	p := b.Problem
	p.Since, p.Final = time.Now(), true
	c.failed, c.problem = order, &p
	return b
}

// begin lets a VM do something; d.mu is held.
func (d *Driver) begin(v *vm, ch change) {
	v.Change = &ch
	d.schedule(v)
	d.alter()
}

// schedule ends the VM's change when its time comes, unless another has taken its place.
func (d *Driver) schedule(v *vm) {
	ch := v.Change
	d.after(time.Until(ch.Until), func() {
		if v.Change == ch {
			d.finish(v, ch)
		}
	})
}

func (d *Driver) finish(v *vm, ch *change) {
	v.Change = nil
	switch ch.Kind {
	case booting:
		v.Power, v.StoppedBy = agentapi.PowerRunning, ""
		v.Run, v.Reboots = ch.Count.Run, ch.Count.Reboots
	case shuttingDown:
		v.Power, v.StoppedBy = agentapi.PowerStopped, ch.By
	case rebooting:
		v.Reboots = max(v.Reboots, ch.Count.Reboots)
	}
	d.alter()
}

// off ends a VM at once.
func (d *Driver) off(v *vm, by string) {
	v.Power, v.StoppedBy, v.Change = agentapi.PowerStopped, by, nil
	d.alter()
}
