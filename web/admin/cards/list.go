// Package cards is the operator's pages about physical GPUs: the list, and each
// card with what was done with it and what can be done.
package cards

import (
	"context"
	"time"

	"berth/services"
	"berth/web/components"
	"berth/web/i18n"
	"berth/web/layout"
	"berth/web/urls"
)

// List is the page that lists all cards.
type List struct {
	layout.Shell
	components.Listing
	Rows     []Row
	Count    func(state string) int // of what the query shows but for its state
	Regions  []string               // to filter by
	Zones    []string
	Models   []string
	HostName string               // of the host that the query asks for; empty: all
	Owner    string               // likewise of the account
	Broken   []services.Violation // of a refused bulk action
	Reason   string               // likewise
	Key      string               // idempotency
}

// Row is a card of the list.
type Row struct {
	ID          services.CardID
	Model       string // empty: unknown to the catalogue
	Vendor      string // PCI ids, "10de:26b5"
	Serial      string // empty: none
	Host        services.HostID
	HostName    string
	Zone        string
	PCIAddress  string
	IOMMUGroup  *int
	NUMANode    *int
	Driver      string // empty: none
	Status      services.CardCondition
	Reason      string
	Offered     bool   // free, and given out
	Withheld    string // why a free, ready card is not offered: "draining", "maintenance", "not-ready", "silent"; empty: it is not so
	GPU         services.GPUID
	GPUName     string
	State       services.GPUState // of the GPU; empty: built in, or none
	Account     services.AccountID
	AccountName string
	VMName      string
	Seen        time.Time // last
	Ticked      bool      // of a refused bulk action
}

// States are what the list can be narrowed to.
var States = []string{
	"", "free", "held", "unavailable", string(services.CardCleaning), string(services.CardQuarantined), string(services.CardDisabled),
	string(services.CardMissing), string(services.CardNeedsReview), string(services.CardRetired),
}

// Unknown is the filter for cards that the catalogue has no model of.
const Unknown = "none"

func (l List) frame(ctx context.Context) components.ListFrame {
	models := components.AnyOf(l.Models, l.Query.Model, i18n.T(ctx, "list.any-model"))
	if l.Query.Model == Unknown {
		models[1].Label = i18n.T(ctx, "cards.unknown-model")
	} else {
		models = append(models, components.Option{Value: Unknown, Label: i18n.T(ctx, "cards.unknown-model")})
	}
	return components.ListFrame{
		Listing: l.Listing, Label: i18n.T(ctx, "nav.cards"), Tabs: l.tabs(ctx),
		Icon: components.IconChip, Empty: i18n.T(ctx, "cards.none"), Hint: i18n.T(ctx, "cards.none-text"),
		Bar: components.FilterBar{
			ID: "cards", Action: urls.AdminCards, Text: l.Query.Text, Hint: i18n.T(ctx, "cards.search"), Keep: l.Kept("region", "zone", "model"),
			Picks: []components.Pick{
				{Name: "region", Label: i18n.T(ctx, "field.region"), Options: components.AnyOf(l.Regions, l.Query.Region, i18n.T(ctx, "list.any-region"))},
				{Name: "zone", Label: i18n.T(ctx, "field.zone"), Options: components.AnyOf(l.Zones, l.Query.Zone, i18n.T(ctx, "list.any-zone"))},
				{Name: "model", Label: i18n.T(ctx, "field.model"), Options: models},
			},
		},
	}
}

// tabs leave out states that no card is in, but for the first four and the one shown.
func (l List) tabs(ctx context.Context) []components.Tab {
	always := 4
	states := []string{}
	for i, s := range States {
		if i < always || l.Count(s) > 0 || l.Query.State == s {
			states = append(states, s)
		}
	}
	return l.Tabs(states, func(state string) string {
		if state == "" {
			return i18n.T(ctx, "list.all")
		}
		return i18n.T(ctx, "cards.state."+state)
	}, l.Count)
}

func (l List) columns(ctx context.Context) []components.Column {
	return []components.Column{
		l.Sortable(components.Column{Label: i18n.T(ctx, "field.model")}, "model"),
		l.Sortable(components.Column{Label: i18n.T(ctx, "cards.serial")}, "serial"),
		l.Sortable(components.Column{Label: i18n.T(ctx, "field.host")}, "host"),
		l.Sortable(components.Column{Label: i18n.T(ctx, "field.zone")}, "zone"),
		l.Sortable(components.Column{Label: i18n.T(ctx, "cards.condition")}, "state"),
		{Label: i18n.T(ctx, "hosts.holder")},
		l.Sortable(components.Column{Label: i18n.T(ctx, "hosts.driver")}, "driver"),
	}
}

func dash(text string) string {
	if text == "" {
		return "–"
	}
	return text
}
