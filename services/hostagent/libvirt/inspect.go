package libvirt

import (
	"context"
	"fmt"
	"slices"

	rpc "github.com/digitalocean/go-libvirt"

	"berth/services/agentapi"
	"berth/services/hostagent"
	"berth/services/hostagent/discovery"
	"berth/services/hostagent/pci"
	"berth/services/hostagent/readiness"
)

// Inspect describes the machine, its cards and the VMs that Berth made. While
// libvirt does not answer, VMs are unknown and the inspection is partial.
func (d *Driver) Inspect(ctx context.Context, host string) (hostagent.Inspection, error) {
	if err := d.begin(ctx, host); err != nil {
		return hostagent.Inspection{}, err
	}
	found, err := d.found(ctx)
	if err != nil {
		return hostagent.Inspection{}, err
	}
	in := hostagent.Inspection{Host: found.Report, Holders: make(map[string]string), Partial: found.Partial}
	for i, c := range in.Host.Cards {
		o := d.orders.get(c.Key)
		in.Host.Cards[i].CleanedOrder, in.Host.Cards[i].FailedOrder, in.Host.Cards[i].Problem = o.Cleaned, o.Failed, o.Problem
	}
	list, err := d.domains(ctx)
	if err != nil {
		d.log.WarnContext(ctx, "libvirt does not answer", "error", err)
		in.Partial = true
		in.Host.Findings = append(in.Host.Findings, readiness.LibvirtAnswers(err))
		return in, nil
	}
	in.Host.Findings = append(in.Host.Findings, readiness.LibvirtAnswers(nil))
	for _, dom := range list {
		for key := range found.Cards {
			if dom.hasCard(key, found.Cards[key]) {
				in.Holders[key] = dom.def.Name
			}
		}
		if dom.note != nil {
			in.Host.VMs = append(in.Host.VMs, d.describe(dom, found))
		}
	}
	return in, nil
}

// hasCard tells whether a card, or a part of it, is in a definition.
func (d *domain) hasCard(key string, card pci.Card) bool {
	if d.note != nil && d.note.has(key) {
		return true
	}
	return slices.ContainsFunc(card.Functions, func(f pci.Device) bool { return slices.Contains(d.pci, f.Address) })
}

func (d *Driver) describe(dom *domain, found discovery.Found) agentapi.VMReport {
	v := agentapi.VMReport{ID: dom.def.Name, Power: d.power(dom), Run: dom.run(), Reboots: dom.note.Reboots, Devices: []string{}}
	v.VCores, v.MemoryMiB = dom.size()
	if v.Power == agentapi.PowerStopped {
		v.StoppedBy = dom.stoppedBy()
	}
	for _, c := range dom.note.Cards {
		if d.inPlace(c, found) {
			v.Devices = append(v.Devices, c.Key)
		}
	}
	return v
}

// inPlace tells whether a card of a definition stands where the definition says
// and is bound whole.
func (d *Driver) inPlace(c notedCard, found discovery.Found) bool {
	card, there := found.Cards[c.Key]
	return there && slices.Equal(c.Functions, addresses(card)) && d.binder.Taken(card)
}

func addresses(card pci.Card) []pci.Address {
	out := make([]pci.Address, len(card.Functions))
	for i, f := range card.Functions {
		out[i] = f.Address
	}
	return out
}

func (d *Driver) power(dom *domain) string {
	switch rpc.DomainState(dom.state) {
	case rpc.DomainShutoff, rpc.DomainCrashed:
		return agentapi.PowerStopped
	case rpc.DomainShutdown:
		if d.rebooting(dom.def.Name) { // QEMU has stopped the guest, libvirt is about to reset it
			return agentapi.PowerRunning
		}
		return agentapi.PowerStopping
	case rpc.DomainPaused:
		if rpc.DomainPausedReason(dom.reason) == rpc.DomainPausedStartingUp {
			return agentapi.PowerStarting
		}
	}
	return agentapi.PowerRunning
}

// run is the start that was last carried out: one that was begun counts once
// the VM runs.
func (d *domain) run() int64 {
	if d.note.Starting != 0 && !d.stopped() {
		return d.note.Starting
	}
	return d.note.Run
}

// stoppedBy tells by whom the last run of a stopped VM ended.
func (d *domain) stoppedBy() string {
	switch {
	case d.note.Run == 0:
		return ""
	case d.note.Ended != "":
		return d.note.Ended
	case d.note.Stopping == d.note.Run:
		return agentapi.StoppedByConsole
	case rpc.DomainState(d.state) == rpc.DomainShutoff && rpc.DomainShutoffReason(d.reason) == rpc.DomainShutoffShutdown:
		return agentapi.StoppedByGuest
	}
	return agentapi.StoppedByCrash
}

// must finds a VM that is to be there.
func (d *Driver) must(ctx context.Context, vm string) (*domain, error) {
	dom, err := d.own(ctx, vm)
	if err == nil && dom == nil {
		return nil, fmt.Errorf("this host has no VM %s", vm)
	}
	return dom, err
}
