package compute

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"berth/db"
	"berth/services"
	"berth/services/catalog"
)

// Resizing asks for another VM type.
type Resizing struct {
	Type        string
	Performance catalog.Performance // where the type's name leaves it open; empty: high
	Restart     bool                // a running VM may be stopped, resized and started
	Key         string              `json:"-"` // idempotency key; empty: none
}

// resizeSpec is what a resize operation carries.
type resizeSpec struct {
	Type string `json:"type"`
}

func (r *resizeSpec) encode() (*db.JSON, error) {
	if r == nil {
		return nil, nil
	}
	b, err := json.Marshal(r)
	if err != nil {
		return nil, fmt.Errorf("encode resize: %w", err)
	}
	text := db.JSON(b)
	return &text, nil
}

// Resize gives a VM another type if every GPU that it has, gets or loses allows
// it; else nothing changes and every broken limit is reported. A running VM
// needs Restart. Refusals: invalid-type, vm-specs-mismatch, inference-type and
// vm-running (invalid), busy (conflict), no-capacity (capacity).
func (s *Service) Resize(ctx context.Context, a services.Actor, id services.VMID, in Resizing) error {
	_, err := s.once(ctx, a, in.Key, vmWrite{VM: id, Doing: "resize", Detail: in}, func(tx *db.Tx) (string, error) {
		if err := tx.LockAccount(ctx, a.Account); err != nil {
			return "", err
		}
		vm, err := lockVM(ctx, tx, a, id)
		if err != nil {
			return "", err
		}
		return string(id), s.resize(ctx, tx, a, &vm, in)
	})
	return err
}

func (s *Service) resize(ctx context.Context, tx *db.Tx, a services.Actor, vm *db.VM, in Resizing) error {
	if op, open, err := tx.OpenOperation(ctx, vm.ID); err != nil {
		return err
	} else if open {
		return busy(*vm, op)
	}
	t, err := resolveType(ctx, tx, in.Type, in.Performance)
	if err != nil {
		return err
	}
	fits, err := resizeFits(ctx, tx.Store, *vm, t)
	if err != nil {
		return err
	}
	if err := refuseMisfits(*vm, t, fits); err != nil {
		return err
	}
	if err := checkGrowth(ctx, tx, *vm, t); err != nil {
		return err
	}
	if vm.DesiredPower == services.PowerStopped && vm.Power == services.PowerStopped {
		return s.convert(ctx, tx, a, vm, t)
	}
	if !in.Restart {
		return services.Fail(services.KindInvalid, services.CodeVMRunning, map[string]any{"VM": vm.Name})
	}
	return s.begin(ctx, tx, a, vm, services.OpResize, &resizeSpec{Type: t.Name})
}

// Fit tells whether a GPU allows a VM's new type.
type Fit struct {
	GPU    db.GPU
	Offer  catalog.Offer
	Broken []services.Violation // empty: it fits
}

// resizeFits checks a type against every flexible GPU that the VM has or plans
// to have or lose.
func resizeFits(ctx context.Context, store db.Store, vm db.VM, t catalog.VMType) ([]Fit, error) {
	gpus, err := store.VMGPUs(ctx, vm.ID)
	if err != nil {
		return nil, err
	}
	gpus = slices.DeleteFunc(gpus, func(g db.GPU) bool { return g.Kind != services.GPUFlexible })
	if len(gpus) == 0 {
		return nil, nil
	}
	offer, err := offerFor(ctx, store, gpus[0]) // all GPUs of a VM are of one model
	if err != nil {
		return nil, err
	}
	spec := t.Spec(vm.Generation, vm.Tenancy)
	fits := make([]Fit, 0, len(gpus))
	for _, g := range gpus {
		fits = append(fits, Fit{GPU: g, Offer: offer, Broken: named(offer.Check(spec), vm, g)})
	}
	return fits, nil
}

func refuseMisfits(vm db.VM, t catalog.VMType, fits []Fit) error {
	var broken []services.Violation
	for _, f := range fits {
		broken = append(broken, f.Broken...)
	}
	if (vm.Inference || t.Inference()) && vm.Type != t.Name {
		broken = append(broken, services.Violation{Code: services.CodeInferenceType, Field: "type", Args: map[string]any{"VM": vm.Name, "Type": t.Name}})
	}
	if len(broken) == 0 {
		return nil
	}
	return &services.Error{Kind: services.KindInvalid, Violations: broken}
}

