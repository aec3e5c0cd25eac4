package compute

import (
	"context"
	"slices"

	"berth/db"
	"berth/services"
)

// want writes what should be of a VM under a new revision of its host's agent,
// which the given GPUs wait for as well.
func (s *Service) want(ctx context.Context, tx *db.Tx, vm *db.VM, gpus ...db.GPU) error {
	revision, err := tx.Bump(ctx, vm.Host)
	if err != nil {
		return err
	}
	vm.Revision = revision
	if err := tx.WantVM(ctx, *vm); err != nil {
		return err
	}
	for _, g := range gpus {
		if err := tx.SetGPURevision(ctx, g.ID, revision); err != nil {
			return err
		}
	}
	return nil
}

// seat gives each fresh GPU a card on the one host where all GPUs of the VM can
// be, and names that host. With local storage it is the VM's host, and so it is
// as long as a GPU is bound to the VM there; else any host of the zone that the
// VM fits on, its own first. The refusal is no-card-on-host.
func (s *Service) seat(ctx context.Context, tx *db.Tx, vm db.VM, present, fresh []db.GPU) (services.HostID, error) {
	hosts, err := seatHosts(ctx, tx, vm, present)
	if err != nil {
		return "", err
	}
	for _, h := range hosts {
		ok, err := seatOn(ctx, tx, h, present, fresh)
		if ok || err != nil {
			return h, err
		}
	}
	return "", noCardOnHost(ctx, tx, vm, fresh[0])
}

// seatHosts lists the hosts that the GPUs of a VM may be on, best first.
func seatHosts(ctx context.Context, tx *db.Tx, vm db.VM, present []db.GPU) ([]services.HostID, error) {
	if vm.Storage == services.StorageLocal {
		return []services.HostID{vm.Host}, nil
	}
	if len(present) > 0 {
		return []services.HostID{present[0].Host}, nil
	}
	rooms, err := tx.Rooms(ctx, vm)
	hosts := make([]services.HostID, 0, len(rooms))
	for _, r := range rooms {
		hosts = append(hosts, r.Host)
	}
	return hosts, err
}

// seatOn tries to put the GPUs on cards of one host, near their siblings, and
// notes the account's data on them. Where there are too few nothing changes, and
// it gives false.
func seatOn(ctx context.Context, tx *db.Tx, h services.HostID, siblings, gpus []db.GPU) (bool, error) {
	return tx.Try(ctx, func() (bool, error) {
		ok, err := seatAll(ctx, tx, h, siblings, gpus)
		if !ok || err != nil {
			return false, err
		}
		ids := make([]services.GPUID, 0, len(gpus))
		for _, g := range gpus {
			ids = append(ids, g.ID)
		}
		return true, tx.MarkUsed(ctx, ids)
	})
}

func seatAll(ctx context.Context, tx *db.Tx, h services.HostID, siblings, gpus []db.GPU) (bool, error) {
	var node *int
	if len(siblings) > 0 {
		node = siblings[0].NUMANode
	}
	for _, g := range gpus {
		g, err := tx.AccountGPU(ctx, g.Account, g.ID) // an exchange may just have moved it
		if err != nil {
			return false, err
		}
		seat, ok, err := seatOne(ctx, tx, h, node, g)
		if !ok || err != nil {
			return false, err
		}
		node = seat.NUMANode
	}
	return true, nil
}

// exchangeAttempts bounds how often a partner may be snatched away.
const exchangeAttempts = 5

func seatOne(ctx context.Context, tx *db.Tx, h services.HostID, node *int, g db.GPU) (db.Seat, bool, error) {
	use, err := tx.CardUse(ctx, g.Card)
	if err != nil {
		return db.Seat{}, false, err
	}
	q := db.SeatQuery{GPU: g, Hosts: []services.HostID{h}, NUMANode: node, Clean: use.UsedBy == "", Generation: use.Generation}
	for range exchangeAttempts {
		seat, ok, err := tx.FindSeat(ctx, q)
		if !ok || err != nil {
			return db.Seat{}, false, err
		}
		switch seat.Partner {
		case g.ID:
			return seat, true, nil
		case "":
			return seat, true, repoint(ctx, tx, g, seat.Card, use)
		}
		if ok, err = tx.Exchange(ctx, g, seat.Partner, seat.Card); ok || err != nil {
			return seat, ok, err
		}
	}
	return db.Seat{}, false, nil
}

// repoint moves a GPU to a free card; the card it leaves is cleaned if the
// account's data may be on it.
func repoint(ctx context.Context, tx *db.Tx, g db.GPU, card services.CardID, use db.CardUse) error {
	if err := tx.Repoint(ctx, g.ID, card); err != nil {
		return err
	}
	if use.UsedBy == "" {
		return nil
	}
	return clean(ctx, tx, g.Card)
}

// moveTo puts a stopped VM on another host, where it waits until the former
// one has confirmed that it is gone: it never runs twice.
func (s *Service) moveTo(ctx context.Context, tx *db.Tx, vm *db.VM, h services.HostID) error {
	fits, err := tx.LockRoom(ctx, *vm, h)
	if err != nil {
		return err
	}
	if !fits {
		return noRoom(*vm)
	}
	revision, err := tx.Bump(ctx, vm.Host)
	if err != nil {
		return err
	}
	if err := tx.Evict(ctx, vm.ID, vm.Host, true, revision, s.now()); err != nil {
		return err
	}
	vm.Host = h
	return tx.Withdraw(ctx, vm.ID, h)
}

// noRoom says that no host of the zone takes the VM.
func noRoom(vm db.VM) *services.Error {
	return services.Fail(services.KindCapacity, services.CodeNoCapacity, map[string]any{
		"Zone": vm.Zone, "VCores": vm.VCores, "MemoryMiB": vm.MemoryMiB, "Generation": vm.Generation, "Type": vm.Type,
	})
}

// noCardOnHost says that the GPU can't come to where the VM is, and how many
// hosts of the zone have a free card of its model.
func noCardOnHost(ctx context.Context, tx *db.Tx, vm db.VM, g db.GPU) error {
	elsewhere, err := seatsElsewhere(ctx, tx.Store, g)
	if err != nil {
		return err
	}
	return &services.Error{Kind: services.KindInvalid, Violations: []services.Violation{noCardViolation(vm, g, elsewhere)}}
}

func noCardViolation(vm db.VM, g db.GPU, hosts []services.HostID) services.Violation {
	elsewhere := len(slices.DeleteFunc(slices.Clone(hosts), func(h services.HostID) bool { return h == vm.Host }))
	return services.Violation{Code: services.CodeNoCardOnHost, Args: map[string]any{
		"Model": g.Model, "Zone": g.Zone, "VM": vm.Name, "GPU": g.Name, "ID": string(g.ID), "Elsewhere": elsewhere,
	}}
}

func seatsElsewhere(ctx context.Context, store db.Store, g db.GPU) ([]services.HostID, error) {
	use, err := store.CardUse(ctx, g.Card)
	if err != nil {
		return nil, err
	}
	return store.SeatHosts(ctx, db.SeatQuery{GPU: g, Clean: use.UsedBy == "", Generation: use.Generation})
}
