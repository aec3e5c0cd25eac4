package catalog

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"berth/services"
)

// VMType is a VM type, spelled out or named, read into its parts.
type VMType struct {
	Name        string // canonical: a spelled-out one always carries its flag
	VCores      int
	MemoryMiB   int
	Generation  string // empty: any
	Performance Performance
	GPUModel    string // built in; empty: none
	GPUCount    int
	Named       bool
	HourlyPrice string // in euros, "2.5000"; empty: none is named
}

// Inference reports whether GPUs are built in.
func (t VMType) Inference() bool { return t.GPUCount > 0 }

// Spec is the specification of a VM of this type; generation stands in where
// the type leaves it open.
func (t VMType) Spec(generation string, tenancy Tenancy) Spec {
	if t.Generation != "" {
		generation = t.Generation
	}
	return Spec{
		VCores: t.VCores, MemoryMiB: t.MemoryMiB, Generation: generation,
		Performance: t.Performance, Tenancy: tenancy, Inference: t.Inference(),
	}
}

// The largest machine a spelled-out type may name; what a zone can really host
// is a matter of capacity.
const (
	maxVCores    = 1024
	maxMemoryGiB = 65536
)

// tinavW.cXrY or tinavW.cXrYpZ: generation, vCores, GiB, flag.
var spelled = regexp.MustCompile(`^tina(v[1-9][0-9]{0,2})\.c([1-9][0-9]{0,4})r([1-9][0-9]{0,5})(?:p([1-3]))?$`)

// Spelled reports whether a name is a type spelled out, which no named type may be called.
func Spelled(name string) bool {
	_, ok := spell(name, "")
	return ok
}

// Types is the list of named types.
type Types []VMType

// Resolve reads a type's name. The flag within a spelled-out name wins over
// performance, which is given apart and may be empty (then high). Named types
// count as highest. The error has code invalid-type in field "type", or
// invalid-value in field "performance".
func (ts Types) Resolve(name string, performance Performance) (VMType, error) {
	name = strings.TrimSpace(name)
	if performance != "" && !performance.Valid() {
		return VMType{}, services.NoneOf("performance", string(performance), string(Highest), string(High), string(Medium))
	}
	if i := slices.IndexFunc(ts, func(t VMType) bool { return t.Name == name }); i >= 0 {
		return ts[i], nil
	}
	t, ok := spell(name, performance)
	if !ok {
		return VMType{}, services.Invalid("type", services.CodeInvalidType, map[string]any{"Type": name})
	}
	return t, nil
}

func spell(name string, performance Performance) (VMType, bool) {
	m := spelled.FindStringSubmatch(name)
	if m == nil {
		return VMType{}, false
	}
	vcores, _ := strconv.Atoi(m[2]) // digits by the pattern
	memory, _ := strconv.Atoi(m[3])
	if vcores > maxVCores || memory > maxMemoryGiB {
		return VMType{}, false
	}
	switch {
	case m[4] != "":
		performance = Performances[m[4][0]-'1']
	case performance == "":
		performance = High
	}
	t := VMType{VCores: vcores, MemoryMiB: memory * 1024, Generation: m[1], Performance: performance}
	t.Name = Spell(t.Spec(t.Generation, TenancyDefault))
	return t, true
}

// Spell writes a specification as a spelled-out type: "tinav7.c8r32p1". Memory
// is rounded down to whole GiB.
func Spell(s Spec) string {
	return fmt.Sprintf("tina%s.c%dr%dp%d", s.Generation, s.VCores, s.MemoryMiB/1024, slices.Index(Performances, s.Performance)+1)
}

// GiB writes mebibytes as gibibytes without needless digits: 512 is "0.5".
func GiB(mib int) string {
	return strconv.FormatFloat(float64(mib)/1024, 'f', -1, 64)
}
