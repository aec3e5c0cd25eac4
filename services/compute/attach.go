package compute

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"slices"

	"berth/db"
	"berth/services"
	"berth/services/catalog"
)

type attachWrite struct {
	VM   services.VMID
	GPUs []services.GPUID
}

// Attach plans GPUs for a VM: all of them or none, with every broken rule
// reported. They are attached when the VM is stopped and its host confirms. What
// is planned already is accepted again, and detaching from the same VM is
// cancelled. Refusals: the attach rules and no-card-on-host (invalid),
// wrong-state and busy (conflict).
func (s *Service) Attach(ctx context.Context, a services.Actor, vm services.VMID, gpus []services.GPUID, key string) error {
	gpus = slices.Compact(slices.Sorted(slices.Values(gpus)))
	if len(gpus) == 0 {
		return services.Invalid("gpu", services.CodeRequired, nil)
	}
	_, err := s.once(ctx, a, key, attachWrite{vm, gpus}, func(tx *db.Tx) (string, error) {
		return string(vm), s.attach(ctx, tx, a, vm, gpus)
	})
	return err
}

func (s *Service) attach(ctx context.Context, tx *db.Tx, a services.Actor, id services.VMID, ids []services.GPUID) error {
	vm, err := tx.LockVM(ctx, a.Account, id)
	if err != nil {
		return err
	}
	gpus := make([]db.GPU, 0, len(ids))
	for _, id := range ids {
		g, err := lockGPU(ctx, tx, a.Account, id)
		if err != nil {
			return err
		}
		gpus = append(gpus, g)
	}
	if err := refuseDuringResize(ctx, tx, vm); err != nil {
		return err
	}
	present, err := tx.VMGPUs(ctx, vm.ID)
	if err != nil {
		return err
	}
	plan, err := newAttachPlan(ctx, tx, vm, present, gpus)
	if err != nil {
		return err
	}
	if err := s.cancelDetaching(ctx, tx, a, vm, plan.back); err != nil {
		return err
	}
	return s.attachNew(ctx, tx, a, &vm, present, plan.fresh)
}

// attachPlan sorts GPUs that are to be attached by what has to be done.
type attachPlan struct {
	fresh []db.GPU // allocated: to be planned
	back  []db.GPU // detaching from the same VM: the detach is cancelled
}

// newAttachPlan checks all rules of all GPUs; its error lists every broken one.
func newAttachPlan(ctx context.Context, tx *db.Tx, vm db.VM, present, gpus []db.GPU) (attachPlan, error) {
	var plan attachPlan
	var states, broken []services.Violation
	for _, g := range gpus {
		switch {
		case g.State == services.GPUAllocated:
			plan.fresh = append(plan.fresh, g)
			found, err := attachRules(ctx, tx, vm, present, gpus, g)
			if err != nil {
				return plan, err
			}
			broken = append(broken, found...)
		case g.VM == vm.ID && g.State == services.GPUAttaching:
		case g.VM == vm.ID && g.State == services.GPUDetaching:
			plan.back = append(plan.back, g)
		default:
			states = append(states, wrongState(g).Violations...)
		}
	}
	switch {
	case len(broken) > 0:
		return plan, &services.Error{Kind: services.KindInvalid, Violations: append(broken, states...)}
	case len(states) > 0:
		return plan, &services.Error{Kind: services.KindConflict, Violations: states}
	}
	return plan, nil
}

func attachRules(ctx context.Context, tx *db.Tx, vm db.VM, present, together []db.GPU, g db.GPU) ([]services.Violation, error) {
	offer, err := offerFor(ctx, tx.Store, g)
	if err != nil {
		return nil, err
	}
	return brokenRules(offer, vm, append(slices.Clone(present), together...), g), nil
}

// brokenRules lists the attach rules that a GPU breaks on a VM; beside are the
// GPUs that the VM has or would get.
func brokenRules(offer catalog.Offer, vm db.VM, beside []db.GPU, g db.GPU) []services.Violation {
	broken := offer.Check(vm.Spec())
	if g.Zone != vm.Zone {
		broken = append(broken, services.Violation{
			Code: services.CodeZoneMismatch, Args: map[string]any{"Zone": g.Zone, "VMZone": vm.Zone},
		})
	}
	other := slices.IndexFunc(beside, func(o db.GPU) bool { return o.Kind == services.GPUFlexible && o.Model != g.Model })
	if other >= 0 {
		broken = append(broken, services.Violation{
			Code: services.CodeModelMismatch, Args: map[string]any{"Model": g.Model, "Other": beside[other].Model, "Holder": beside[other].Name},
		})
	}
	return named(broken, vm, g)
}

// offerFor finds the limits that a GPU brings; one whose model is no longer
// offered brings none.
func offerFor(ctx context.Context, store db.Store, g db.GPU) (catalog.Offer, error) {
	offer, _, err := store.Offer(ctx, g.Model, g.Region)
	offer.Model, offer.Region = g.Model, g.Region
	return offer, err
}

// named adds to violations which GPU and which VM they are about.
func named(broken []services.Violation, vm db.VM, g db.GPU) []services.Violation {
	for i := range broken {
		if broken[i].Args == nil {
			broken[i].Args = map[string]any{}
		}
		broken[i].Args["GPU"], broken[i].Args["ID"], broken[i].Args["VM"] = g.Name, string(g.ID), vm.Name
	}
	return broken
}

