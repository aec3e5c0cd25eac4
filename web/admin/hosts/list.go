// Package hosts is the operator's pages about machines with cards: the list,
// and each host with its readiness, topology, machines and maintenance.
package hosts

import (
	"context"
	"time"

	"berth/services"
	"berth/web/components"
	"berth/web/i18n"
	"berth/web/layout"
	"berth/web/urls"
)

// List is the page that lists all hosts.
type List struct {
	layout.Shell
	components.Listing
	Rows     []Row
	Count    func(state string) int // of what the query shows but for its state
	Regions  []string               // to filter by
	Zones    []string
	Models   []string
	Versions []string
	Broken   []services.Violation // of a refused bulk action
	Reason   string               // likewise
	Key      string               // idempotency
}

// Row is a host of the list.
type Row struct {
	ID         services.HostID
	Name       string
	Zone       string
	Generation string
	VCores     int
	MemoryMiB  int
	Mode       services.HostMode
	ModeReason string
	Ready      bool
	Vouched    bool // a full report still vouches for it; else its cards are not offered
	Seen       time.Time
	Version    string // of its agent
	Cards      int
	Free       int
	Held       int
	Machines   int
	Ticked     bool // of a refused bulk action
}

// States are what the list can be narrowed to.
var States = []string{"", string(services.HostAccepting), string(services.HostDraining), string(services.HostMaintenance), "not-ready", "silent"}

func (l List) frame(ctx context.Context) components.ListFrame {
	label := func(state string) string {
		if state == "" {
			return i18n.T(ctx, "list.all")
		}
		return i18n.T(ctx, "hosts.state."+state)
	}
	return components.ListFrame{
		Listing: l.Listing, Label: i18n.T(ctx, "nav.hosts"), Tabs: l.Tabs(States, label, l.Count),
		Icon: components.IconHost, Empty: i18n.T(ctx, "hosts.none"), Hint: i18n.T(ctx, "hosts.none-text"),
		Bar: components.FilterBar{
			ID: "hosts", Action: urls.AdminHosts, Text: l.Query.Text, Keep: l.Kept("region", "zone", "model", "version"),
			Picks: []components.Pick{
				{Name: "region", Label: i18n.T(ctx, "field.region"), Options: components.AnyOf(l.Regions, l.Query.Region, i18n.T(ctx, "list.any-region"))},
				{Name: "zone", Label: i18n.T(ctx, "field.zone"), Options: components.AnyOf(l.Zones, l.Query.Zone, i18n.T(ctx, "list.any-zone"))},
				{Name: "model", Label: i18n.T(ctx, "field.model"), Options: components.AnyOf(l.Models, l.Query.Model, i18n.T(ctx, "list.any-model"))},
				{Name: "version", Label: i18n.T(ctx, "hosts.agent"), Options: components.AnyOf(l.Versions, l.Query.Version, i18n.T(ctx, "list.any-version"))},
			},
		},
	}
}

func (l List) columns(ctx context.Context) []components.Column {
	return []components.Column{
		l.Sortable(components.Column{Label: i18n.T(ctx, "field.name")}, "name"),
		l.Sortable(components.Column{Label: i18n.T(ctx, "field.zone")}, "zone"),
		l.Sortable(components.Column{Label: i18n.T(ctx, "field.mode")}, "mode"),
		l.Sortable(components.Column{Label: i18n.T(ctx, "hosts.readiness")}, "ready"),
		{Label: i18n.T(ctx, "nav.cards")},
		{Label: i18n.T(ctx, "nav.vms"), Numeric: true},
		l.Sortable(components.Column{Label: i18n.T(ctx, "hosts.agent")}, "version"),
	}
}

// contact says whether the host is there and can hand out its cards.
func (r Row) contact() (look components.Look, key string) {
	switch {
	case !r.Vouched:
		return components.Look{Tone: components.ToneBad, Icon: components.IconWarning}, "hosts.silent"
	case !r.Ready:
		return components.Look{Tone: components.ToneBad, Icon: components.IconWarning}, "hosts.not-ready"
	}
	return components.Look{Tone: components.ToneOK, Icon: components.IconCheck}, "hosts.ready"
}

func (r Row) bar(ctx context.Context) components.Bar {
	return components.Bar{Label: i18n.T(ctx, "hosts.cards-are", "Free", r.Free, "Held", r.Held, "Total", r.Cards), Total: r.Cards, Parts: []components.BarPart{
		{Tone: components.ToneInfo, Value: r.Held}, {Tone: components.ToneBad, Value: r.Cards - r.Held - r.Free},
	}}
}
