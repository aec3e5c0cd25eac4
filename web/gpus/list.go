package gpus

import (
	"context"
	"time"

	"berth/services"
	"berth/web/components"
	"berth/web/i18n"
	"berth/web/layout"
	"berth/web/urls"
)

// List is the page that lists an account's flexible GPUs.
type List struct {
	layout.Shell
	Query    urls.GPUQuery
	Rows     []Row
	Counts   Counts         // of what the query shows but for its state
	Next     services.GPUID // the next page's After; empty: this is the last
	Models   []string       // to filter by
	Zones    []string       // to filter by
	Quotas   []Quota        // of the region looked at
	Machines []Choice       // to attach the ticked GPUs to
	Broken   []services.Violation
	Chosen   services.VMID // of a refused bulk action
	Key      string        // idempotency
}

// Row is a GPU of the list.
type Row struct {
	ID          services.GPUID
	Name        string
	Model       string
	Generation  string
	State       services.GPUState
	Zone        string
	VM          services.VMID // empty: none
	VMName      string
	AllocatedAt time.Time
	Ticked      bool // of a refused bulk action
}

// Waits reports whether the GPU waits for its machine or its host.
func (r Row) Waits() bool {
	return r.State == services.GPUAttaching || r.State == services.GPUDetaching
}

// Counts are how many GPUs are in each state.
type Counts struct {
	Allocated, Attaching, Attached, Detaching int
}

// Waiting counts the GPUs that wait for a machine to stop or for a host.
func (c Counts) Waiting() int { return c.Attaching + c.Detaching }

// All counts the GPUs in any state.
func (c Counts) All() int { return c.Allocated + c.Attached + c.Waiting() }

func (c Counts) of(state string) int {
	switch state {
	case "":
		return c.All()
	case "waiting":
		return c.Waiting()
	case string(services.GPUAllocated):
		return c.Allocated
	case string(services.GPUAttaching):
		return c.Attaching
	case string(services.GPUAttached):
		return c.Attached
	case string(services.GPUDetaching):
		return c.Detaching
	}
	return 0
}

// StateFilter turns the query's state into states; nil: all.
func StateFilter(state string) []services.GPUState {
	if state == "waiting" {
		return []services.GPUState{services.GPUAttaching, services.GPUDetaching}
	}
	if s := services.GPUState(state); s.Valid() {
		return []services.GPUState{s}
	}
	return nil
}

func (l List) region() components.Region {
	return components.Region{ID: "gpus", Fragment: urls.GPUsFragment(l.Query), Events: []string{components.EventGPUs}}
}

// narrowed is the query with one thing changed; paging begins anew.
func (l List) narrowed(change func(*urls.GPUQuery)) string {
	q := l.Query
	q.After = ""
	change(&q)
	return urls.GPUs(q)
}

func (l List) tabs(ctx context.Context) []components.Tab {
	states := []string{"", string(services.GPUAttached), "waiting", string(services.GPUAllocated)}
	tabs := make([]components.Tab, 0, len(states)+1)
	for _, state := range states {
		key := "gpus.all"
		if state != "" {
			key = "gpus." + state
		}
		tabs = append(tabs, components.Tab{
			Label: i18n.T(ctx, key), Count: l.Counts.of(state), State: state, Current: l.Query.State == state,
			URL: l.narrowed(func(q *urls.GPUQuery) { q.State = state }),
		})
	}
	return tabs
}

func (l List) columns(ctx context.Context) []components.Column {
	return []components.Column{
		l.sorted(components.Column{Label: i18n.T(ctx, "field.name")}, "name"), l.sorted(components.Column{Label: i18n.T(ctx, "field.model")}, "model"),
		l.sorted(components.Column{Label: i18n.T(ctx, "gpus.state")}, "state"), {Label: i18n.T(ctx, "field.vm")},
		l.sorted(components.Column{Label: i18n.T(ctx, "field.zone")}, "zone"), l.sorted(components.Column{Label: i18n.T(ctx, "gpus.held-since")}, "created"),
	}
}

// sorted makes a column sort the list, which is newest first without a sort.
func (l List) sorted(c components.Column, name string) components.Column {
	return components.SortBy(c, name, l.Query.Sort, "-created", func(sort string) string {
		return l.narrowed(func(q *urls.GPUQuery) { q.Sort = sort })
	})
}

func (l List) paging() components.Paging {
	p := components.Paging{Shown: len(l.Rows), Total: l.Counts.of(l.Query.State)}
	if l.Query.After != "" {
		p.First = l.narrowed(func(*urls.GPUQuery) {})
	}
	if l.Next != "" {
		q := l.Query
		q.After = l.Next
		p.Next = urls.GPUs(q)
	}
	return p
}

func (l List) filterBar(ctx context.Context) components.FilterBar {
	return components.FilterBar{
		ID: "gpu", Action: urls.GPUs(urls.GPUQuery{}), Text: l.Query.Text,
		Keep: []components.Kept{{Name: "state", Value: l.Query.State}, {Name: "sort", Value: l.Query.Sort}},
		Picks: []components.Pick{
			{Name: "model", Label: i18n.T(ctx, "field.model"), Options: components.AnyOf(l.Models, l.Query.Model, i18n.T(ctx, "gpus.any-model"))},
			{Name: "zone", Label: i18n.T(ctx, "field.zone"), Options: components.AnyOf(l.Zones, l.Query.Zone, i18n.T(ctx, "gpus.any-zone"))},
		},
	}
}

// heading says how many GPUs are held of what the quota allows.
func (l List) heading(ctx context.Context) string {
	held, most := 0, 0
	for _, q := range l.Quotas {
		held += q.Used
		if q.Max == nil {
			return i18n.T(ctx, "gpus.held", "Count", l.Counts.All())
		}
		most += *q.Max
	}
	if len(l.Quotas) == 0 {
		return i18n.T(ctx, "gpus.held", "Count", l.Counts.All())
	}
	return i18n.T(ctx, "gpus.held-of-quota", "Held", held, "Max", most)
}
