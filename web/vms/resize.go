package vms

import (
	"context"
	"fmt"
	"slices"

	"github.com/a-h/templ"

	"berth/services"
	"berth/services/catalog"
	"berth/web/components"
	"berth/web/i18n"
	"berth/web/layout"
	"berth/web/urls"
)

// Resize is the form that changes a machine's type. It is posted to
// urls.VMResize as the type (see TypeChoice) and restart ("true" where the
// machine runs).
type Resize struct {
	layout.Shell
	VM          Machine
	Type        TypeChoice
	Types       []NamedType
	Generations []string             // CPU generations to choose from, oldest first
	Becomes     *catalog.VMType      // the type as filled in; nil: it can't be read
	Limits      *Limits              // of the machine's GPUs; nil: it has no flexible GPU
	Fits        []Fit                // each flexible GPU that the machine has, awaits or is to lose
	Against     []services.Violation // what stands against the type itself, whatever the GPUs
	Largest     string               // the closest type that suits all GPUs; empty: the filled-in one does, or none is known
	Busy        *components.Progress // the operation under way, which has to end first; nil: none
	Broken      []services.Violation // why the last attempt was refused
	Key         string               // idempotency
}

// Fit tells whether a GPU allows the type.
type Fit struct {
	ID     services.GPUID
	Name   string
	State  services.GPUState
	Broken []services.Violation // empty: it fits
}

// narrowing fetches the answer at each change of the form, and when the machine
// or its GPUs change.
func (r Resize) narrowing() templ.Attributes {
	a := components.Narrowing(urls.VMResizeFragment(r.VM.ID), "#resizing")
	vm := components.VMEvent(string(r.VM.ID))
	a["hx-trigger"] = fmt.Sprintf("%s, %s from:body throttle:150ms, %s from:body throttle:150ms", a["hx-trigger"], vm, components.EventRefresh)
	return a
}

// anew shows the form with other values: fields that were touched take them too.
func anew(url string) templ.Attributes {
	a := components.Within(url)
	a["hx-swap"] = "outerHTML"
	return a
}

// restarts reports whether the machine has to be stopped, and is started again.
func (r Resize) restarts() bool {
	return r.VM.Wanted != services.PowerStopped || r.VM.Power != services.PowerStopped
}

// changed reports whether the filled-in type is another than the present one.
func (r Resize) changed() bool { return r.Becomes != nil && r.Becomes.Name != r.VM.Type }

// possible reports whether the resize would be accepted.
func (r Resize) possible() bool {
	return r.changed() && r.Busy == nil && !r.VM.Deleted() && len(r.Against) == 0 && len(r.misfits()) == 0
}

func (r Resize) misfits() []Fit {
	return slices.DeleteFunc(slices.Clone(r.Fits), func(f Fit) bool { return len(f.Broken) == 0 })
}

// plans counts the GPUs that change at the stop.
func (r Resize) plans() int {
	return r.count(services.GPUAttaching, services.GPUDetaching)
}

// interrupted counts the GPUs that the stop takes from running programs.
func (r Resize) interrupted() int {
	if r.VM.Power != services.PowerRunning {
		return 0
	}
	return r.count(services.GPUAttached, services.GPUDetaching)
}

func (r Resize) count(states ...services.GPUState) int {
	n := 0
	for _, f := range r.Fits {
		if slices.Contains(states, f.State) {
			n++
		}
	}
	return n
}

// advice is about the GPUs that the machine has afterwards.
func (r Resize) advice() catalog.Advice {
	if r.Becomes == nil {
		return catalog.Advice{}
	}
	return catalog.Advise(r.Becomes.VCores, r.count(services.GPUAttached, services.GPUAttaching))
}

// typeFields show what is wrong: of a sent form, else of what is filled in so far.
func (r Resize) typeFields() typeFields {
	f := typeFields{choice: r.Type, named: r.Types, generations: r.Generations, limits: r.Limits, broken: r.Broken}
	if len(r.Broken) == 0 && !r.Type.blank() && r.Type.By == ByParts {
		f.broken = r.Against
	}
	for _, limit := range []services.Limit{services.LimitPerformance, services.LimitVCores, services.LimitMemory, services.LimitGeneration} {
		if r.breaks(limit) {
			f.exceeded = append(f.exceeded, limit)
		}
	}
	return f
}

func (r Resize) footWords(ctx context.Context) string {
	switch {
	case r.VM.Deleted():
		return i18n.T(ctx, "resize.deleted")
	case r.Busy != nil:
		return i18n.T(ctx, "resize.wait", "VM", r.VM.Name)
	case r.Becomes != nil && !r.changed():
		return i18n.T(ctx, "resize.same")
	case r.restarts():
		return i18n.T(ctx, "resize.restart-means")
	}
	return i18n.T(ctx, "resize.stopped-means")
}
