// Package accounts is the operator's pages about tenants: accounts, who belongs
// to them, and what they may have.
package accounts

import (
	"context"
	"slices"
	"time"

	"berth/services"
	"berth/web/components"
	"berth/web/i18n"
	"berth/web/layout"
	"berth/web/quotas"
	"berth/web/urls"
)

// List is the page that lists all accounts.
type List struct {
	layout.Shell
	components.Listing
	Rows   []Row
	Count  func(state string) int // of what the query shows but for its state
	Asked  Opening                // of a refused opening
	Broken []services.Violation
	Key    string
}

// Row is an account of the list.
type Row struct {
	ID        services.AccountID
	Name      string
	GPUs      int
	Machines  int
	Members   int
	OpenedAt  time.Time
	Suspended bool
	Reason    string
}

// State is the word for it, as data-state.
func (r Row) State() string {
	if r.Suspended {
		return "suspended"
	}
	return "active"
}

// Opening is what was asked of a new account.
type Opening struct{ Name, Email string }

// States are what the list can be narrowed to.
var States = []string{"", "active", "suspended"}

func (l List) frame(ctx context.Context) components.ListFrame {
	label := func(state string) string {
		if state == "" {
			return i18n.T(ctx, "list.all")
		}
		return i18n.T(ctx, "accounts.state."+state)
	}
	return components.ListFrame{
		Listing: l.Listing, Label: i18n.T(ctx, "nav.accounts"), Tabs: l.Tabs(States, label, l.Count),
		Icon: components.IconUser, Empty: i18n.T(ctx, "accounts.none"), Hint: i18n.T(ctx, "accounts.none-text"),
		Bar: components.FilterBar{ID: "accounts", Action: urls.AdminAccounts, Text: l.Query.Text, Keep: l.Kept()},
	}
}

func (l List) columns(ctx context.Context) []components.Column {
	return []components.Column{
		l.Sortable(components.Column{Label: i18n.T(ctx, "field.name")}, "name"), {Label: i18n.T(ctx, "gpus.state")},
		{Label: i18n.T(ctx, "nav.gpus"), Numeric: true}, {Label: i18n.T(ctx, "nav.vms"), Numeric: true},
		{Label: i18n.T(ctx, "accounts.members"), Numeric: true},
		l.Sortable(components.Column{Label: i18n.T(ctx, "accounts.opened")}, "created"),
	}
}

// Page is an account's page.
type Page struct {
	layout.Shell
	Account        Row
	SuspendedSince time.Time
	Members        []Member
	Quotas         []quotas.Quota
	Events         []components.Happening
	Setting        Setting
	Asked          Asked
	Broken         []services.Violation
	Key            string
}

// Member is somebody who belongs to an account.
type Member struct {
	Email string
	Role  services.Role
}

// Asked is what was asked of an account.
type Asked struct {
	Form   string // "suspend", "member", "quota"
	Reason string
	Email  string
	Role   string
}

// Roles are what a member can be made.
var Roles = []services.Role{services.RoleOwner, services.RoleMember, services.RoleViewer}

func (p Page) region() components.Region {
	return components.Region{ID: "account", Fragment: urls.Fragment(urls.AdminAccount(p.Account.ID)), Events: []string{components.EventOperations}}
}

// refused is the form that the broken rules are about, as its fields are within.
func (p Page) refused() string {
	switch {
	case len(p.Setting.Broken) > 0:
		return "quota"
	case p.Asked.Form == "member":
		return "member"
	}
	return ""
}

func (p Page) problemOf(ctx context.Context, form, field string) string {
	if p.Asked.Form != form {
		return ""
	}
	return components.Of(ctx, p.Broken, field)
}

// Quotas is the page that lists all quotas.
type Quotas struct {
	layout.Shell
	components.Listing
	Rows    []quotas.Quota
	Setting Setting
	Broken  []services.Violation
}

// Setting is the form that sets a quota.
type Setting struct {
	Account string // id, as asked
	Region  string
	Item    string
	Limit   string
	Regions []string // to choose from
	Models  []string
	Back    string // the page to come back to
	Broken  []services.Violation
}

// owner names the account that the query asks for.
func (q Quotas) owner() string {
	if len(q.Rows) > 0 {
		return q.Rows[0].AccountName
	}
	return q.Query.Account
}

func (q Quotas) frame(ctx context.Context) components.ListFrame {
	items := components.AnyOf(slices.Concat(q.Setting.Models, services.Resources), q.Query.Model, i18n.T(ctx, "quotas.any-item"))
	for i := range items[1:] {
		items[i+1].Label = quotas.Item(ctx, items[i+1].Value)
	}
	return components.ListFrame{
		Listing: q.Listing, Label: i18n.T(ctx, "nav.all-quotas"),
		Icon: components.IconGauge, Empty: i18n.T(ctx, "quotas.empty"), Hint: i18n.T(ctx, "quotas.empty-text"),
		Bar: components.FilterBar{
			ID: "quotas", Action: urls.AdminQuotas, Text: q.Query.Text, Hint: i18n.T(ctx, "quotas.search"), Keep: q.Kept("region", "model"),
			Picks: []components.Pick{
				{Name: "region", Label: i18n.T(ctx, "field.region"), Options: components.AnyOf(q.Setting.Regions, q.Query.Region, i18n.T(ctx, "list.any-region"))},
				{Name: "model", Label: i18n.T(ctx, "quotas.item-label"), Options: items},
			},
		},
	}
}

func (s Setting) regions() []components.Option { return choose(s.Regions, s.Region) }

func (s Setting) items(ctx context.Context) []components.Option {
	out := choose(s.Models, s.Item)
	for _, r := range services.Resources {
		out = append(out, components.Option{Value: r, Label: quotas.Item(ctx, r), Selected: r == s.Item})
	}
	return out
}

func choose(values []string, chosen string) []components.Option {
	var out []components.Option
	for _, v := range values {
		out = append(out, components.Option{Value: v, Label: v, Selected: v == chosen})
	}
	return out
}

func (s Setting) problem(ctx context.Context, field string) string {
	return components.Of(ctx, s.Broken, field)
}

func (p Page) roles(ctx context.Context) []components.Option {
	var out []components.Option
	for _, r := range Roles {
		out = append(out, components.Option{Value: string(r), Label: i18n.T(ctx, "role."+string(r)), Selected: string(r) == p.Asked.Role})
	}
	return out
}
