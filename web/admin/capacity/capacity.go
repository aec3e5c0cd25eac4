// Package capacity is the operator's page about how full the fleet is: by zone
// and model, what could still start, and how it went.
package capacity

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"berth/services"
	"berth/web/components"
	"berth/web/i18n"
	"berth/web/layout"
	"berth/web/urls"
)

// Page is the whole page.
type Page struct {
	layout.Shell
	Query   urls.ListQuery
	Range   string
	Ranges  []string
	Regions []string // to filter by
	Zones   []string
	Models  []string
	Cells   []Cell // by zone and model
	Rooms   []Room
	Sizes   []int
	Trend   Trend
}

// Trend is how capacity went, from Since until Until.
type Trend struct {
	Points       []Point // oldest first
	Since, Until time.Time
}

// Cell is the cards of a model in a zone; Free, Held and Unavailable add up.
type Cell struct {
	Zone, Model                    string // an empty model is unknown to the catalogue
	Free, Held, Unavailable, Total int
	Reasons                        []Reason // why cards are unavailable
}

// Reason is why some cards are unavailable.
type Reason struct {
	Key   string // text "capacity.why.<key>"
	Count int
	State string // that the list of cards can be narrowed to
}

// Room is how many machines of each size could still start.
type Room struct {
	Zone, Model string
	Machines    []int // for each of Sizes
}

// Point is capacity in a stretch of time.
type Point struct {
	At                      time.Time
	Free, Held, Unavailable float64
}

func (p Page) region() components.Region {
	return components.Region{ID: "capacity", Fragment: p.url(urls.Fragment(urls.AdminCapacity), p.Range), Events: []string{components.EventFleet}}
}

func (p Page) url(path, span string) string {
	u := p.Query.On(path)
	if span == "" {
		return u
	}
	if strings.Contains(u, "?") {
		return u + "&range=" + span
	}
	return u + "?range=" + span
}

func (p Page) bar(ctx context.Context) components.FilterBar {
	return components.FilterBar{
		ID: "capacity-filter", Action: urls.AdminCapacity, NoText: true, Keep: []components.Kept{{Name: "range", Value: p.Range}},
		Picks: []components.Pick{
			{Name: "region", Label: i18n.T(ctx, "field.region"), Options: components.AnyOf(p.Regions, p.Query.Region, i18n.T(ctx, "list.any-region"))},
			{Name: "zone", Label: i18n.T(ctx, "field.zone"), Options: components.AnyOf(p.Zones, p.Query.Zone, i18n.T(ctx, "list.any-zone"))},
			{Name: "model", Label: i18n.T(ctx, "field.model"), Options: components.AnyOf(p.Models, p.Query.Model, i18n.T(ctx, "list.any-model"))},
		},
	}
}

func (p Page) sum(of func(Cell) int) int {
	n := 0
	for _, c := range p.Cells {
		n += of(c)
	}
	return n
}

// zones are the rows of the heat map.
func (p Page) zones() []string {
	return distinct(p.Cells, func(c Cell) string { return c.Zone })
}

// models are its columns.
func (p Page) models() []string {
	all := distinct(p.Cells, func(c Cell) string { return c.Model })
	slices.Sort(all)
	return all
}

func distinct(cells []Cell, of func(Cell) string) []string {
	var out []string
	for _, c := range cells {
		if v := of(c); !slices.Contains(out, v) {
			out = append(out, v)
		}
	}
	return out
}

func (p Page) cell(zone, model string) (Cell, bool) {
	i := slices.IndexFunc(p.Cells, func(c Cell) bool { return c.Zone == zone && c.Model == model })
	if i < 0 {
		return Cell{}, false
	}
	return p.Cells[i], true
}

// heat is how full a cell is, in five steps.
func (c Cell) heat() string {
	if c.Total == 0 {
		return "0"
	}
	return fmt.Sprint((c.Total - c.Free) * 4 / c.Total)
}

// list is the cards of the cell in a state.
func (c Cell) list(state string) string {
	return urls.ListQuery{Zone: c.Zone, Model: c.query(), State: state}.On(urls.AdminCards)
}

// query is the model as lists are narrowed to it.
func (c Cell) query() string {
	if c.Model == "" {
		return "none"
	}
	return c.Model
}

func (c Cell) bar(ctx context.Context) components.Bar {
	return components.Bar{
		Label: i18n.T(ctx, "hosts.cards-are", "Free", c.Free, "Held", c.Held, "Total", c.Total), Total: c.Total,
		Parts: []components.BarPart{{Tone: components.ToneInfo, Value: c.Held}, {Tone: components.ToneBad, Value: c.Unavailable}},
	}
}

func modelName(ctx context.Context, model string) string {
	if model == "" {
		return i18n.T(ctx, "cards.unknown-model")
	}
	return model
}

// url leads to the cards of that condition, or to the hosts that keep them back.
func (r Reason) url(c Cell) string {
	if services.CardCondition(r.State).Valid() {
		return c.list(r.State)
	}
	return urls.ListQuery{Zone: c.Zone, Model: c.query(), State: r.State}.On(urls.AdminHosts)
}
