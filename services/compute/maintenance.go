package compute

import (
	"context"
	"errors"
	"fmt"

	"berth/db"
	"berth/services"
)

// Fate is what a host's maintenance does to one of its VMs.
type Fate struct {
	VM       VM
	Owner    string // its account's name
	Running  bool   // wanted running now; else it stays as it is
	GPUs     int    // bound to it, or planned
	Moves    bool   // to another host of its zone; else it stops, and starts when the maintenance ends
	MayLater bool   // it would move, but no host has room now
}

// Fates tells what maintenance would do to the VMs of a host, by name.
func (s *Service) Fates(ctx context.Context, host services.HostID) ([]Fate, error) {
	vms, err := s.db.HostVMs(ctx, host)
	if err != nil {
		return nil, err
	}
	fates := make([]Fate, 0, len(vms))
	for _, v := range vms {
		f := Fate{VM: v.VM, Owner: v.AccountName, GPUs: v.GPUs, Running: v.DesiredPower == services.PowerRunning}
		if f.Running && movable(v.VM, v.GPUs) {
			if f.Moves, err = roomElsewhere(ctx, s.db.Store, v.VM); err != nil {
				return nil, err
			}
			f.MayLater = !f.Moves
		}
		fates = append(fates, f)
	}
	return fates, nil
}

// movable reports whether a VM may run on another host: its disk is shared, and
// no card ties it to this one.
func movable(vm db.VM, gpus int) bool { return vm.Storage == services.StorageShared && gpus == 0 }

func roomElsewhere(ctx context.Context, store db.Store, vm db.VM) (bool, error) {
	rooms, err := store.Rooms(ctx, vm)
	for _, r := range rooms {
		if r.Host != vm.Host {
			return true, err
		}
	}
	return false, err
}

// TendHosts takes the VMs off hosts that are drained or in maintenance, and
// starts those again whose host has come back. It goes by what the books say,
// so that it goes on wherever it was cut off.
func (s *Service) TendHosts(ctx context.Context) error {
	leaving, err := s.db.LeavingVMs(ctx)
	if err != nil {
		return err
	}
	var failed []error
	for _, v := range leaving {
		failed = append(failed, services.Wrap("evacuate "+string(v), s.evacuate(ctx, v)))
	}
	resuming, err := s.db.ResumingVMs(ctx)
	failed = append(failed, err)
	for _, v := range resuming {
		failed = append(failed, services.Wrap("resume "+string(v), s.resume(ctx, v)))
	}
	return errors.Join(failed...)
}

// operator is the actor of what an operator's decision about a host or card
// means for a tenant's objects.
var operator = services.Actor{Email: services.ActorOperator}

// evacuate takes one VM off its host: it moves where it can, else it stops and
// is remembered.
func (s *Service) evacuate(ctx context.Context, id services.VMID) error {
	return s.withIdle(ctx, id, func(tx *db.Tx, vm *db.VM) error {
		h, err := tx.Host(ctx, vm.Host)
		if err != nil || h.Mode == services.HostAccepting || vm.DesiredPower != services.PowerRunning {
			return err
		}
		gpus, err := tx.VMGPUs(ctx, vm.ID)
		if err != nil {
			return err
		}
		moves := movable(*vm, len(gpus))
		if moves {
			if moves, err = roomElsewhere(ctx, tx.Store, *vm); err != nil {
				return err
			}
		}
		if !moves && h.Mode == services.HostDraining {
			return nil // it goes on until its owner stops it
		}
		vm.Resume = true
		kind := services.OpStop
		if moves {
			kind = services.OpStopStart
		}
		if err := s.begin(ctx, tx, operator, vm, kind, nil); err != nil {
			return err
		}
		return tx.InsertEvent(ctx, s.event(operator, "vm.evacuated", map[string]any{"Reason": h.ModeReason, "Moves": moves}),
			db.Subject{Account: vm.Account, VM: vm.ID, Host: vm.Host})
	})
}

// resume starts a VM again that maintenance had stopped.
func (s *Service) resume(ctx context.Context, id services.VMID) error {
	return s.withIdle(ctx, id, func(tx *db.Tx, vm *db.VM) error {
		if !vm.Resume || vm.DesiredPower != services.PowerStopped {
			return nil
		}
		return s.begin(ctx, tx, operator, vm, services.OpStart, nil)
	})
}

// withIdle locks a VM and lets do change it where it is there and no operation is open.
func (s *Service) withIdle(ctx context.Context, id services.VMID, do func(*db.Tx, *db.VM) error) error {
	return s.db.Tx(ctx, func(tx *db.Tx) error {
		vm, err := tx.LockVM(ctx, "", id)
		if services.KindOf(err) == services.KindNotFound {
			return nil
		}
		if err != nil {
			return err
		}
		_, open, err := tx.OpenOperation(ctx, id)
		if err != nil || open {
			return err
		}
		return do(tx, &vm)
	})
}

