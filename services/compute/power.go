package compute

import (
	"context"

	"berth/db"
	"berth/services"
)

// Power starts, stops or reboots a VM. Asking again for what is under way is
// accepted; a stop is always possible and ends what else was under way.
// Refusals: invalid-value, wrong-state and busy (conflict), no-capacity.
func (s *Service) Power(ctx context.Context, a services.Actor, id services.VMID, action services.PowerAction, key string) error {
	if !action.Valid() {
		return services.NoneOf("action", string(action), "start", "stop", "reboot", "stop-start")
	}
	_, err := s.once(ctx, a, key, vmWrite{VM: id, Doing: "power", Detail: action}, func(tx *db.Tx) (string, error) {
		vm, err := lockVM(ctx, tx, a, id)
		if err != nil {
			return "", err
		}
		return string(id), s.power(ctx, tx, a, &vm, action)
	})
	return err
}

func (s *Service) power(ctx context.Context, tx *db.Tx, a services.Actor, vm *db.VM, action services.PowerAction) error {
	kind := services.OperationKind(action)
	op, open, err := tx.OpenOperation(ctx, vm.ID)
	if err != nil {
		return err
	}
	switch {
	case open && op.Kind == kind:
		return nil
	case open && action == services.ActionStop:
		if err := s.finish(ctx, tx, &op, services.OpCancelled, ReasonSuperseded, ""); err != nil {
			return err
		}
	case open:
		return busy(*vm, op)
	}
	if !powerAllowed(*vm, action) {
		return vmWrongState(*vm, vm.Power)
	}
	vm.Resume = false // what its owner asks for now counts, not what ran before its host's maintenance
	return s.begin(ctx, tx, a, vm, kind, nil)
}

// powerAllowed reports whether an action makes sense for a VM with nothing under way.
func powerAllowed(vm db.VM, action services.PowerAction) bool {
	switch action {
	case services.ActionStart:
		return vm.DesiredPower == services.PowerStopped
	case services.ActionStop:
		return vm.DesiredPower == services.PowerRunning
	case services.ActionReboot:
		return vm.DesiredPower == services.PowerRunning && vm.Power == services.PowerRunning
	default:
		return vm.DesiredPower == services.PowerRunning
	}
}

func vmWrongState(vm db.VM, power services.Power) *services.Error {
	state := string(power)
	if power == services.PowerAbsent {
		state = "deleted"
	}
	return services.Fail(services.KindConflict, services.CodeWrongState, map[string]any{"VM": vm.Name, "State": state, "GPU": ""})
}
