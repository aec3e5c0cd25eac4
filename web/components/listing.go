package components

import (
	"strings"

	"berth/services"
	"berth/web/urls"
)

// Listing is what every list of the operator's has: where it is, what its
// query shows of how many, and what comes after.
type Listing struct {
	Path   string // of the page
	Query  urls.ListQuery
	Shown  int
	Total  int    // of all matches; below 0: not counted
	Next   string // the next page's After; empty: this is the last
	Column string // that the list is sorted by without a sort, "name" or "-created"
}

// With is the list's URL with one thing changed; paging begins anew.
func (l Listing) With(change func(*urls.ListQuery)) string {
	q := l.Query
	q.After = ""
	change(&q)
	return q.On(l.Path)
}

// Live is the list's part that changes by itself: all of it, on its first page.
func (l Listing) Live(id string, events ...string) Region {
	r := Region{ID: id, Fragment: l.Query.On(urls.Fragment(l.Path))}
	if l.Query.After == "" {
		r.Events = events
	}
	return r
}

// Sortable makes a column sort by a name, and the other way round when it does.
func (l Listing) Sortable(c Column, name string) Column {
	return SortBy(c, name, l.Query.Sort, l.Column, func(sort string) string {
		return l.With(func(q *urls.ListQuery) { q.Sort = sort })
	})
}

// Tabs make a choice of states, each with its count.
func (l Listing) Tabs(states []string, label func(state string) string, count func(state string) int) []Tab {
	tabs := make([]Tab, 0, len(states))
	for _, s := range states {
		tabs = append(tabs, Tab{
			Label: label(s), Count: count(s), State: s, Current: l.Query.State == s,
			URL: l.With(func(q *urls.ListQuery) { q.State = s }),
		})
	}
	return tabs
}

// Kept are the parameters that a filter bar leaves as they are; those that it
// has fields for are named.
func (l Listing) Kept(fields ...string) []Kept {
	var kept []Kept
	for name, values := range l.Query.Values() {
		if name != "q" && name != "after" && !strings.Contains(" "+strings.Join(fields, " ")+" ", " "+name+" ") {
			kept = append(kept, Kept{name, values[0]})
		}
	}
	return kept
}

func (l Listing) paging() Paging {
	p := Paging{Shown: l.Shown, Total: max(0, l.Total)}
	if l.Query.After != "" {
		p.First = l.With(func(*urls.ListQuery) {})
	}
	if l.Next != "" {
		q := l.Query
		q.After = l.Next
		p.Next = q.On(l.Path)
	}
	return p
}

// ListFrame is the panel around a list.
type ListFrame struct {
	Listing
	Label string // what is listed, for those who do not see it
	Tabs  []Tab
	Bar   FilterBar
	Icon  Icon   // of the empty list
	Empty string // what an empty list says where nothing is left out
	Hint  string // and what to do about it
}

// conditionLooks are how the statuses of cards show.
var conditionLooks = map[services.CardCondition]Look{
	services.CardReady:       {ToneOK, IconCheck},
	services.CardCleaning:    {ToneWait, IconClock},
	services.CardQuarantined: {ToneBad, IconWarning},
	services.CardDisabled:    {ToneHeld, IconBan},
	services.CardMissing:     {ToneBad, IconUnlink},
	services.CardNeedsReview: {ToneWait, IconInfo},
	services.CardRetired:     {ToneHeld, IconMinus},
}

// ConditionLook is how a card's status shows.
func ConditionLook(c services.CardCondition) Look { return conditionLooks[c] }

var modeLooks = map[services.HostMode]Look{
	services.HostAccepting:   {ToneOK, IconCheck},
	services.HostDraining:    {ToneWait, IconArrowRight},
	services.HostMaintenance: {ToneHeld, IconPencil},
}

// ModeLook is how a host's mode shows.
func ModeLook(m services.HostMode) Look { return modeLooks[m] }