// leaveHost finds a stopped VM another host where its own takes no work. Where
// there is none, a host that is drained may still start what it has; one in
// maintenance starts nothing (host-maintenance).
func (s *Service) leaveHost(ctx context.Context, tx *db.Tx, vm *db.VM) error {
	h, err := tx.Host(ctx, vm.Host)
	if err != nil || h.Mode == services.HostAccepting || vm.Power != services.PowerStopped {
		return err
	}
	err = s.rehouse(ctx, tx, vm)
	switch {
	case err == nil || services.KindOf(err) != services.KindCapacity:
		return err
	case h.Mode == services.HostDraining:
		return nil
	}
	return services.Fail(services.KindConflict, services.CodeMaintenance, map[string]any{"VM": vm.Name, "Reason": h.ModeReason}).Because(err)
}

// ForceRelease takes a GPU from its account, whatever state it is in, and tells
// the account why. A VM that has it is stopped and started without it. Refusal:
// wrong-state where it was released meanwhile, or is built into its VM.
func (s *Service) ForceRelease(ctx context.Context, a services.Actor, id services.GPUID, reason string) error {
	return s.db.Tx(ctx, func(tx *db.Tx) error {
		vm, err := tx.LockVMOf(ctx, id)
		if err != nil {
			return err
		}
		g, err := tx.LockAnyGPU(ctx, id)
		if err != nil {
			return err
		}
		if g.Released() || g.Kind == services.GPUBuiltIn || g.VM != vm {
			return wrongState(g)
		}
		if err := s.moveFor(ctx, tx, a, g, forceRelease, "", map[string]any{"Reason": reason}); err != nil {
			return err
		}
		if err := clean(ctx, tx, g.Card); err != nil || g.VM == "" {
			return err
		}
		return s.without(ctx, tx, g)
	})
}

// without makes a VM go on without a GPU that was taken from it.
func (s *Service) without(ctx context.Context, tx *db.Tx, g db.GPU) error {
	vm, err := tx.LockVM(ctx, g.Account, g.VM)
	if err != nil {
		return err
	}
	if vm.DesiredPower != services.PowerRunning || g.State == services.GPUAttaching {
		return s.want(ctx, tx, &vm)
	}
	op, open, err := tx.OpenOperation(ctx, vm.ID)
	if err != nil {
		return err
	}
	if open {
		if err := s.finish(ctx, tx, &op, services.OpCancelled, ReasonSuperseded, ""); err != nil {
			return err
		}
	}
	return s.begin(ctx, tx, operator, &vm, services.OpStopStart, nil)
}

// asOwner lets an operator act on an operation as its account's owner may.
func (s *Service) asOwner(ctx context.Context, a services.Actor, id services.OperationID) (services.Actor, error) {
	op, err := s.db.Operation(ctx, id)
	if err != nil {
		return a, fmt.Errorf("find operation for an operator: %w", err)
	}
	a.Account, a.Role, a.Suspended = op.Account, services.RoleOwner, false
	return a, nil
}

// OperatorRetry is Retry for an operator, on any account's operation.
func (s *Service) OperatorRetry(ctx context.Context, a services.Actor, id services.OperationID) error {
	a, err := s.asOwner(ctx, a, id)
	if err != nil {
		return err
	}
	_, err = s.Retry(ctx, a, id)
	return err
}

// OperatorCancel is Cancel for an operator, on any account's operation.
func (s *Service) OperatorCancel(ctx context.Context, a services.Actor, id services.OperationID) error {
	a, err := s.asOwner(ctx, a, id)
	if err != nil {
		return err
	}
	_, err = s.Cancel(ctx, a, id)
	return err
}

// What operators read of all accounts' operations.
type (
	// OperationRow is an operation of a list.
	OperationRow = db.OperationRow
	// OperationFilter narrows a list of operations.
	OperationFilter = db.OperationFilter
)

// OperationPage is one page of operations with the counts of all that match but for their state.
type OperationPage struct {
	Operations []OperationRow
	Counts     map[services.OperationState]int
	Next       services.OperationID // the next page's After; empty: the last page
}

// Operations gives a page of all accounts' operations.
func (s *Service) Operations(ctx context.Context, f OperationFilter) (OperationPage, error) {
	p := OperationPage{Counts: map[services.OperationState]int{}}
	counts, err := s.db.CountOperations(ctx, f)
	if err != nil {
		return p, err
	}
	for _, c := range counts {
		p.Counts[c.State] = c.Count
	}
	limit := f.Limit
	f.Limit++
	p.Operations, err = s.db.ListOperations(ctx, f)
	if limit > 0 && len(p.Operations) > limit {
		p.Operations = p.Operations[:limit]
		p.Next = p.Operations[limit-1].ID
	}
	return p, err
}
