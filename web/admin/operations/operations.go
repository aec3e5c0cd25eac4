// Package operations is the operator's page about everything that is under
// way, waiting, stuck or failed, whoever's it is.
package operations

import (
	"context"

	"berth/services"
	"berth/web/components"
	"berth/web/i18n"
	"berth/web/layout"
	"berth/web/urls"
)

// List is the page that lists all accounts' operations.
type List struct {
	layout.Shell
	components.Listing
	Rows   []Row
	Count  func(state string) int // of what the query shows but for its state
	Zones  []string               // to filter by
	Owner  string                 // of the account that the query asks for; empty: all
	Broken []services.Violation   // of a refused action
	Key    string                 // idempotency
}

// Row is an operation of the list.
type Row struct {
	components.Progress
	Account     services.AccountID
	AccountName string
	Host        services.HostID
	HostName    string
	Zone        string
	Power       services.Power
	Problem     string // what the host says; empty: nothing
}

// States are what the list can be narrowed to.
var States = []string{
	"", "open", string(services.OpRunning), string(services.OpStuck), string(services.OpFailed), string(services.OpDone), string(services.OpCancelled),
}

func (l List) frame(ctx context.Context) components.ListFrame {
	label := func(state string) string {
		if state == "" {
			return i18n.T(ctx, "list.all")
		}
		return i18n.T(ctx, "operations.state."+state)
	}
	return components.ListFrame{
		Listing: l.Listing, Label: i18n.T(ctx, "nav.operations"), Tabs: l.Tabs(States, label, l.Count),
		Icon: components.IconRestart, Empty: i18n.T(ctx, "operations.none"), Hint: i18n.T(ctx, "operations.none-text"),
		Bar: components.FilterBar{
			ID: "operations", Action: urls.AdminOperations, Text: l.Query.Text, Hint: i18n.T(ctx, "operations.search"), Keep: l.Kept("zone"),
			Picks: []components.Pick{
				{Name: "zone", Label: i18n.T(ctx, "field.zone"), Options: components.AnyOf(l.Zones, l.Query.Zone, i18n.T(ctx, "list.any-zone"))},
			},
		},
	}
}

func (l List) columns(ctx context.Context) []components.Column {
	return []components.Column{
		{Label: i18n.T(ctx, "operations.what")}, {Label: i18n.T(ctx, "gpus.state")}, {Label: i18n.T(ctx, "operations.step")},
		{Label: i18n.T(ctx, "field.account")}, {Label: i18n.T(ctx, "field.host")},
		l.Sortable(components.Column{Label: i18n.T(ctx, "operations.began")}, "created"),
		{Label: i18n.T(ctx, "operations.actions"), Hidden: true},
	}
}

// step names the step that the operation is at; the last where it has ended well.
func (r Row) step(ctx context.Context) string {
	if len(r.Steps) == 0 {
		return ""
	}
	return i18n.T(ctx, "step."+r.Steps[min(r.At, len(r.Steps)-1)])
}

// cancellable reports whether it can be given up: a deletion can't.
func (r Row) cancellable() bool { return r.Open() && r.Kind != services.OpDelete }

// why says what it waits for or failed of: the reason, and what the host says.
func (r Row) why(ctx context.Context) string {
	why := r.Why(ctx)
	if r.Problem != "" && r.Detail == "" {
		return why + " " + r.Problem
	}
	return why
}
