package compute

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"berth/db"
	"berth/services"
	"berth/services/agentapi"
)

// Waits are how long the steps of operations may take before they count as stuck.
type Waits struct {
	Halt   time.Duration // a stop, with the guest's own shutdown
	Settle time.Duration // GPUs bound and unbound while the VM is stopped
	Boot   time.Duration // a start, with GPUs bound first
	Reboot time.Duration
	Remove time.Duration // a deleted VM's clean-up
}

// DefaultWaits suit hosts that boot guests from disk.
var DefaultWaits = Waits{
	Halt: 3 * time.Minute, Settle: 3 * time.Minute, Boot: 5 * time.Minute, Reboot: 3 * time.Minute, Remove: 5 * time.Minute,
}

func (w Waits) orDefault() Waits {
	or := func(a, b time.Duration) time.Duration {
		if a > 0 {
			return a
		}
		return b
	}
	d := DefaultWaits
	return Waits{
		Halt: or(w.Halt, d.Halt), Settle: or(w.Settle, d.Settle), Boot: or(w.Boot, d.Boot),
		Reboot: or(w.Reboot, d.Reboot), Remove: or(w.Remove, d.Remove),
	}
}

// Step is one part of an operation.
type Step string

// The steps. Each is entered by writing what is wanted, and done when it was seen.
const (
	StepHalt    Step = "halt"    // the VM is stopped
	StepSettle  Step = "settle"  // planned GPUs are bound or unbound
	StepConvert Step = "convert" // the VM gets its new type
	StepBoot    Step = "boot"    // the VM runs, with its GPUs
	StepReboot  Step = "reboot"  // the guest restarted, without a stop
	StepRemove  Step = "remove"  // every host confirmed that the VM is gone
)

var steps = map[services.OperationKind][]Step{
	services.OpCreate:    {StepBoot},
	services.OpStart:     {StepBoot},
	services.OpStop:      {StepHalt},
	services.OpReboot:    {StepReboot},
	services.OpStopStart: {StepHalt, StepSettle, StepBoot},
	services.OpResize:    {StepHalt, StepSettle, StepConvert, StepBoot},
	services.OpDelete:    {StepRemove},
}

// Steps lists the steps of a kind of operation.
func Steps(kind services.OperationKind) []Step { return steps[kind] }

// Reasons why an operation failed, or is stuck; "error.<code>" names others.
const (
	ReasonLate        = "late"        // the step passed its deadline
	ReasonHostFailed  = "host-failed" // the host gave up; Detail says why
	ReasonPoweredOff  = "powered-off" // the guest was powered off from inside, or crashed
	ReasonVMDeleted   = "vm-deleted"  // somebody deleted the VM meanwhile
	ReasonSuperseded  = "superseded"  // a stop was asked for meanwhile
	ReasonByRequest   = "by-request"  // somebody cancelled it
	reasonErrorPrefix = "error."      // followed by a code: a rule broke on the way
)

// begin starts an operation on a locked VM and goes as far as it can.
func (s *Service) begin(ctx context.Context, tx *db.Tx, a services.Actor, vm *db.VM, kind services.OperationKind, spec *resizeSpec) error {
	id, err := services.NewID[services.OperationID](s.random)
	if err != nil {
		return err
	}
	op := db.Operation{
		ID: id, VM: vm.ID, Account: vm.Account, Kind: kind, State: services.OpRunning, Actor: a.Email,
		CreatedAt: s.now(), Deadline: s.now().Add(s.wait(steps[kind][0])),
	}
	if op.Spec, err = spec.encode(); err != nil {
		return err
	}
	if err := tx.InsertOperation(ctx, op); err != nil {
		return err
	}
	if err := tx.InsertEvent(ctx, s.event(a, "vm."+string(kind)+"-ordered", nil), db.Subject{Account: vm.Account, VM: vm.ID}); err != nil {
		return err
	}
	if err := s.enter(ctx, tx, vm, &op); err != nil {
		return err
	}
	return s.advance(ctx, tx, vm, &op)
}