// checkGrowth refuses a type that takes the account over its limits.
func checkGrowth(ctx context.Context, tx *db.Tx, vm db.VM, t catalog.VMType) error {
	return checkLimits(ctx, tx, vm.Account, vm.Region, growth{vcores: t.VCores - vm.VCores, memoryMiB: t.MemoryMiB - vm.MemoryMiB})
}

// convertByPlan is the step of a resize operation on its stopped VM.
func (s *Service) convertByPlan(ctx context.Context, tx *db.Tx, vm *db.VM, op *db.Operation) error {
	var spec resizeSpec
	if err := json.Unmarshal(*op.Spec, &spec); err != nil {
		return fmt.Errorf("decode resize %s: %w", op.ID, err)
	}
	t, err := resolveType(ctx, tx, spec.Type, "")
	if err != nil {
		return err
	}
	fits, err := resizeFits(ctx, tx.Store, *vm, t)
	if err != nil {
		return err
	}
	if err := refuseMisfits(*vm, t, fits); err != nil {
		return err
	}
	if err := checkGrowth(ctx, tx, *vm, t); err != nil {
		return err
	}
	return s.convert(ctx, tx, services.Actor{Email: op.Actor}, vm, t)
}

// convert gives a stopped VM its new type, on its host where that has room and
// the CPU generation, else on another that the zone's storage allows, with its GPUs.
func (s *Service) convert(ctx context.Context, tx *db.Tx, a services.Actor, vm *db.VM, t catalog.VMType) error {
	before := vm.Type
	next := *vm
	apply(&next, t)
	if err := s.rehouse(ctx, tx, &next); err != nil {
		return err
	}
	gpus, err := tx.VMGPUs(ctx, vm.ID)
	if err != nil {
		return err
	}
	*vm = next
	if err := s.want(ctx, tx, vm, gpus...); err != nil {
		return err
	}
	return tx.InsertEvent(ctx, s.event(a, "vm.resized", map[string]any{"Old": before, "New": vm.Type}),
		db.Subject{Account: vm.Account, VM: vm.ID})
}

// rehouse makes sure that a stopped VM, as it is to become, has a host with all
// its GPUs.
func (s *Service) rehouse(ctx context.Context, tx *db.Tx, vm *db.VM) error {
	gpus, err := tx.VMGPUs(ctx, vm.ID)
	if err != nil {
		return err
	}
	rooms, err := tx.Rooms(ctx, *vm)
	if err != nil {
		return err
	}
	for _, r := range rooms {
		if r.Host != vm.Host && vm.Storage == services.StorageLocal {
			continue
		}
		ok, err := seatOn(ctx, tx, r.Host, nil, staying(gpus))
		if err != nil {
			return err
		}
		if !ok {
			continue
		}
		if r.Host == vm.Host {
			return s.keepRoom(ctx, tx, *vm)
		}
		return s.moveTo(ctx, tx, vm, r.Host)
	}
	return noRoom(*vm)
}

func (s *Service) keepRoom(ctx context.Context, tx *db.Tx, vm db.VM) error {
	fits, err := tx.LockRoom(ctx, vm, vm.Host)
	if err == nil && !fits {
		err = noRoom(vm)
	}
	return err
}

// staying lists the GPUs that a VM will have at its next start.
func staying(gpus []db.GPU) []db.GPU {
	return slices.DeleteFunc(slices.Clone(gpus), func(g db.GPU) bool { return g.State == services.GPUDetaching })
}

// follow moves a stopped VM to the host where its GPUs are, if it is not there.
func (s *Service) follow(ctx context.Context, tx *db.Tx, vm *db.VM, gpus []db.GPU) error {
	there := staying(gpus)
	if len(there) == 0 || there[0].Host == vm.Host || vm.Power != services.PowerStopped {
		return nil
	}
	if err := s.moveTo(ctx, tx, vm, there[0].Host); err != nil {
		return err
	}
	return s.want(ctx, tx, vm, gpus...)
}
