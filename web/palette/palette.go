// Package palette is the list of where to go and what to do that Ctrl-K opens:
// pages, actions, and what is found by the text typed so far.
package palette

import (
	"context"
	"strconv"
	"strings"

	"berth/web/components"
	"berth/web/i18n"
	"berth/web/layout"
	"berth/web/urls"
)

// List is what the palette offers.
type List struct {
	Groups []Group
	Text   string // typed so far
}

// Group is choices of one kind.
type Group struct {
	Key   string // text "palette.group.<key>"
	Items []Item
}

// Item is one choice.
type Item struct {
	Icon   components.Icon
	Name   string
	Detail string
	URL    string
	Press  string // selector of a button of the page to press instead; empty: go to URL
	ID     string // of an object; empty: a page or action
}

func (l List) empty() bool { return len(l.Groups) == 0 }

// number is the element's id of an item; the first of the first group is 0.
func (l List) number(group, item int) string {
	n := item
	for _, g := range l.Groups[:group] {
		n += len(g.Items)
	}
	return "palette-" + strconv.Itoa(n)
}

// Pages are the pages of the console whose name has the text in it.
func Pages(ctx context.Context, s layout.Shell, text string) []Item {
	var out []Item
	for _, p := range s.Pages() {
		out = append(out, Item{Icon: p.Icon, Name: i18n.T(ctx, p.Key), URL: p.URL})
	}
	return named(out, text)
}

// Actions are what the user can do from any page, where its name has the text
// in it.
func Actions(ctx context.Context, s layout.Shell, text string) []Item {
	var out []Item
	if s.CanWrite() {
		out = append(out,
			Item{Icon: components.IconPlus, Name: i18n.T(ctx, "palette.allocate"), URL: urls.NewGPU(urls.Allocation{})},
			Item{Icon: components.IconPlus, Name: i18n.T(ctx, "palette.new-vm"), URL: urls.NewVM})
	}
	for _, t := range layout.Themes {
		out = append(out, Item{
			Icon: components.IconSystem, Name: i18n.T(ctx, "palette.theme."+string(t)), URL: s.Path, Press: `[data-theme-switch] button[value="` + string(t) + `"]`,
		})
	}
	for _, l := range i18n.Locales {
		if l != i18n.From(ctx) {
			out = append(out, Item{Icon: components.IconLanguage, Name: l.Name(), URL: s.Path, Press: `button[name="locale"][value="` + string(l) + `"]`})
		}
	}
	out = append(out, Item{Icon: components.IconSignOut, Name: i18n.T(ctx, "palette.sign-out"), URL: urls.Home, Press: `form[action="` + urls.Logout + `"] button`})
	return named(out, text)
}

// named keeps the items whose name has the text in it.
func named(items []Item, text string) []Item {
	var out []Item
	for _, i := range items {
		if strings.Contains(strings.ToLower(i.Name), strings.ToLower(text)) {
			out = append(out, i)
		}
	}
	return out
}
