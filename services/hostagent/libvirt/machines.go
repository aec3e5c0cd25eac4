package libvirt

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	rpc "github.com/digitalocean/go-libvirt"

	"berth/services/agentapi"
	"berth/services/hostagent"
	"berth/services/hostagent/pci"
)

// Apply makes a VM, or gives a stopped one its type and cards.
func (d *Driver) Apply(ctx context.Context, host string, want agentapi.DesiredVM) error {
	if err := d.begin(ctx, host); err != nil {
		return err
	}
	defer d.turn()
	dom, err := d.own(ctx, want.ID)
	if err == nil && dom == nil {
		var at disks
		if at, err = d.store.create(ctx, want); err == nil {
			dom = d.blank(want.ID, at)
		}
	}
	if err != nil {
		return err
	}
	if !dom.stopped() {
		return fmt.Errorf("VM %s is not stopped", want.ID)
	}
	if err := d.reduce(ctx, dom, want); err != nil {
		return err
	}
	for _, dev := range want.Devices {
		if err := d.attach(ctx, want.ID, dev); err != nil {
			return err
		}
	}
	return nil
}

// reduce gives a VM its type, and back to the host the cards that it is not to
// have: out of the definition first, so that no start can meet one half way.
func (d *Driver) reduce(ctx context.Context, dom *domain, want agentapi.DesiredVM) error {
	found, err := d.found(ctx)
	if err != nil {
		return err
	}
	var stay []notedCard
	var leave []string
	for _, c := range dom.note.Cards {
		if slices.ContainsFunc(want.Devices, func(dev agentapi.Device) bool { return dev.Key == c.Key }) {
			stay = append(stay, c)
		} else {
			leave = append(leave, c.Key)
		}
	}
	dom.setSize(want)
	dom.setCards(stay, found.Cards, found.Nodes)
	release, err := d.claim(want.ID, leave...)
	if err != nil {
		return err
	}
	defer release()
	if err := d.put(ctx, dom); err != nil {
		return err
	}
	for _, key := range leave {
		if err := d.binder.Return(ctx, key); err != nil {
			return err
		}
	}
	return nil
}

// attach takes a card from the host and puts it into a VM's definition. Right
// before and after the card is taken it is checked that it is the right one and
// nobody else's.
func (d *Driver) attach(ctx context.Context, vm string, dev agentapi.Device) error {
	release, err := d.claim(vm, dev.Key)
	if err != nil {
		return err
	}
	defer release()
	card, err := d.verify(ctx, vm, dev)
	if err != nil {
		return err
	}
	if err := d.binder.Take(ctx, dev.Key, card); err != nil {
		return err
	}
	if err := d.enter(ctx, vm, dev); err != nil {
		// The card goes back, now or when the driver tidies up.
		return errors.Join(err, d.binder.Return(ctx, dev.Key))
	}
	return nil
}

// enter puts a taken card into a definition.
func (d *Driver) enter(ctx context.Context, vm string, dev agentapi.Device) error {
	card, err := d.verify(ctx, vm, dev)
	if err != nil {
		return err
	}
	dom, err := d.must(ctx, vm)
	if err != nil {
		return err
	}
	if !dom.stopped() {
		return fmt.Errorf("VM %s did not stay stopped", vm)
	}
	noted := notedCard{Key: dev.Key, Functions: addresses(card)}
	if slices.ContainsFunc(dom.note.Cards, func(c notedCard) bool { return c.Key == noted.Key && slices.Equal(c.Functions, noted.Functions) }) {
		return nil
	}
	found, err := d.found(ctx)
	if err != nil {
		return err
	}
	list := slices.DeleteFunc(slices.Clone(dom.note.Cards), func(c notedCard) bool { return c.Key == dev.Key })
	dom.setCards(append(list, noted), found.Cards, found.Nodes)
	return d.put(ctx, dom)
}

