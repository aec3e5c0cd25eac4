// Package search is the page that lists what matches a text.
package search

import (
	"berth/services"
	"berth/services/catalog"
	"berth/web/components"
	"berth/web/layout"
)

// Page is what was found. The text is in the shell's Search.
type Page struct {
	layout.Shell
	GPUs     []GPU
	Machines []Machine
	Models   []Model
	Fleet    []Group // for operators: of every account
	More     bool    // there are more GPUs or machines than are listed
}

// GPU is one that was found.
type GPU struct {
	ID    services.GPUID
	Name  string
	Model string
	Zone  string
	State services.GPUState
}

// Machine is one that was found.
type Machine struct {
	ID    services.VMID
	Name  string
	Type  string
	Zone  string
	Power services.Power
}

// Model is one that was found.
type Model struct {
	ID           string
	Memory       catalog.Memory
	Architecture string
}

// Group is what was found of one kind in the whole fleet.
type Group struct {
	Key  string // text "palette.group.<key>"
	Hits []Hit
}

// Hit is one of a group.
type Hit struct {
	Icon                  components.Icon
	ID, Name, Detail, URL string
}

// Found counts what is listed.
func (p Page) Found() int {
	n := len(p.GPUs) + len(p.Machines) + len(p.Models)
	for _, g := range p.Fleet {
		n += len(g.Hits)
	}
	return n
}
