// Package catalogue is the pages about what can be had: the models with what is
// free now, side by side where one asks, and one model whole.
package catalogue

import (
	"context"
	"slices"
	"strings"

	"berth/services/catalog"
	"berth/web/components"
	"berth/web/i18n"
	"berth/web/layout"
	"berth/web/urls"
)

// List is the catalogue's page.
type List struct {
	layout.Shell
	Query         urls.CatalogQuery
	Models        []Model // those that match
	Compared      []Model // those to be shown side by side
	Total         int     // models in the catalogue
	Regions       []string
	Architectures []string
	UseCases      []string
	Memories      []int // least GPU memories to choose from, in GB
}

// MaxCompared is how many models stand side by side at most.
const MaxCompared = 4

// Page is a model's page.
type Page struct {
	layout.Shell
	Model Model
}

// Model is a catalogue entry with what the account needs to know of it.
type Model struct {
	ID           string
	Architecture string
	Memory       catalog.Memory
	VRAMMiB      int // 0: no source gives it
	INT8TOPS     int // 0: no source gives it
	UseCases     []string
	ResourceName string // of the Kubernetes device plugin; empty: unknown
	DriverBranch string // the oldest NVIDIA branch that knows it; empty: unknown
	Offers       []Offer
	Types        []Type // inference types that have it built in
	Held         int    // flexible GPUs of it that the account has, in all regions
	BuiltIn      int    // those that its VMs brought along
}

// Flexible reports whether it can be allocated and attached.
func (m Model) Flexible() bool { return len(m.Offers) > 0 }

// FreeNow reports whether a card is free in any zone.
func (m Model) FreeNow() bool {
	return slices.ContainsFunc(m.Offers, func(o Offer) bool {
		return slices.ContainsFunc(o.Zones, func(z Zone) bool { return z.Free })
	})
}

// Offer is the model as flexible GPU in a region. Zero limits do not bind.
type Offer struct {
	Region       string
	MaxVCores    int
	MaxMemoryMiB int
	Generations  []string // empty: any
	HourlyPrice  string   // in euros, "2.5000"; empty: none is named
	Zones        []Zone
	Used         int  // GPUs of it that the account has there
	Max          *int // its quota; nil: unlimited
}

// Zone says whether a card is free there; how many is nobody's business.
type Zone struct {
	ID   string
	Free bool
}

// Type is an inference type.
type Type struct {
	Name      string
	VCores    int
	MemoryMiB int
	GPUs      int

	HourlyPrice string // as an offer's
}

func (l List) region() components.Region {
	return components.Region{
		ID: "catalog", Fragment: urls.CatalogFragment(l.Query), Events: []string{components.EventCatalog, components.EventGPUs},
	}
}

func (p Page) region() components.Region {
	return components.Region{
		ID: "model", Fragment: urls.ModelFragment(p.Model.ID), Events: []string{components.EventCatalog, components.EventGPUs},
	}
}

// narrowed reports whether the query leaves models out.
func (l List) narrowed() bool {
	q := l.Query
	return q.Region != "" || q.Memory != "" || q.Architecture != "" || q.UseCase != "" || q.FreeNow
}

func (l List) compares(id string) bool { return slices.Contains(l.Query.Compare, id) }

// toggled is the catalogue with one model more, or less, to compare.
func (l List) toggled(id string) string {
	q := l.Query
	if l.compares(id) {
		q.Compare = slices.DeleteFunc(slices.Clone(q.Compare), func(c string) bool { return c == id })
	} else {
		q.Compare = append(slices.Clone(q.Compare), id)
	}
	return urls.Catalog(q)
}

// uncompared is the catalogue with nothing side by side.
func (l List) uncompared() string {
	q := l.Query
	q.Compare = nil
	return urls.Catalog(q)
}

// cleared is the catalogue without filters.
func (l List) cleared() string { return urls.Catalog(urls.CatalogQuery{Compare: l.Query.Compare}) }

// unknown stands for what no source gives.
const unknown = "–"

func (m Model) vram(ctx context.Context) string {
	if m.VRAMMiB == 0 {
		return unknown
	}
	return i18n.T(ctx, "catalog.mib", "Count", m.VRAMMiB)
}

func (m Model) int8(ctx context.Context) string {
	if m.INT8TOPS == 0 {
		return unknown
	}
	return i18n.T(ctx, "catalog.tops", "Count", m.INT8TOPS)
}

func (m Model) useCases(ctx context.Context) string {
	words := make([]string, 0, len(m.UseCases))
	for _, u := range m.UseCases {
		words = append(words, components.UseCase(ctx, u))
	}
	return strings.Join(words, ", ")
}

func (o Offer) vcores(ctx context.Context) string {
	if o.MaxVCores == 0 {
		return i18n.T(ctx, "catalog.no-limit")
	}
	return i18n.Number(ctx, o.MaxVCores)
}

func (o Offer) memory(ctx context.Context) string {
	if o.MaxMemoryMiB == 0 {
		return i18n.T(ctx, "catalog.no-limit")
	}
	return i18n.GiB(ctx, o.MaxMemoryMiB)
}

func (o Offer) generations(ctx context.Context) string {
	if len(o.Generations) == 0 {
		return i18n.T(ctx, "catalog.any")
	}
	return strings.Join(o.Generations, ", ")
}

// quota writes use and quota; 0 never reads as unlimited.
func (o Offer) quota(ctx context.Context) string {
	if o.Max == nil {
		return i18n.T(ctx, "catalog.unlimited", "Used", o.Used)
	}
	return i18n.T(ctx, "catalog.of-quota", "Used", o.Used, "Max", *o.Max)
}

func (z Zone) look() components.Look {
	if z.Free {
		return components.Look{Tone: components.ToneOK, Icon: components.IconCheck}
	}
	return components.Look{Tone: components.ToneHeld, Icon: components.IconMinus}
}

func (z Zone) word(ctx context.Context) string {
	if z.Free {
		return i18n.T(ctx, "catalog.zone-free")
	}
	return i18n.T(ctx, "catalog.zone-none")
}

// Zones are those of every region that offers the model.
func (m Model) Zones() []Zone {
	var all []Zone
	for _, o := range m.Offers {
		all = append(all, o.Zones...)
	}
	return all
}

// freeZone is a zone to offer first for an allocation; empty: none is free.
func (m Model) freeZone() string {
	for _, z := range m.Zones() {
		if z.Free {
			return z.ID
		}
	}
	return ""
}

func advice(ctx context.Context) string {
	return i18n.T(ctx, "catalog.advice", "Min", catalog.AdvisedVCPUMin, "Max", catalog.AdvisedVCPUMax)
}