// verify checks a card against what is seen now, whatever the console knows.
func (d *Driver) verify(ctx context.Context, vm string, dev agentapi.Device) (pci.Card, error) {
	found, err := d.found(ctx)
	if err != nil {
		return pci.Card{}, err
	}
	card, there := found.Cards[dev.Key]
	switch {
	case !there:
		return card, hostagent.Block(agentapi.ProblemIdentity, dev.Key, "this host has no card %s; another may stand at %s", dev.Key, dev.PCIAddress)
	case string(card.GPU.Address) != dev.PCIAddress:
		return card, hostagent.Block(agentapi.ProblemIdentity, dev.Key, "the card is at %s, not at %s", card.GPU.Address, dev.PCIAddress)
	case card.GPU.IOMMUGroup == nil || dev.IOMMUGroup == nil || *card.GPU.IOMMUGroup != *dev.IOMMUGroup:
		return card, hostagent.Block(agentapi.ProblemGroup, dev.Key, "the card's IOMMU group is not the one that the console knows")
	}
	return card, d.unused(ctx, vm, dev.Key, card)
}

// unused checks that no other domain has a card in its definition.
func (d *Driver) unused(ctx context.Context, vm, key string, card pci.Card) error {
	list, err := d.domains(ctx)
	if err != nil {
		return err
	}
	for _, dom := range list {
		if dom.def.Name != vm && dom.hasCard(key, card) {
			return inUse(key, dom.def.Name)
		}
	}
	return nil
}

func inUse(key, holder string) *hostagent.Blocked {
	b := hostagent.Block(agentapi.ProblemInUse, key, "%s has the card", holder)
	b.Problem.Holder = holder
	return b
}

// claim keeps others from the cards while something is done with them, so that
// of two that come at the same time one is told of the other.
func (d *Driver) claim(owner string, cards ...string) (release func(), err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, key := range cards {
		if other, taken := d.claims[key]; taken && other != owner {
			return nil, inUse(key, other)
		}
	}
	for _, key := range cards {
		d.claims[key] = owner
	}
	return func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		for _, key := range cards {
			delete(d.claims, key)
		}
	}, nil
}

// Start starts a stopped VM, and keeps counts with one that runs.
func (d *Driver) Start(ctx context.Context, host, vm string, counts hostagent.Counts) error {
	if err := d.begin(ctx, host); err != nil {
		return err
	}
	defer d.turn()
	dom, err := d.must(ctx, vm)
	if err != nil {
		return err
	}
	done := func(n *note) {
		n.Run, n.Reboots, n.Starting, n.Stopping, n.Ended = counts.Run, counts.Reboots, 0, 0, ""
	}
	if !dom.stopped() {
		return d.amend(ctx, vm, done)
	}
	if err := d.complete(ctx, dom); err != nil {
		return err
	}
	if err := d.amend(ctx, vm, func(n *note) { n.Starting, n.Reboots = counts.Run, counts.Reboots }); err != nil {
		return err
	}
	err = tell(ctx, d.link, func(to daemon) error { return to.DomainCreate(dom.ref) })
	if e, answered := errors.AsType[rpc.Error](err); answered {
		b := hostagent.Block(agentapi.ProblemStart, "", "%s", e.Message)
		b.Cause = err
		return b
	}
	if err != nil {
		return fmt.Errorf("start %s: %w", vm, err)
	}
	return d.amend(ctx, vm, done)
}

// complete checks that all cards of a definition are bound: after the host was
// restarted they are back with their own drivers.
func (d *Driver) complete(ctx context.Context, dom *domain) error {
	found, err := d.found(ctx)
	if err != nil {
		return err
	}
	for _, c := range dom.note.Cards {
		if !d.inPlace(c, found) {
			return hostagent.Block(agentapi.ProblemBind, c.Key, "the card is not bound for the VM")
		}
	}
	return nil
}