func (s *Service) wait(step Step) time.Duration {
	switch step {
	case StepHalt:
		return s.waits.Halt
	case StepSettle, StepConvert:
		return s.waits.Settle
	case StepBoot:
		return s.waits.Boot
	case StepReboot:
		return s.waits.Reboot
	default:
		return s.waits.Remove
	}
}

// enter writes what the operation's present step wants.
func (s *Service) enter(ctx context.Context, tx *db.Tx, vm *db.VM, op *db.Operation) error {
	switch steps[op.Kind][op.Step] {
	case StepHalt:
		return s.wantStopped(ctx, tx, vm)
	case StepConvert:
		return s.convertByPlan(ctx, tx, vm, op)
	case StepBoot:
		return s.wantRunning(ctx, tx, vm)
	case StepReboot:
		vm.Reboots++
		return s.want(ctx, tx, vm)
	default:
		return nil // settling and removing go by what is wanted already
	}
}

func (s *Service) wantStopped(ctx context.Context, tx *db.Tx, vm *db.VM) error {
	vm.DesiredPower = services.PowerStopped
	return s.want(ctx, tx, vm)
}

// wantRunning orders a start of its own number, on the host where the VM's GPUs are.
func (s *Service) wantRunning(ctx context.Context, tx *db.Tx, vm *db.VM) error {
	gpus, err := tx.VMGPUs(ctx, vm.ID)
	if err != nil {
		return err
	}
	if err := s.follow(ctx, tx, vm, gpus); err != nil {
		return err
	}
	before := vm.Host
	if err := s.leaveHost(ctx, tx, vm); err != nil {
		return err
	}
	vm.DesiredPower, vm.Resume = services.PowerRunning, false
	vm.Run++
	if vm.Host == before {
		gpus = nil // what waits for its host waits for the same one
	}
	return s.want(ctx, tx, vm, gpus...)
}

// done reports whether what the present step waits for is true.
func (s *Service) done(ctx context.Context, tx *db.Tx, vm *db.VM, op *db.Operation) (bool, error) {
	switch steps[op.Kind][op.Step] {
	case StepHalt:
		return vm.Power == services.PowerStopped, nil
	case StepSettle:
		gpus, err := tx.VMGPUs(ctx, vm.ID)
		return err == nil && !slices.ContainsFunc(gpus, planned), err
	case StepBoot:
		return vm.Power == services.PowerRunning && vm.SeenRun >= vm.Run, nil
	case StepReboot:
		return vm.Power == services.PowerRunning && vm.SeenReboots >= vm.Reboots, nil
	case StepRemove:
		open, err := tx.Evicting(ctx, vm.ID)
		return err == nil && !open, err
	default:
		return true, nil
	}
}

// advance takes an open operation through every step that is done. A rule that
// breaks on the way ends it as failed; the VM stays as the steps before left it.
func (s *Service) advance(ctx context.Context, tx *db.Tx, vm *db.VM, op *db.Operation) error {
	for op.Open() {
		done, err := s.done(ctx, tx, vm, op)
		if err != nil || !done {
			return err
		}
		op.Step++
		if op.Step == len(steps[op.Kind]) {
			op.Step--
			return s.finish(ctx, tx, op, services.OpDone, "", "")
		}
		op.State, op.Reason, op.Detail = services.OpRunning, "", ""
		op.Deadline = s.now().Add(s.wait(steps[op.Kind][op.Step]))
		if err := s.tryEnter(ctx, tx, vm, op); err != nil {
			return s.refused(ctx, tx, op, err)
		}
		if err := tx.SaveOperation(ctx, *op); err != nil {
			return err
		}
	}
	return nil
}

// tryEnter is enter of which nothing stays where it fails.
func (s *Service) tryEnter(ctx context.Context, tx *db.Tx, vm *db.VM, op *db.Operation) error {
	before := *vm
	_, err := tx.Try(ctx, func() (bool, error) {
		err := s.enter(ctx, tx, vm, op)
		return err == nil, err
	})
	if err != nil {
		*vm = before
	}
	return err
}

