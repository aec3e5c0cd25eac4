package sim

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"berth/services/agentapi"
)

// SetLatency sets how long things take from now on.
func (d *Driver) SetLatency(l Latency) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.latency = l
}

// HoldCard lets a process have a card's device open: it is found before a bind,
// which is refused with its name and pid. It lets go after the time; 0: never.
func (d *Driver) HoldCard(key, process string, pid int, lasting time.Duration) error {
	return d.holdCard(key, &hold{process: process, pid: pid}, lasting)
}

// HangBind lets a process have a card's device open that is not found before a
// bind: the bind hangs until it lets go, and the card shows the problem.
func (d *Driver) HangBind(key, process string, pid int, lasting time.Duration) error {
	return d.holdCard(key, &hold{process: process, pid: pid, hidden: true}, lasting)
}

func (d *Driver) holdCard(key string, by *hold, lasting time.Duration) error {
	return d.withCard(key, func(c *card) {
		c.hold = by
		if lasting > 0 {
			d.after(lasting, func() {
				if c.hold == by {
					c.letGo()
					d.alter()
				}
			})
		}
	})
}

// ReleaseCard ends HoldCard and HangBind.
func (d *Driver) ReleaseCard(key string) error { return d.withCard(key, (*card).letGo) }

func (c *card) letGo() {
	c.hold = nil
	if c.problem != nil && c.problem.Code == agentapi.ProblemHeld {
		c.problem = nil
	}
}

// FailResets lets the next n cleanings of a card fail.
func (d *Driver) FailResets(key string, n int) error {
	return d.withCard(key, func(c *card) { c.failResets = n })
}

// RemoveCard lets a card vanish from its bus.
func (d *Driver) RemoveCard(key string) error {
	return d.withCard(key, func(c *card) { c.gone = true })
}

// ReturnCard ends RemoveCard.
func (d *Driver) ReturnCard(key string) error {
	return d.withCard(key, func(c *card) { c.gone = false })
}

// MoveCard puts a card into another slot of its host; the functions move with it.
func (d *Driver) MoveCard(key, address string) error {
	return d.withCard(key, func(c *card) { c.move(address) })
}

func (c *card) move(address string) {
	c.spec.PCIAddress = address
	for i := range c.spec.Functions {
		c.spec.Functions[i].Address = fmt.Sprintf("%s.%d", address[:len(address)-2], i)
	}
}

// MoveToHost puts a card into a slot of another host; what was kept of its
// cleanings goes with it.
func (d *Driver) MoveToHost(key, hostName, address string) error {
	return d.Duplicate(key, hostName, address, true)
}

// Duplicate lets a card show up on another host as well, or instead (alone).
func (d *Driver) Duplicate(key, hostName, address string, alone bool) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	to, err := d.host(hostName)
	if err != nil {
		return err
	}
	for _, h := range d.hosts {
		c := h.card(key)
		if c == nil || h == to {
			continue
		}
		twin := *c
		twin.spec.Functions = slices.Clone(c.spec.Functions)
		twin.move(address)
		to.cards = append(to.cards, &twin)
		if alone {
			h.cards = slices.DeleteFunc(h.cards, func(other *card) bool { return other == c })
		}
		d.alter()
		return nil
	}
	return fmt.Errorf("no other simulated host has a card %s", key)
}

// FailInspect lets inspections of a host fail with err; nil ends it.
func (d *Driver) FailInspect(hostName string, err error) error {
	return d.withHost(hostName, func(h *host) { h.blind = err })
}

// PartialInspect lets inspections of a host miss its VMs, and say so.
func (d *Driver) PartialInspect(hostName string, on bool) error {
	return d.withHost(hostName, func(h *host) { h.partial = on })
}

// SetFinding replaces the line of a host's checklist that has f's code, or adds one.
func (d *Driver) SetFinding(hostName string, f agentapi.Finding) error {
	return d.withHost(hostName, func(h *host) { h.setFinding(f) })
}

// AddForeignVM puts a VM that no console handed out on a host, with cards.
// Without cards it is removed.
func (d *Driver) AddForeignVM(hostName, name string, cards ...string) error {
	return d.withHost(hostName, func(h *host) {
		h.foreign[name] = cards
		if len(cards) == 0 {
			delete(h.foreign, name)
		}
	})
}

// FailStarts lets the next n starts of a VM fail with a message.
func (d *Driver) FailStarts(vmID, message string, n int) error {
	return d.withVM(vmID, func(v *vm) error {
		v.failStart = nil
		for range n {
			v.failStart = append(v.failStart, message)
		}
		return nil
	})
}

// IgnoreShutdown lets a guest ignore the power button, or heed it again.
func (d *Driver) IgnoreShutdown(vmID string, on bool) error {
	return d.withVM(vmID, func(v *vm) error {
		v.deaf = on
		return nil
	})
}

// PowerOffGuest powers a running VM off from inside. It returns at once; the
// guest takes its time to shut down.
func (d *Driver) PowerOffGuest(vmID string) error {
	return d.withRunning(vmID, func(v *vm) {
		v.Power = agentapi.PowerStopping
		d.begin(v, change{Kind: shuttingDown, Until: time.Now().Add(d.latency.Shutdown), By: agentapi.StoppedByGuest})
	})
}

// RebootGuest reboots a running VM from inside.
func (d *Driver) RebootGuest(vmID string) error {
	return d.withRunning(vmID, func(v *vm) {
		if v.Change == nil {
			d.begin(v, change{Kind: rebooting, Until: time.Now().Add(d.latency.Reboot)})
		}
	})
}

// CrashVM ends a running VM at once, without anybody's wish.
func (d *Driver) CrashVM(vmID string) error {
	return d.withRunning(vmID, func(v *vm) { d.off(v, agentapi.StoppedByCrash) })
}

// HasDisk tells whether a host has the disk of a VM.
func (d *Driver) HasDisk(hostName, vmID string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	h, err := d.host(hostName)
	return err == nil && h.disks[vmID]
}

func (d *Driver) withHost(name string, do func(*host)) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	h, err := d.host(name)
	if err != nil {
		return err
	}
	do(h)
	d.alter()
	return nil
}

func (d *Driver) withCard(key string, do func(*card)) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, h := range d.hosts {
		if c := h.card(key); c != nil {
			do(c)
			d.alter()
			return nil
		}
	}
	return fmt.Errorf("no simulated host has a card %s", key)
}

// withVM prefers the host on which the VM is not stopped: one that moves
// between hosts is defined on both for a moment.
func (d *Driver) withVM(id string, do func(*vm) error) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	var found *vm
	for _, h := range d.hosts {
		if v := h.vm(id); v != nil && (found == nil || found.Power == agentapi.PowerStopped) {
			found = v
		}
	}
	if found == nil {
		return fmt.Errorf("no simulated host has a VM %s", id)
	}
	if err := do(found); err != nil {
		return err
	}
	d.alter()
	return nil
}

func (d *Driver) withRunning(id string, do func(*vm)) error {
	return d.withVM(id, func(v *vm) error {
		if v.Power != agentapi.PowerRunning {
			return errors.New("VM " + id + " is " + v.Power + ", not running")
		}
		do(v)
		return nil
	})
}
