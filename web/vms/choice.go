package vms

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"berth/services"
	"berth/services/catalog"
)

// By is a way to say which type a machine is to have.
type By string

// The ways. They are posted as "by"; scripts leave it out and post "type".
const (
	ByParts By = "parts" // generation, vcores, memory (GiB), performance
	ByName  By = "name"  // named
	ByText  By = "text"  // type, and performance where its text leaves it open
)

// Bys lists the ways in the order that forms show them.
var Bys = []By{ByParts, ByName, ByText}

// Valid reports whether b is one of the ways.
func (b By) Valid() bool { return slices.Contains(Bys, b) }

// TypeChoice is a type as filled in so far, by any of the ways; the other ways
// show the same type where they can.
type TypeChoice struct {
	By          By
	Text        string // field type
	Named       string // field named
	Generation  string // field generation
	VCores      string // field vcores, as typed
	Memory      string // field memory, GiB, as typed
	Performance catalog.Performance
}

// ReadType reads a type's fields, e.g. of a query or a posted form. Where none
// of them is there, the choice is fallback: a machine's present type.
func ReadType(field func(name string) string, types catalog.Types, fallback string) TypeChoice {
	get := func(name string) string { return strings.TrimSpace(field(name)) }
	c := TypeChoice{
		By: By(get("by")), Text: get("type"), Named: get("named"), Generation: get("generation"),
		VCores: get("vcores"), Memory: get("memory"), Performance: catalog.Performance(get("performance")),
	}
	if !c.By.Valid() {
		c.By = ByText
		c.Text = cmp.Or(c.Text, fallback)
		return c.align(types, true)
	}
	return c.align(types, false)
}

// Starting is the type that a new machine's form begins with: of a modest size,
// fit for GPUs, and of the newest of the generations, oldest first.
func Starting(generations []string) string {
	if len(generations) == 0 {
		return ""
	}
	return "tina" + generations[len(generations)-1] + ".c8r32p1"
}

// align shows the chosen type by the other ways too. free lets it choose the
// way that suits the type best.
func (c TypeChoice) align(types catalog.Types, free bool) TypeChoice {
	t, err := types.Resolve(c.Name(), c.Performance)
	if err != nil {
		return c
	}
	if free && t.Named {
		c.By = ByName
	} else if free {
		c.By = ByParts
	}
	if free || c.By != ByText {
		c.Text = t.Name
	}
	if t.Named {
		c.Named = t.Name
	}
	if c.By != ByParts || free {
		c.Generation = cmp.Or(t.Generation, c.Generation)
		c.VCores, c.Memory, c.Performance = strconv.Itoa(t.VCores), catalog.GiB(t.MemoryMiB), t.Performance
	}
	return c
}

// Name is the chosen type's name, to be resolved with Performance. It may be no
// type at all.
func (c TypeChoice) Name() string {
	switch c.By {
	case ByParts:
		flag := slices.Index(catalog.Performances, c.Performance) + 1
		return "tina" + c.Generation + ".c" + c.VCores + "r" + c.Memory + "p" + strconv.Itoa(flag)
	case ByName:
		return c.Named
	default:
		return c.Text
	}
}

// blank reports whether nothing can be said of the type yet.
func (c TypeChoice) blank() bool {
	switch c.By {
	case ByParts:
		return c.VCores == "" || c.Memory == ""
	case ByName:
		return c.Named == ""
	default:
		return c.Text == ""
	}
}

// NamedType is a type from the operators' list that can be chosen, or not and
// why.
type NamedType struct {
	Type    catalog.VMType
	Reasons []services.Violation
}

// whole reports whether a part is a whole number from 1 on.
func whole(text string) bool {
	n, err := strconv.Atoi(text)
	return err == nil && n > 0 && text[0] != '+' && text[0] != '0'
}