func (s *Service) refused(ctx context.Context, tx *db.Tx, op *db.Operation, err error) error {
	e, ok := services.AsError(err)
	if !ok || len(e.Violations) == 0 {
		return err
	}
	return s.finish(ctx, tx, op, services.OpFailed, reasonErrorPrefix+string(e.Violations[0].Code), "")
}

// finish ends an operation. A failure or cancellation is an event; success
// shows in what the VM became.
func (s *Service) finish(ctx context.Context, tx *db.Tx, op *db.Operation, state services.OperationState, reason, detail string) error {
	now := s.now()
	op.State, op.Reason, op.Detail, op.EndedAt = state, reason, detail, &now
	if err := tx.SaveOperation(ctx, *op); err != nil {
		return err
	}
	if state == services.OpDone {
		return tx.Announce(ctx, op.Account, op.VM)
	}
	s.log.InfoContext(ctx, "operation ended early", "operation", op.ID, "vm", op.VM, "kind", op.Kind, "state", state, "reason", reason)
	return tx.InsertEvent(ctx, s.event(console, "vm.operation-"+string(state),
		map[string]any{"Operation": string(op.Kind), "Reason": reason, "Detail": detail}),
		db.Subject{Account: op.Account, VM: op.VM})
}

// judge ends an operation that its host has given up, and notes why one waits.
func (s *Service) judge(ctx context.Context, tx *db.Tx, vm *db.VM, op *db.Operation) error {
	problem, ok, err := Problem(*vm)
	if err != nil || !ok || !problem.Final || steps[op.Kind][op.Step] == StepRemove {
		return err
	}
	if vm.DesiredPower == services.PowerRunning && vm.Power == services.PowerStopped {
		if err := s.wantStopped(ctx, tx, vm); err != nil {
			return err
		}
	}
	return s.finish(ctx, tx, op, services.OpFailed, ReasonHostFailed, problem.Message)
}

// Problem reads what the host says keeps a VM from what is wanted.
func Problem(vm db.VM) (p agentapi.Problem, ok bool, err error) {
	if vm.Problem == nil {
		return p, false, nil
	}
	if err := json.Unmarshal(*vm.Problem, &p); err != nil {
		return p, false, fmt.Errorf("decode problem of %s: %w", vm.ID, err)
	}
	return p, true, nil
}

// Retry gives a stuck operation its time again, or starts a failed one anew. A
// failed one that another has followed stays as it is, so that asking twice
// starts one.
func (s *Service) Retry(ctx context.Context, a services.Actor, id services.OperationID) (services.VMID, error) {
	return s.withOperation(ctx, a, id, func(tx *db.Tx, vm *db.VM, op *db.Operation) error {
		switch op.State {
		case services.OpStuck:
			op.State, op.Reason, op.Detail = services.OpRunning, "", ""
			op.Deadline = s.now().Add(s.wait(steps[op.Kind][op.Step]))
			if err := s.want(ctx, tx, vm); err != nil {
				return err
			}
			return tx.SaveOperation(ctx, *op)
		case services.OpFailed:
			last, _, err := tx.LastOperation(ctx, vm.ID)
			if err != nil || last.ID != op.ID {
				return err
			}
			return s.again(ctx, tx, a, vm, op)
		default:
			return nil
		}
	})
}

// again starts a failed operation anew, from what the VM is now.
func (s *Service) again(ctx context.Context, tx *db.Tx, a services.Actor, vm *db.VM, op *db.Operation) error {
	var spec *resizeSpec
	kind := op.Kind
	switch {
	case kind == services.OpResize:
		spec = &resizeSpec{}
		if err := json.Unmarshal(*op.Spec, spec); err != nil {
			return fmt.Errorf("decode resize %s: %w", op.ID, err)
		}
	case vm.Stopped() && kind != services.OpStop:
		kind = services.OpStart
	}
	return s.begin(ctx, tx, a, vm, kind, spec)
}

