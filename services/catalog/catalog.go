// Package catalog knows GPU models, VM types and the rules that join them.
// It is pure: data in, answers out.
package catalog

import (
	"slices"
	"strings"

	"berth/services"
)

// Performance is the flag of a VM: how much of a core it is promised.
type Performance string

// The flags. GPUs need the highest.
const (
	Highest Performance = "highest"
	High    Performance = "high"
	Medium  Performance = "medium"
)

// Performances lists the flags from best to least; the n-th is p1, p2, p3 in a type's name.
var Performances = []Performance{Highest, High, Medium}

// Valid reports whether p is one of the three flags.
func (p Performance) Valid() bool { return slices.Contains(Performances, p) }

// Tenancy says whether a VM shares its host with other accounts.
type Tenancy string

// The tenancies.
const (
	TenancyDefault   Tenancy = "default"
	TenancyDedicated Tenancy = "dedicated"
)

// Valid reports whether t is one of the two tenancies.
func (t Tenancy) Valid() bool { return t == TenancyDefault || t == TenancyDedicated }

// Model is a catalogue entry.
type Model struct {
	ID           string
	Architecture string
	VRAMMiB      int // 0: no source gives it
	Memory       Memory
	INT8TOPS     int // 0: no source gives it
	UseCases     []string
	ResourceName string   // of the Kubernetes device plugin, e.g. "nvidia.com/AD102GL_L40S"
	DriverBranch string   // the oldest NVIDIA driver branch that knows it
	PCIIDs       []string // vendor:device, lower case
}

// Memory is a card's memory as its maker names it. The zero value is unknown.
type Memory struct {
	GB   int    // 10^9 bytes
	Type string // "HBM3"
}

// Offer is a model as flexible GPU in a region.
type Offer struct {
	Model        string
	Region       string
	MaxVCores    int      // inclusive; 0 does not bind
	MaxMemoryMiB int      // inclusive; 0 does not bind
	Generations  []string // oldest first; empty does not bind
	HourlyPrice  string   // in euros, "2.5000"; empty: none is named
}

// Allows reports whether a CPU generation suits the offer.
func (o Offer) Allows(generation string) bool {
	return len(o.Generations) == 0 || slices.Contains(o.Generations, generation)
}

// Oldest is the generation a GPU is allocated for where none is named; empty: any.
func (o Offer) Oldest() string {
	if len(o.Generations) == 0 {
		return ""
	}
	return o.Generations[0]
}

// Spec is what of a VM the rules look at.
type Spec struct {
	VCores      int
	MemoryMiB   int
	Generation  string
	Performance Performance
	Tenancy     Tenancy
	Inference   bool // its type has GPUs built in
}

// Check lists every rule of the VM's specification that a GPU under this offer
// would break on a VM of that specification. Maximums are inclusive.
func (o Offer) Check(s Spec) []services.Violation {
	var broken []services.Violation
	add := func(limit services.Limit, have, allowed any) {
		broken = append(broken, services.Violation{
			Code: services.CodeVMSpecsMismatch, Limit: limit,
			Args: map[string]any{"Model": o.Model, "Region": o.Region, "Have": have, "Max": allowed},
		})
	}
	if s.Performance != Highest {
		add(services.LimitPerformance, string(s.Performance), string(Highest))
	}
	if o.MaxVCores > 0 && s.VCores > o.MaxVCores {
		add(services.LimitVCores, s.VCores, o.MaxVCores)
	}
	if o.MaxMemoryMiB > 0 && s.MemoryMiB > o.MaxMemoryMiB {
		add(services.LimitMemory, GiB(s.MemoryMiB), GiB(o.MaxMemoryMiB))
	}
	if !o.Allows(s.Generation) {
		add(services.LimitGeneration, s.Generation, strings.Join(o.Generations, ", "))
	}
	if s.Tenancy == TenancyDedicated {
		broken = append(broken, services.Violation{Code: services.CodeVMDedicated})
	}
	if s.Inference {
		broken = append(broken, services.Violation{Code: services.CodeInferenceType})
	}
	return broken
}

// Largest gives the closest specification to s, not above it, that all offers
// allow; ok is false where no generation suits them all.
func Largest(s Spec, offers []Offer) (fit Spec, ok bool) {
	fit = s
	fit.Performance = Highest
	for _, o := range offers {
		if o.MaxVCores > 0 {
			fit.VCores = min(fit.VCores, o.MaxVCores)
		}
		if o.MaxMemoryMiB > 0 {
			fit.MemoryMiB = min(fit.MemoryMiB, o.MaxMemoryMiB)
		}
	}
	allowed := func(g string) bool {
		return !slices.ContainsFunc(offers, func(o Offer) bool { return !o.Allows(g) })
	}
	if allowed(fit.Generation) {
		return fit, true
	}
	for _, o := range offers {
		for _, g := range slices.Backward(o.Generations) {
			if allowed(g) {
				fit.Generation = g
				return fit, true
			}
		}
	}
	return Spec{}, false
}

// The advised number of vCPUs for each GPU. Advice, never a rule.
const (
	AdvisedVCPUMin = 8
	AdvisedVCPUMax = 16
)

// Advice compares a VM with the advised vCPUs per GPU.
type Advice struct {
	PerGPU int // vCPUs for each GPU, rounded down; 0 without GPUs
	Below  bool
	Above  bool
}

// Advise tells how the vCPUs of a VM relate to its number of GPUs.
func Advise(vcores, gpus int) Advice {
	if gpus == 0 {
		return Advice{}
	}
	return Advice{
		PerGPU: vcores / gpus,
		Below:  vcores < AdvisedVCPUMin*gpus,
		Above:  vcores > AdvisedVCPUMax*gpus,
	}
}
