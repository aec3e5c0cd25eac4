package vms

import (
	"berth/services"
	"berth/services/catalog"
	"berth/web/components"
	"berth/web/layout"
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