func (s *Service) cancelDetaching(ctx context.Context, tx *db.Tx, a services.Actor, vm db.VM, gpus []db.GPU) error {
	for _, g := range gpus {
		if err := refuseWhileStarting(vm); err != nil {
			return err
		}
		if err := s.move(ctx, tx, a, g, cancelDetach, vm.ID); err != nil {
			return err
		}
	}
	return s.want(ctx, tx, &vm, gpus...)
}

func (s *Service) attachNew(ctx context.Context, tx *db.Tx, a services.Actor, vm *db.VM, present, fresh []db.GPU) error {
	if len(fresh) == 0 {
		return nil
	}
	for _, g := range fresh { // before they are seated: a planned GPU is no partner for an exchange
		if err := s.move(ctx, tx, a, g, planAttach, vm.ID); err != nil {
			return err
		}
	}
	at, err := s.seat(ctx, tx, *vm, present, fresh)
	if err != nil {
		return err
	}
	if at != vm.Host && vm.Stopped() {
		if err := s.moveTo(ctx, tx, vm, at); err != nil {
			return err
		}
		fresh = append(fresh, present...)
	}
	return s.want(ctx, tx, vm, fresh...)
}

// Detach plans to take a GPU from its VM, or takes the plan to attach it back.
// Asking again is accepted. Refusals: wrong-state and busy (conflict).
func (s *Service) Detach(ctx context.Context, a services.Actor, id services.GPUID, key string) error {
	_, err := s.once(ctx, a, key, gpuWrite{GPU: id, Doing: "detach"}, func(tx *db.Tx) (string, error) {
		return string(id), s.detach(ctx, tx, a, id)
	})
	return err
}

func (s *Service) detach(ctx context.Context, tx *db.Tx, a services.Actor, id services.GPUID) error {
	seen, err := tx.AccountGPU(ctx, a.Account, id)
	if err != nil {
		return err
	}
	if seen.VM == "" || seen.Kind != services.GPUFlexible || seen.Released() {
		return wrongState(seen)
	}
	vm, err := tx.LockVM(ctx, a.Account, seen.VM)
	if services.KindOf(err) == services.KindNotFound {
		return wrongState(seen).Because(err) // the VM was deleted meanwhile
	}
	if err != nil {
		return err
	}
	g, err := lockGPU(ctx, tx, a.Account, id)
	if err != nil {
		return err
	}
	if g.VM != vm.ID {
		return wrongState(g).Because(errors.New("left its VM meanwhile"))
	}
	if err := refuseDuringResize(ctx, tx, vm); err != nil {
		return err
	}
	return s.detachFrom(ctx, tx, a, vm, g)
}

func (s *Service) detachFrom(ctx context.Context, tx *db.Tx, a services.Actor, vm db.VM, g db.GPU) error {
	switch g.State {
	case services.GPUDetaching:
		return nil
	case services.GPUAttaching:
		if err := refuseWhileStarting(vm); err != nil {
			return err
		}
		if err := s.move(ctx, tx, a, g, cancelAttach, ""); err != nil {
			return err
		}
	default:
		if err := s.move(ctx, tx, a, g, planDetach, vm.ID); err != nil {
			return err
		}
	}
	return s.want(ctx, tx, &vm, g)
}

// DetachAll plans to take several GPUs from their VMs, each by its own rules;
// the error joins those that were refused.
func (s *Service) DetachAll(ctx context.Context, a services.Actor, ids []services.GPUID, key string) error {
	return each(ids, func(id services.GPUID) error { return s.Detach(ctx, a, id, keyFor(key, id)) })
}

// ReleaseAll gives several GPUs back; the error joins those that were refused.
func (s *Service) ReleaseAll(ctx context.Context, a services.Actor, ids []services.GPUID, key string) error {
	return each(ids, func(id services.GPUID) error { return s.Release(ctx, a, id, keyFor(key, id)) })
}

// keyFor gives each GPU of a write on several a key of its own, no longer than
// the one it is made from may be.
func keyFor(key string, id services.GPUID) string {
	if key == "" || len(key) > maxKey {
		return key
	}
	sum := sha256.Sum256([]byte(key + " " + string(id)))
	return hex.EncodeToString(sum[:])
}

// each runs do for every id and joins the violations of what was refused.
func each(ids []services.GPUID, do func(services.GPUID) error) error {
	var refused *services.Error
	for _, id := range ids {
		err := do(id)
		e, ok := services.AsError(err)
		switch {
		case err == nil:
		case !ok:
			return err
		case refused == nil:
			refused = e
		default:
			refused.Violations = append(refused.Violations, e.Violations...)
		}
	}
	if refused == nil {
		return nil
	}
	return refused
}

// refuseWhileStarting keeps a plan from being cancelled while the agent may be
// carrying it out: the VM's start was ordered and no report has come yet.
func refuseWhileStarting(vm db.VM) error {
	if !vm.Starting() {
		return nil
	}
	return services.Fail(services.KindConflict, services.CodeBusy, map[string]any{"VM": vm.Name, "Operation": string(services.OpStart)})
}

// refuseDuringResize keeps the set of GPUs that a running resize was checked for.
func refuseDuringResize(ctx context.Context, tx *db.Tx, vm db.VM) error {
	op, open, err := tx.OpenOperation(ctx, vm.ID)
	if err != nil || !open || op.Kind != services.OpResize {
		return err
	}
	return busy(vm, op)
}

func busy(vm db.VM, op db.Operation) *services.Error {
	return services.Fail(services.KindConflict, services.CodeBusy, map[string]any{"VM": vm.Name, "Operation": string(op.Kind)})
}
