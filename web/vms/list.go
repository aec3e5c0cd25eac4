package vms

import (
	"context"
	"time"

	"berth/services"
	"berth/web/components"
	"berth/web/i18n"
	"berth/web/layout"
	"berth/web/urls"
)

// List is the page that lists an account's machines.
type List struct {
	layout.Shell
	Query  urls.VMQuery
	Rows   []Row
	Counts []PowerCount  // of what the query shows but for its power
	Next   services.VMID // the next page's After; empty: this is the last
	Zones  []string      // to filter by
}

// Row is a machine of the list.
type Row struct {
	ID        services.VMID
	Name      string
	Type      string
	VCores    int
	MemoryMiB int
	Zone      string
	Power     services.Power
	Wanted    services.Power // what was ordered last
	GPUs      []Group
	CreatedAt time.Time
}

// Group is how many GPUs of a model and state a machine has.
type Group struct {
	Model string
	Kind  services.GPUKind
	State services.GPUState // empty: built in
	Count int
}

// Waits reports whether the group's GPUs wait for a stop or for the host.
func (g Group) Waits() bool {
	return g.State == services.GPUAttaching || g.State == services.GPUDetaching
}

// PowerCount is how many machines have a power.
type PowerCount struct {
	Power services.Power
	Count int
}

func (l List) region() components.Region {
	return components.Region{ID: "vms", Fragment: urls.VMsFragment(l.Query), Events: []string{components.EventVMs, components.EventGPUs}}
}

// count counts the machines of a power; empty: of any.
func (l List) count(p services.Power) int {
	n := 0
	for _, c := range l.Counts {
		if p == "" || c.Power == p {
			n += c.Count
		}
	}
	return n
}

// narrowed is the query with one thing changed; paging begins anew.
func (l List) narrowed(change func(*urls.VMQuery)) string {
	q := l.Query
	q.After = ""
	change(&q)
	return urls.VMs(q)
}

// tabs always offer running and stopped, and of the passing powers those that
// a machine has now.
func (l List) filterBar(ctx context.Context) components.FilterBar {
	return components.FilterBar{
		ID: "vm", Action: urls.VMs(urls.VMQuery{}), Text: l.Query.Text,
		Keep: []components.Kept{{Name: "power", Value: l.Query.Power}, {Name: "sort", Value: l.Query.Sort}},
		Picks: []components.Pick{
			{Name: "zone", Label: i18n.T(ctx, "field.zone"), Options: components.AnyOf(l.Zones, l.Query.Zone, i18n.T(ctx, "vms.any-zone"))},
		},
	}
}

func (l List) tabs(ctx context.Context) []components.Tab {
	powers := []services.Power{"", services.PowerRunning, services.PowerStopped, services.PowerPending, services.PowerStarting, services.PowerStopping}
	tabs := make([]components.Tab, 0, len(powers))
	for i, p := range powers {
		n, current := l.count(p), l.Query.Power == string(p)
		if i > 2 && n == 0 && !current {
			continue
		}
		label := i18n.T(ctx, "vms.all")
		if p != "" {
			label = i18n.T(ctx, "power."+string(p))
		}
		tabs = append(tabs, components.Tab{
			Label: label, Count: n, State: string(p), Current: current,
			URL: l.narrowed(func(q *urls.VMQuery) { q.Power = string(p) }),
		})
	}
	return tabs
}

func (l List) columns(ctx context.Context) []components.Column {
	return []components.Column{
		l.sorted(components.Column{Label: i18n.T(ctx, "field.name")}, "name"), l.sorted(components.Column{Label: i18n.T(ctx, "vms.power")}, "power"),
		l.sorted(components.Column{Label: i18n.T(ctx, "field.type")}, "type"), {Label: i18n.T(ctx, "field.gpu")},
		l.sorted(components.Column{Label: i18n.T(ctx, "field.zone")}, "zone"), l.sorted(components.Column{Label: i18n.T(ctx, "vms.created")}, "created"),
	}
}

// sorted makes a column sort the list, which is newest first without a sort.
func (l List) sorted(c components.Column, name string) components.Column {
	return components.SortBy(c, name, l.Query.Sort, "-created", func(sort string) string {
		return l.narrowed(func(q *urls.VMQuery) { q.Sort = sort })
	})
}

func (l List) paging() components.Paging {
	p := components.Paging{Shown: len(l.Rows), Total: l.count(services.Power(l.Query.Power))}
	if l.Query.After != "" {
		p.First = l.narrowed(func(*urls.VMQuery) {})
	}
	if l.Next != "" {
		q := l.Query
		q.After = l.Next
		p.Next = urls.VMs(q)
	}
	return p
}

// ordered says what was ordered that the host has not yet begun; empty: nothing.
func (r Row) ordered(ctx context.Context) string {
	switch {
	case r.Wanted == services.PowerStopped && r.Power == services.PowerRunning:
		return i18n.T(ctx, "vms.to-stop")
	case r.Wanted == services.PowerRunning && r.Power == services.PowerStopped:
		return i18n.T(ctx, "vms.to-start")
	}
	return ""
}