// Stop asks the guest to shut down, and turns the VM off after grace.
func (d *Driver) Stop(ctx context.Context, host, vm string, grace time.Duration) error {
	if err := d.begin(ctx, host); err != nil {
		return err
	}
	defer d.turn()
	dom, err := d.must(ctx, vm)
	if err != nil || dom.stopped() {
		return err
	}
	if err := d.amend(ctx, vm, func(n *note) {
		n.Run, n.Starting, n.Ended = dom.run(), 0, ""
		n.Stopping = n.Run
	}); err != nil {
		return err
	}
	stopped := func(dom *domain) bool { return dom == nil || dom.stopped() }
	if grace > 0 {
		polite, cancel := context.WithTimeout(ctx, grace)
		defer cancel()
		err := tell(polite, d.link, func(to daemon) error { return to.DomainShutdownFlags(dom.ref, rpc.DomainShutdownAcpiPowerBtn) })
		if err == nil {
			err = d.await(polite, vm, stopped)
		}
		if err == nil {
			return nil
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	err = tell(ctx, d.link, func(to daemon) error { return to.DomainDestroyFlags(dom.ref, 0) })
	if err != nil && !is(err, rpc.ErrOperationInvalid) { // it stopped meanwhile
		return fmt.Errorf("turn %s off: %w", vm, err)
	}
	return d.await(ctx, vm, stopped)
}

// Reboot asks the guest to restart, and resets the VM where it does not.
func (d *Driver) Reboot(ctx context.Context, host, vm string, reboots int64) error {
	if err := d.begin(ctx, host); err != nil {
		return err
	}
	defer d.turn()
	dom, err := d.must(ctx, vm)
	if err != nil {
		return err
	}
	if dom.stopped() {
		return fmt.Errorf("VM %s does not run", vm)
	}
	if dom.note.Reboots >= reboots {
		return nil
	}
	if err := d.restart(ctx, dom); err != nil {
		return err
	}
	return d.amend(ctx, vm, func(n *note) { n.Reboots = reboots })
}

func (d *Driver) restart(ctx context.Context, dom *domain) error {
	vm := dom.def.Name
	defer d.force(vm)()
	before := d.rebootsOf(vm)
	polite, cancel := context.WithTimeout(ctx, d.rebootGrace)
	defer cancel()
	err := tell(polite, d.link, func(to daemon) error { return to.DomainReboot(dom.ref, rpc.DomainRebootAcpiPowerBtn) })
	if err == nil {
		err = d.await(polite, vm, func(dom *domain) bool { return dom == nil || dom.stopped() || d.rebootsOf(vm) > before })
	}
	if err == nil && d.rebootsOf(vm) > before {
		return nil
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err := tell(ctx, d.link, func(to daemon) error { return to.DomainReset(dom.ref, 0) }); err != nil {
		return fmt.Errorf("reset %s: %w", vm, err)
	}
	return nil
}

// Remove forgets a stopped VM and gives its cards back.
func (d *Driver) Remove(ctx context.Context, host, vm string, keepDisk bool) error {
	if err := d.begin(ctx, host); err != nil {
		return err
	}
	defer d.turn()
	dom, err := d.own(ctx, vm)
	if err != nil {
		return err
	}
	if dom != nil {
		if err := d.undefine(ctx, dom); err != nil {
			return err
		}
	}
	if keepDisk {
		return nil
	}
	return d.store.remove(ctx, vm)
}

func (d *Driver) undefine(ctx context.Context, dom *domain) error {
	vm := dom.def.Name
	if !dom.stopped() {
		return fmt.Errorf("VM %s is not stopped", vm)
	}
	for _, c := range dom.note.Cards {
		if err := d.binder.Return(ctx, c.Key); err != nil {
			return err
		}
	}
	const all = rpc.DomainUndefineManagedSave | rpc.DomainUndefineSnapshotsMetadata | rpc.DomainUndefineNvram | rpc.DomainUndefineCheckpointsMetadata
	err := tell(ctx, d.link, func(to daemon) error { return to.DomainUndefineFlags(dom.ref, all) })
	if err != nil && !is(err, rpc.ErrNoDomain) {
		return fmt.Errorf("forget %s: %w", vm, err)
	}
	return nil
}

// lost is how long an event of libvirt may be missing before it is looked.
const lost = time.Second

// await waits until so holds of a VM; nil: it is gone.
func (d *Driver) await(ctx context.Context, vm string, so func(*domain) bool) error {
	tick := time.NewTicker(lost)
	defer tick.Stop()
	for {
		next := d.next()
		dom, err := d.find(ctx, vm)
		if err != nil {
			return err
		}
		if so(dom) {
			return nil
		}
		select {
		case <-next:
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// force marks a VM as being rebooted by the console until the function that is
// returned is called.
func (d *Driver) force(vm string) (done func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.forced[vm]++
	return func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		if d.forced[vm]--; d.forced[vm] == 0 {
			delete(d.forced, vm)
		}
	}
}

func (d *Driver) rebooting(vm string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.forced[vm] > 0
}

func (d *Driver) rebootsOf(vm string) uint64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.reboots[vm]
}
