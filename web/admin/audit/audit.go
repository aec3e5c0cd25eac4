// Package audit is the operator's log: who did what to which object when, and
// from where.
package audit

import (
	"context"
	"slices"

	"berth/services"
	"berth/web/components"
	"berth/web/i18n"
	"berth/web/layout"
	"berth/web/urls"
)

// Page is one page of what happened, newest first.
type Page struct {
	layout.Shell
	components.Listing
	Events []components.Happening
	Broken []services.Violation // of the query itself
}

// Families are what kinds of events begin with.
var Families = []string{"gpu", "vm", "card", "host", "account", "agent", "catalog"}

// Formats are what the log can be exported as.
var Formats = []string{"csv", "jsonl"}

func (p Page) frame(ctx context.Context) components.ListFrame {
	families := components.AnyOf(nil, "", i18n.T(ctx, "audit.any-kind"))
	for _, f := range Families {
		families = append(families, components.Option{Value: f, Label: i18n.T(ctx, "audit.kind."+f), Selected: f == p.Query.State})
	}
	families[0].Selected = !slices.Contains(Families, p.Query.State)
	return components.ListFrame{
		Listing: p.Listing, Label: i18n.T(ctx, "nav.audit"),
		Icon: components.IconActivity, Empty: i18n.T(ctx, "audit.none"), Hint: i18n.T(ctx, "audit.none-text"),
		Bar: components.FilterBar{
			ID: "audit", Action: urls.AdminActivity, Text: p.Query.Text, Hint: i18n.T(ctx, "audit.search"),
			Keep:  p.Kept("state", "from", "until"),
			Picks: []components.Pick{{Name: "state", Label: i18n.T(ctx, "audit.kind-label"), Options: families}},
			Days: []components.Day{
				{Name: "from", Label: i18n.T(ctx, "audit.from"), Value: p.Query.From},
				{Name: "until", Label: i18n.T(ctx, "audit.until"), Value: p.Query.Until},
			},
		},
	}
}

// only is a part of the query that no field shows, with what takes it away.
type only struct{ text, url string }

func (p Page) onlys(ctx context.Context) []only {
	var out []only
	add := func(value, key string, drop func(*urls.ListQuery)) {
		if value != "" {
			out = append(out, only{i18n.T(ctx, key, "Value", value), p.With(drop)})
		}
	}
	add(p.Query.Actor, "audit.only-actor", func(q *urls.ListQuery) { q.Actor = "" })
	add(p.Query.Object, "audit.only-object", func(q *urls.ListQuery) { q.Object = "" })
	add(p.Query.Account, "audit.only-account", func(q *urls.ListQuery) { q.Account = "" })
	return out
}

// export is the URL of all that the query shows, in a format.
func (p Page) export(format string) string {
	q := p.Query
	q.After = ""
	return q.On(urls.AdminExport(format))
}

// of narrows the log to an actor or an object.
func (p Page) of(change func(*urls.ListQuery)) string { return p.With(change) }

// link is an object of an event.
type link struct {
	icon     components.Icon
	id, name string
	url      string // of its page; empty: operators have none
}

func links(h components.Happening) []link {
	var out []link
	add := func(icon components.Icon, id, name, url string) {
		if id != "" {
			if name == "" {
				name = id
			}
			out = append(out, link{icon, id, name, url})
		}
	}
	add(components.IconUser, string(h.Account), h.AccountName, urls.AdminAccount(h.Account))
	add(components.IconGPU, string(h.GPU), h.GPUName, "")
	add(components.IconVM, string(h.VM), h.VMName, "")
	add(components.IconChip, string(h.Card), "", urls.Card(h.Card))
	add(components.IconHost, string(h.Host), h.HostName, urls.Host(h.Host))
	return out
}
