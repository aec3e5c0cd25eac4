package compute

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"berth/db"
	"berth/services"
	"berth/services/agentapi"
)

// Observation is one VM as an agent's report shows it.
type Observation struct {
	Agent    services.AgentID
	Epoch    int64
	Sequence int64
	Revision int64 // of the desired state, as far as the agent has reached it
	Host     services.HostID
	VM       agentapi.VMReport
}

// Observe follows what was seen of a VM: its power, its GPUs, and the operation
// under way. What a newer report of the agent may already have replaced is
// passed over. Only what a report says changes anything; what it leaves out does not.
func (s *Service) Observe(ctx context.Context, o Observation) error {
	return s.db.Tx(ctx, func(tx *db.Tx) error {
		vm, err := tx.LockVMRow(ctx, services.VMID(o.VM.ID))
		if err != nil {
			return err
		}
		newest, err := tx.Newest(ctx, o.Agent, o.Epoch, o.Sequence)
		if err != nil || !newest {
			return err
		}
		if o.VM.Power == agentapi.PowerAbsent {
			return s.sawGone(ctx, tx, &vm, o)
		}
		if vm.DeletedAt != nil || vm.Host != o.Host {
			return nil // that host has still to give it up
		}
		return s.sawVM(ctx, tx, &vm, o)
	})
}

// sawGone follows a host's word that a VM is no longer there.
func (s *Service) sawGone(ctx context.Context, tx *db.Tx, vm *db.VM, o Observation) error {
	asked, err := tx.Evicted(ctx, vm.ID, o.Host, o.Revision)
	if err != nil || !asked {
		return err
	}
	if err := s.unboundBy(ctx, tx, vm, o.Host); err != nil {
		return err
	}
	still, err := tx.Evicting(ctx, vm.ID)
	if err != nil {
		return err
	}
	if vm.DeletedAt != nil && !still {
		vm.Power, vm.PowerSince, vm.Problem = services.PowerAbsent, s.now(), nil
		if err := tx.SawVM(ctx, *vm); err != nil {
			return err
		}
		if err := tx.InsertEvent(ctx, s.event(host, "vm.removed", nil), db.Subject{Account: vm.Account, VM: vm.ID, Host: o.Host}); err != nil {
			return err
		}
	} else if vm.DeletedAt == nil {
		if err := s.want(ctx, tx, vm); err != nil { // its new host may start it now
			return err
		}
	}
	return s.moveOn(ctx, tx, vm, o)
}

