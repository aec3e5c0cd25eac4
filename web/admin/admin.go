// Package admin is the operator's start page: what needs a person now, then
// capacity, then how it went and what happened.
package admin

import (
	"context"
	"time"

	"berth/services"
	"berth/web/admin/capacity"
	"berth/web/components"
	"berth/web/i18n"
	"berth/web/layout"
	"berth/web/urls"
)

// Page is the whole start page.
type Page struct {
	layout.Shell
	Hosts, Accepting, Draining, Maintenance, Silent, NotReady int
	Cards, Free, Held, Unavailable                            int

	Drifts     []components.Drift // newest first
	MoreDrifts int
	Away       []Away
	Out        []Out
	Operations []Stuck
	Agents     Agents
	Pools      []Pool // by zone and model
	Trend      capacity.Trend
	Events     []components.Happening
}

// Away is a host that is silent or not ready.
type Away struct {
	ID       services.HostID
	Name     string
	Zone     string
	Seen     time.Time
	Silent   bool // else it is not ready
	Held     int  // cards that accounts hold there
	Machines int
}

// Out is a card that waits for somebody.
type Out struct {
	ID       services.CardID
	Model    string // empty: unknown
	HostName string
	Address  string
	Status   services.CardCondition
	Reason   string
	Since    time.Time
}

// Stuck is an operation that can't go on by itself.
type Stuck struct {
	components.Progress
	Account  string
	Host     services.HostID
	HostName string
}

// Agents are how many need somebody.
type Agents struct{ All, Expiring, Expired int }

// Pool is the cards of a model in a zone; Free, Held and Unavailable add up.
type Pool struct {
	Zone        string
	Model       string // empty: unknown to the catalogue
	Free        int
	Held        int
	Unavailable int
	Total       int
}

func (p Page) region() components.Region {
	return components.Region{ID: "fleet", Fragment: urls.AdminFragment, Events: []string{components.EventFleet, components.EventActivity}}
}

// calm reports whether nothing needs a person.
func (p Page) calm() bool {
	return len(p.Drifts)+len(p.Away)+len(p.Out)+len(p.Operations)+p.Agents.Expired+p.Agents.Expiring == 0
}

// needs counts what does.
func (p Page) needs() int {
	n := len(p.Drifts) + p.MoreDrifts + len(p.Away) + len(p.Out) + len(p.Operations)
	if p.Agents.Expired+p.Agents.Expiring > 0 {
		n++
	}
	return n
}

func (p Pool) bar(ctx context.Context) components.Bar {
	return components.Bar{Label: i18n.T(ctx, "admin.of-total", "Free", p.Free, "Total", p.Total), Total: p.Total, Parts: []components.BarPart{
		{Tone: components.ToneInfo, Value: p.Held}, {Tone: components.ToneBad, Value: p.Unavailable},
	}}
}

// cards is the list of the pool's cards in a state.
func (p Pool) cards(state string) string {
	model := p.Model
	if model == "" {
		model = "none"
	}
	return urls.ListQuery{Zone: p.Zone, Model: model, State: state}.On(urls.AdminCards)
}

func (o Out) name(ctx context.Context) string {
	if o.Model == "" {
		return i18n.T(ctx, "cards.unknown-model")
	}
	return o.Model
}
