package components

import (
	"context"
	"slices"
	"strconv"

	"berth/web/i18n"
)

// Tab is a choice of a list by state, with how many there are.
type Tab struct {
	Label   string
	URL     string
	Count   int
	Current bool
	State   string // data-state; empty: all
}

// Column is a heading of a table; one with a URL sorts by it.
type Column struct {
	Label   string
	URL     string // sorts; empty: does not
	Sorted  string // "ascending", "descending" or empty
	Numeric bool
	Hidden  bool // shown to screen readers only
}

// FilterBar narrows a list by a text and by choices.
type FilterBar struct {
	ID     string // of the form; its fields have ids that begin with it
	Action string // the list's path
	Text   string // q
	Hint   string // what can be searched for; empty: names and ids
	NoText bool   // there is nothing to search for
	Picks  []Pick
	Days   []Day
	Keep   []Kept // parameters that stay as they are
}

// Pick is a choice of a filter bar.
type Pick struct {
	Name    string
	Label   string
	Options []Option
}

func (b FilterBar) hint(ctx context.Context) string {
	if b.Hint != "" {
		return b.Hint
	}
	return i18n.T(ctx, "list.search")
}

// Day is a date of a filter bar, "2025-12-01".
type Day struct{ Name, Label, Value string }

// Kept is a parameter of the page's address.
type Kept struct{ Name, Value string }

// AnyOf makes the options of a filter: all, and each value. A chosen value that
// is none of them stays in the list, for it narrows all the same.
func AnyOf(values []string, chosen, all string) []Option {
	out := []Option{{Label: all, Selected: chosen == ""}}
	if chosen != "" && !slices.Contains(values, chosen) {
		values = append([]string{chosen}, values...)
	}
	for _, v := range values {
		out = append(out, Option{Value: v, Label: v, Selected: v == chosen})
	}
	return out
}

// SortBy makes a column sort a list by name, and the other way round when it
// does. now is the list's sort, own the one it has without any; url gives the
// list sorted by a name, empty for its own order.
func SortBy(c Column, name, now, own string, url func(sort string) string) Column {
	if now == "" {
		now = own
	}
	next := name
	switch now {
	case name:
		c.Sorted, next = "ascending", "-"+name
	case "-" + name:
		c.Sorted = "descending"
	}
	if next == own {
		next = ""
	}
	c.URL = url(next)
	return c
}

// Paging leads through a list.
type Paging struct {
	Shown int
	Total int    // 0: not counted
	First string // URL of the first page; empty: this is it
	Next  string // URL of the next page; empty: this is the last
}

// Bar is a bar of parts against a whole.
type Bar struct {
	Label string // what it says, for those who do not see it
	Parts []BarPart
	Total int
}

// BarPart is a stretch of a bar.
type BarPart struct {
	Tone  Tone
	Value int
}

type stretch struct {
	tone     Tone
	x, width string
}

// stretches places the parts on a scale of 100.
func (b Bar) stretches() []stretch {
	var out []stretch
	at := 0.0
	for _, p := range b.Parts {
		if p.Value <= 0 || b.Total <= 0 {
			continue
		}
		w := min(100-at, 100*float64(p.Value)/float64(b.Total))
		out = append(out, stretch{p.Tone, percent(at), percent(w)})
		at += w
	}
	return out
}

func percent(v float64) string { return strconv.FormatFloat(v, 'f', 2, 64) + "%" }