// Cancel ends an open operation and takes back what it still wants. A deletion
// can't be cancelled (wrong-state).
func (s *Service) Cancel(ctx context.Context, a services.Actor, id services.OperationID) (services.VMID, error) {
	return s.withOperation(ctx, a, id, func(tx *db.Tx, vm *db.VM, op *db.Operation) error {
		switch {
		case !op.Open():
			return nil
		case op.Kind == services.OpDelete:
			return services.Fail(services.KindConflict, services.CodeWrongState, map[string]any{"State": "deleted", "VM": vm.Name, "GPU": ""})
		}
		if err := s.takeBack(ctx, tx, vm, op); err != nil {
			return err
		}
		return s.finish(ctx, tx, op, services.OpCancelled, ReasonByRequest, "")
	})
}

// takeBack undoes the wish of a step that is not done: a VM that was to start
// stays stopped, one that was to stop goes on running.
func (s *Service) takeBack(ctx context.Context, tx *db.Tx, vm *db.VM, op *db.Operation) error {
	switch steps[op.Kind][op.Step] {
	case StepBoot:
		return s.wantStopped(ctx, tx, vm)
	case StepHalt:
		return s.wantRunning(ctx, tx, vm)
	default:
		return nil
	}
}

func (s *Service) withOperation(ctx context.Context, a services.Actor, id services.OperationID,
	do func(*db.Tx, *db.VM, *db.Operation) error,
) (services.VMID, error) {
	if err := a.MayWrite(); err != nil {
		return "", err
	}
	var vmID services.VMID
	err := s.db.Tx(ctx, func(tx *db.Tx) error {
		op, err := tx.AccountOperation(ctx, a.Account, id)
		if err != nil {
			return err
		}
		vmID = op.VM
		vm, err := tx.LockVMRow(ctx, op.VM)
		if err != nil {
			return err
		}
		if op, err = tx.AccountOperation(ctx, a.Account, id); err != nil { // as it is under the lock
			return err
		}
		return do(tx, &vm, &op)
	})
	return vmID, err
}

// Reconcile looks after every open operation: it moves those on that can move,
// and marks as stuck those whose step has passed its deadline.
func (s *Service) Reconcile(ctx context.Context) error {
	pending, err := s.db.UnfinishedOperations(ctx)
	if err != nil {
		return err
	}
	var failed []error
	for _, p := range pending {
		if err := s.reconcileOne(ctx, p); err != nil {
			failed = append(failed, fmt.Errorf("reconcile %s: %w", p.ID, err))
		}
	}
	return errors.Join(failed...)
}

func (s *Service) reconcileOne(ctx context.Context, p db.PendingOperation) error {
	return s.db.Tx(ctx, func(tx *db.Tx) error {
		vm, err := tx.LockVMRow(ctx, p.VM)
		if err != nil {
			return err
		}
		op, open, err := tx.OpenOperation(ctx, p.VM)
		if err != nil || !open {
			return err
		}
		if err := s.advance(ctx, tx, &vm, &op); err != nil || !op.Open() {
			return err
		}
		if op.State == services.OpStuck || s.now().Before(op.Deadline) {
			return nil
		}
		return s.stick(ctx, tx, &vm, &op)
	})
}

// stick marks an operation as stuck, with what its host says.
func (s *Service) stick(ctx context.Context, tx *db.Tx, vm *db.VM, op *db.Operation) error {
	op.State, op.Reason = services.OpStuck, ReasonLate
	if problem, ok, err := Problem(*vm); err == nil && ok {
		op.Detail = problem.Message
	}
	if err := tx.SaveOperation(ctx, *op); err != nil {
		return err
	}
	return tx.InsertEvent(ctx, s.event(console, "vm.operation-stuck", map[string]any{"Operation": string(op.Kind), "Detail": op.Detail}),
		db.Subject{Account: op.Account, VM: op.VM})
}
