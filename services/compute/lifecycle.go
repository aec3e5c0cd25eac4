package compute

import (
	"context"
	"slices"

	"berth/db"
	"berth/services"
)

// Transition is one arrow of a GPU's life cycle.
type Transition struct {
	Event string // the kind of its event
	From  []services.GPUState
	To    services.GPUState // empty: released
}

// The life cycle, whole. No state changes but by one of these.
var (
	planAttach    = Transition{"gpu.attach-planned", []services.GPUState{services.GPUAllocated}, services.GPUAttaching}
	cancelAttach  = Transition{"gpu.attach-cancelled", []services.GPUState{services.GPUAttaching}, services.GPUAllocated}
	confirmAttach = Transition{"gpu.attached", []services.GPUState{services.GPUAttaching}, services.GPUAttached}
	planDetach    = Transition{"gpu.detach-planned", []services.GPUState{services.GPUAttached}, services.GPUDetaching}
	cancelDetach  = Transition{"gpu.detach-cancelled", []services.GPUState{services.GPUDetaching}, services.GPUAttached}
	confirmDetach = Transition{"gpu.detached", []services.GPUState{services.GPUDetaching}, services.GPUAllocated}
	keepAfterVM   = Transition{"gpu.kept", withVM, services.GPUAllocated}
	releaseWithVM = Transition{"gpu.released-with-vm", withVM, ""}
	release       = Transition{"gpu.released", []services.GPUState{services.GPUAllocated}, ""}
	forceRelease  = Transition{"gpu.force-released", services.GPUStates, ""} // by an operator
)

var withVM = []services.GPUState{services.GPUAttaching, services.GPUAttached, services.GPUDetaching}

// eventAllocated is the event that begins a GPU's life.
const eventAllocated = "gpu.allocated"

// Transitions lists every arrow of the life cycle.
func Transitions() []Transition {
	return []Transition{
		planAttach, cancelAttach, confirmAttach, planDetach, cancelDetach, confirmDetach, keepAfterVM, releaseWithVM, release,
		forceRelease,
	}
}

// move carries out a transition; vm is the VM from then on. A GPU that is in no
// state that the transition starts from is wrong-state.
func (s *Service) move(ctx context.Context, tx *db.Tx, a services.Actor, g db.GPU, t Transition, vm services.VMID) error {
	return s.moveFor(ctx, tx, a, g, t, vm, map[string]any{})
}

// moveFor is move with data for the event.
func (s *Service) moveFor(ctx context.Context, tx *db.Tx, a services.Actor, g db.GPU, t Transition, vm services.VMID, data map[string]any) error {
	if g.VMName != "" {
		data["VM"] = g.VMName
	}
	moved, err := tx.MoveGPU(ctx, db.Move{GPU: g.ID, From: t.From, To: t.To, VM: vm, Event: s.event(a, t.Event, data)})
	if err == nil && !moved {
		err = wrongState(g)
	}
	return err
}

// planned reports whether a GPU waits for its VM to stop or for its host.
func planned(g db.GPU) bool {
	return slices.Contains([]services.GPUState{services.GPUAttaching, services.GPUDetaching}, g.State)
}

func wrongState(g db.GPU) *services.Error {
	state := string(g.State)
	if g.Released() {
		state = "released"
	}
	args := map[string]any{"GPU": g.Name, "ID": string(g.ID), "State": state, "VM": ""}
	if g.VM != "" {
		args["VM"] = g.VMName
	}
	return services.Fail(services.KindConflict, services.CodeWrongState, args)
}
