package compute

import (
	"context"

	"berth/services"
	"berth/services/catalog"
)

// ResizeCheck answers a resize form while it is filled in.
type ResizeCheck struct {
	VM      VM
	Type    catalog.VMType
	Broken  []services.Violation // of the type itself, and of what no single GPU is to blame for
	Fits    []Fit                // each flexible GPU that the VM has or plans to have or lose
	Largest string               // the closest type that suits all GPUs, spelled out; empty: Type does, or none is known
	Advice  catalog.Advice       // for the GPUs that the VM will have
}

// OK reports whether the resize would be accepted.
func (c ResizeCheck) OK() bool {
	for _, f := range c.Fits {
		if len(f.Broken) > 0 {
			return false
		}
	}
	return len(c.Broken) == 0
}

// CheckResize tells what a resize of the account's VM to a type would meet,
// and changes nothing.
func (s *Service) CheckResize(ctx context.Context, account services.AccountID, id services.VMID, name string, performance catalog.Performance) (ResizeCheck, error) {
	vm, err := s.db.AccountVM(ctx, account, id)
	if err != nil {
		return ResizeCheck{}, err
	}
	c := ResizeCheck{VM: vm}
	types, err := s.db.Types(ctx)
	if err != nil {
		return c, err
	}
	t, err := types.Resolve(name, performance)
	if e, ok := services.AsError(err); ok {
		c.Broken = e.Violations
		t = current(vm)
	}
	c.Type = t
	if c.Fits, err = resizeFits(ctx, s.db.Store, vm, t); err != nil {
		return c, err
	}
	if len(c.Broken) == 0 {
		c.Broken = wholeTypeRules(vm, t)
	}
	c.Largest = largest(vm, t, c.Fits)
	c.Advice = catalog.Advise(t.VCores, len(c.Fits))
	return c, nil
}

// current is a VM's present type.
func current(vm VM) catalog.VMType {
	return catalog.VMType{Name: vm.Type, VCores: vm.VCores, MemoryMiB: vm.MemoryMiB, Generation: vm.Generation, Performance: vm.Performance}
}

// wholeTypeRules lists what a type breaks whatever GPUs the VM has.
func wholeTypeRules(vm VM, t catalog.VMType) []services.Violation {
	if e, ok := services.AsError(refuseMisfits(vm, t, nil)); ok {
		return e.Violations
	}
	return nil
}

func largest(vm VM, t catalog.VMType, fits []Fit) string {
	offers := make([]catalog.Offer, 0, len(fits))
	broken := false
	for _, f := range fits {
		offers = append(offers, f.Offer)
		broken = broken || len(f.Broken) > 0
	}
	if !broken {
		return ""
	}
	spec, ok := catalog.Largest(t.Spec(vm.Generation, vm.Tenancy), offers)
	if !ok {
		return ""
	}
	return catalog.Spell(spec)
}
