// Package activity is the page that tells what happened in an account.
package activity

import (
	"context"

	"berth/web/components"
	"berth/web/i18n"
	"berth/web/layout"
	"berth/web/urls"
)

// Page is one page of what happened, newest first.
type Page struct {
	layout.Shell
	Query  urls.ActivityQuery
	Events []components.Happening
	Next   int64  // the next page's Before; 0: this is the last
	About  string // name of the GPU or VM that the query asks for; empty: none
}

func (p Page) region() components.Region {
	r := components.Region{ID: "activity", Fragment: urls.ActivityFragment(p.Query)}
	if p.Query.Before == 0 { // what came before an event does not change
		r.Events = []string{components.EventActivity}
	}
	return r
}

// kind is a way to narrow the list.
type kind struct {
	value string
	label string
	url   string
}

func (p Page) kinds(ctx context.Context) []kind {
	var out []kind
	for _, value := range []string{"", "gpu", "vm"} {
		key := "activity.all"
		if value != "" {
			key = "activity.of." + value
		}
		q := p.Query
		q.Kind, q.Before = value, 0
		out = append(out, kind{value: value, label: i18n.T(ctx, key), url: urls.Activity(q)})
	}
	return out
}

func (p Page) paging() components.Paging {
	g := components.Paging{Shown: len(p.Events)}
	if p.Query.Before != 0 {
		q := p.Query
		q.Before = 0
		g.First = urls.Activity(q)
	}
	if p.Next != 0 {
		q := p.Query
		q.Before = p.Next
		g.Next = urls.Activity(q)
	}
	return g
}

// narrowed reports whether the query leaves anything out.
func (p Page) narrowed() bool { return p.Query.Kind != "" || p.Query.GPU != "" || p.Query.VM != "" }