// unboundBy ends the detachment of GPUs on a host that has given their VM up.
func (s *Service) unboundBy(ctx context.Context, tx *db.Tx, vm *db.VM, h services.HostID) error {
	gpus, err := tx.VMGPUs(ctx, vm.ID)
	if err != nil {
		return err
	}
	for _, g := range gpus {
		if g.State == services.GPUDetaching && g.Host == h && vm.Host != h {
			if err := s.move(ctx, tx, host, g, confirmDetach, ""); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *Service) sawVM(ctx context.Context, tx *db.Tx, vm *db.VM, o Observation) error {
	if err := s.sawPower(ctx, tx, vm, o); err != nil {
		return err
	}
	if err := s.sawPowerOff(ctx, tx, vm, o); err != nil {
		return err
	}
	if err := s.sawDevices(ctx, tx, vm, o); err != nil {
		return err
	}
	return s.moveOn(ctx, tx, vm, o)
}

// sawPower writes what was seen, and tells of it where it changed.
func (s *Service) sawPower(ctx context.Context, tx *db.Tx, vm *db.VM, o Observation) error {
	before := *vm
	vm.Power, vm.SeenRun, vm.SeenReboots = services.Power(o.VM.Power), o.VM.Run, o.VM.Reboots
	problem, err := encodeProblem(o.VM.Problem)
	if err != nil {
		return err
	}
	vm.Problem = problem
	turned := before.Power != vm.Power || before.SeenRun != vm.SeenRun || before.SeenReboots != vm.SeenReboots
	if before.Power != vm.Power {
		vm.PowerSince = s.now()
	}
	if !turned && sameProblem(before.Problem, vm.Problem) {
		return nil
	}
	if err := tx.SawVM(ctx, *vm); err != nil {
		return err
	}
	if kind := powerEvent(before, *vm); kind != "" {
		return tx.InsertEvent(ctx, s.event(host, kind, nil),
			db.Subject{Account: vm.Account, VM: vm.ID, Host: vm.Host, From: string(before.Power), To: string(vm.Power)})
	}
	return tx.Announce(ctx, vm.Account, vm.ID)
}

// powerEvent names the event of what was seen; passing states have none, and
// neither has a VM that was made and is not started yet.
func powerEvent(before, after db.VM) string {
	switch {
	case before.Power == services.PowerPending && after.Power == services.PowerStopped:
		return ""
	case after.SeenReboots > before.SeenReboots:
		return "vm.rebooted"
	case after.Power == before.Power:
		return ""
	case after.Power == services.PowerRunning:
		return "vm.running"
	case after.Power == services.PowerStopped:
		return "vm.stopped"
	default:
		return ""
	}
}

// sawPowerOff accepts that a VM which should run was powered off from inside or
// crashed: it stays stopped, and its planned GPUs change as at any stop.
func (s *Service) sawPowerOff(ctx context.Context, tx *db.Tx, vm *db.VM, o Observation) error {
	off := vm.Power == services.PowerStopped && vm.DesiredPower == services.PowerRunning &&
		o.VM.Run >= vm.Run && o.Revision >= vm.Revision && o.VM.StoppedBy != agentapi.StoppedByConsole
	if !off {
		return nil
	}
	kind := "vm.powered-off"
	if o.VM.StoppedBy == agentapi.StoppedByCrash {
		kind = "vm.crashed"
	}
	if err := s.wantStopped(ctx, tx, vm); err != nil {
		return err
	}
	if err := tx.InsertEvent(ctx, s.event(host, kind, nil), db.Subject{Account: vm.Account, VM: vm.ID, Host: vm.Host}); err != nil {
		return err
	}
	op, open, err := tx.OpenOperation(ctx, vm.ID)
	if err != nil || !open {
		return err
	}
	return s.finish(ctx, tx, &op, services.OpFailed, ReasonPoweredOff, "")
}

// sawDevices moves planned GPUs whose card the host has bound or let go, at the
// revision that planned it, since the VM stopped.
func (s *Service) sawDevices(ctx context.Context, tx *db.Tx, vm *db.VM, o Observation) error {
	gpus, err := tx.VMGPUs(ctx, vm.ID)
	if err != nil {
		return err
	}
	for _, g := range gpus {
		if t, ok := confirmed(g, *vm, o); ok {
			if err := s.move(ctx, tx, host, g, t, vmAfter(t, vm.ID)); err != nil {
				return err
			}
		}
	}
	if !vm.Stopped() {
		return nil
	}
	return s.followQuietly(ctx, tx, vm, gpus)
}

// confirmed decides whether a report ends the wait of a planned GPU.
func confirmed(g db.GPU, vm db.VM, o Observation) (Transition, bool) {
	stoppedSince := vm.Power == services.PowerStopped || o.VM.Run > g.PlannedRun
	if g.Host != o.Host || o.Revision < g.Revision || o.VM.Devices == nil || !stoppedSince {
		return Transition{}, false
	}
	bound := slices.Contains(o.VM.Devices, g.CardKey)
	switch {
	case g.State == services.GPUAttaching && bound:
		return confirmAttach, true
	case g.State == services.GPUDetaching && !bound:
		return confirmDetach, true
	default:
		return Transition{}, false
	}
}

func vmAfter(t Transition, vm services.VMID) services.VMID {
	if t.To == services.GPUAllocated || t.To == "" {
		return ""
	}
	return vm
}

// followQuietly moves a stopped VM to its planned GPUs; where there is no room
// now, the next start tries again and says so.
func (s *Service) followQuietly(ctx context.Context, tx *db.Tx, vm *db.VM, gpus []db.GPU) error {
	err := s.follow(ctx, tx, vm, gpus)
	if services.KindOf(err) == services.KindCapacity {
		s.log.WarnContext(ctx, "no room for a VM beside its planned GPUs", "vm", vm.ID)
		return nil
	}
	return err
}

// moveOn takes the VM's open operation further after something was seen. What
// a host gave up on counts only once it knows what is wanted now.
func (s *Service) moveOn(ctx context.Context, tx *db.Tx, vm *db.VM, o Observation) error {
	op, open, err := tx.OpenOperation(ctx, vm.ID)
	if err != nil || !open {
		return err
	}
	if err := s.advance(ctx, tx, vm, &op); err != nil || !op.Open() || o.Revision < vm.Revision {
		return err
	}
	return s.judge(ctx, tx, vm, &op)
}

func encodeProblem(p *agentapi.Problem) (*db.JSON, error) {
	if p == nil {
		return nil, nil
	}
	b, err := json.Marshal(p)
	if err != nil {
		return nil, fmt.Errorf("encode problem: %w", err)
	}
	text := db.JSON(b)
	return &text, nil
}

// sameProblem compares what is stored, which Postgres may have spelled otherwise.
func sameProblem(a, b *db.JSON) bool {
	if a == nil || b == nil {
		return a == b
	}
	var x, y agentapi.Problem
	if json.Unmarshal(*a, &x) != nil || json.Unmarshal(*b, &y) != nil {
		return false
	}
	sameSince := x.Since.Equal(y.Since)
	x.Since, y.Since = time.Time{}, time.Time{}
	return sameSince && x == y
}
