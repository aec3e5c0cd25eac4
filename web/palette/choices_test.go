package palette_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"berth/services"
	"berth/web/components"
	"berth/web/i18n"
	"berth/web/layout"
	"berth/web/palette"
	"berth/web/webtest"
)

// odd is a name that a URL, a selector and HTML each read differently.
const odd = `<b>a & "one" ?x#y`

func in(l i18n.Locale) context.Context { return i18n.With(context.Background(), l) }

func operator() layout.Shell {
	s := webtest.Shell()
	s.Admin = true
	return s
}

// groups are all kinds of choices, with one of each.
func groups() []palette.Group {
	var out []palette.Group
	for _, key := range []string{"account", "host", "card", "gpu", "vm", "model"} {
		out = append(out, palette.Group{Key: key, Items: []palette.Item{
			{Icon: components.IconHost, Name: odd, Detail: odd, URL: "/found/" + key, ID: key + "-00000001"},
			{Icon: components.IconHost, Name: strings.Repeat("w", 400), URL: "/found/" + key, ID: key + "-00000002"},
		}})
	}
	return append(out,
		palette.Group{Key: "pages", Items: palette.Pages(in(i18n.English), operator(), "")},
		palette.Group{Key: "actions", Items: palette.Actions(in(i18n.English), operator(), "")})
}

func TestWhatWasFoundIsMarkedWithItsIDAndNothingElseIs(t *testing.T) {
	doc := webtest.Both(t, palette.Choices(palette.List{Text: "x", Groups: groups()}))
	var got, want []string
	for _, o := range doc.Find("[role=option]").EachIter() {
		got = append(got, o.AttrOr("data-id", ""))
	}
	for _, g := range groups() {
		for _, i := range g.Items {
			want = append(want, i.ID)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if n := doc.Find("[role=option][data-id]").Length(); n != 12 {
		t.Errorf("%d choices are marked as found, want 12", n)
	}
}

func TestChoicesAreNumberedThroughAndStayText(t *testing.T) {
	doc := webtest.Both(t, palette.Choices(palette.List{Text: odd, Groups: groups()}))
	options := doc.Find("[role=listbox] [role=option]")
	for i, o := range options.EachIter() {
		if want := fmt.Sprintf("palette-%d", i); o.AttrOr("id", "") != want || o.AttrOr("aria-selected", "") != "false" || o.AttrOr("tabindex", "") != "-1" {
			t.Errorf("choice %d is %q, selected %q", i, o.AttrOr("id", ""), o.AttrOr("aria-selected", ""))
		}
	}
	if first := options.First(); webtest.Text(first.Find(".palette-name")) != odd || webtest.Text(first.Find(".palette-detail")) != odd || doc.Find("b").Length() > 0 {
		t.Error("a name is taken for HTML")
	}
	if doc.Find("#palette-1 .palette-detail").Length() > 0 {
		t.Error("a choice without a detail shows one")
	}
}

func TestEveryGroupIsNamedByItsTitle(t *testing.T) {
	for _, l := range i18n.Locales {
		doc := webtest.Render(t, palette.Choices(palette.List{Groups: groups()}), l)
		if n := doc.Find("[role=group]").Length(); n != len(groups()) {
			t.Errorf("%s: %d groups, want %d", l, n, len(groups()))
		}
		for _, g := range doc.Find("[role=group]").EachIter() {
			title := webtest.Text(doc.Find("#" + g.AttrOr("aria-labelledby", "-")))
			if title == "" || strings.Contains(title, "palette.") {
				t.Errorf("%s: a group is called %q", l, title)
			}
		}
	}
}

// Two choices of one name leave it to luck where one gets.
func TestPagesOfAnOperatorDifferInWhatIsRead(t *testing.T) {
	for _, l := range i18n.Locales {
		seen := map[string]string{}
		for _, p := range palette.Pages(in(l), operator(), "") {
			read := p.Name + " " + p.Detail
			if other, twice := seen[read]; twice {
				t.Errorf("%s: %q leads to %s and to %s", l, p.Name, other, p.URL)
			}
			seen[read] = p.URL
		}
	}
}

func TestEveryPageOfTheSidebarCanBeGoneTo(t *testing.T) {
	for name, shell := range map[string]layout.Shell{"tenant": webtest.Shell(), "operator": operator()} {
		var got, want []string
		for _, i := range palette.Pages(in(i18n.French), shell, "") {
			got = append(got, i.URL)
		}
		for _, p := range shell.Pages() {
			want = append(want, p.URL)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
	for _, i := range palette.Pages(in(i18n.English), webtest.Shell(), "") {
		if strings.HasPrefix(i.URL, "/admin") {
			t.Errorf("a tenant is offered %s", i.URL)
		}
	}
}

// An action presses a button of the page that the palette is opened on.
func TestWhatAnActionPressesIsOnEveryPage(t *testing.T) {
	for _, l := range i18n.Locales {
		doc := webtest.Render(t, layout.Page(operator(), "title", layout.SectionFleet), l)
		pressed := 0
		for _, i := range palette.Actions(in(l), operator(), "") {
			if i.Press == "" {
				continue
			}
			pressed++
			if doc.Find(i.Press).Length() == 0 {
				t.Errorf("%s: %q presses %s, which is not there", l, i.Name, i.Press)
			}
		}
		if want := len(layout.Themes) + len(i18n.Locales); pressed != want { // the other languages, and signing out
			t.Errorf("%s: %d actions press a button, want %d", l, pressed, want)
		}
	}
}

func TestWritingIsOfferedToThoseWhoMay(t *testing.T) {
	as := func(change func(*layout.Shell)) layout.Shell {
		s := webtest.Shell()
		change(&s)
		return s
	}
	tests := []struct {
		rule  string
		shell layout.Shell
		want  bool
	}{
		{"an owner", webtest.Shell(), true},
		{"a member", as(func(s *layout.Shell) { s.Account.Role = services.RoleMember }), true},
		{"a viewer", as(func(s *layout.Shell) { s.Account.Role = services.RoleViewer }), false},
		{"an owner of a suspended account", as(func(s *layout.Shell) { s.Account.Suspended = true }), false},
		{"an operator without an account", as(func(s *layout.Shell) { s.Admin, s.Account = true, layout.AccountChoice{} }), false},
	}
	for _, tt := range tests {
		t.Run(tt.rule, func(t *testing.T) {
			offered := slices.ContainsFunc(palette.Actions(in(i18n.English), tt.shell, ""), func(i palette.Item) bool {
				return strings.HasPrefix(i.URL, "/gpus/new") || strings.HasPrefix(i.URL, "/vms/new")
			})
			if offered != tt.want {
				t.Errorf("making things is offered: %v, want %v", offered, tt.want)
			}
		})
	}
}

func TestATextNarrowsActionsInTheReadersLanguage(t *testing.T) {
	tests := []struct {
		locale     i18n.Locale
		text, want string
	}{
		{i18n.English, "THEME", "The system's theme, Light theme, Dark theme"}, {i18n.French, "sombre", "Thème sombre"}, {i18n.English, "sombre", ""},
		{i18n.English, "fran", "Français"}, {i18n.French, "engl", "English"}, {i18n.English, "english", ""}, {i18n.English, odd, ""},
	}
	for _, tt := range tests {
		if diff := cmp.Diff(tt.want, names(palette.Actions(in(tt.locale), operator(), tt.text))); diff != "" {
			t.Errorf("%q in %s: %s", tt.text, tt.locale, diff)
		}
	}
}

func TestNothingFoundIsSaidWithWhatWasTyped(t *testing.T) {
	for name, text := range map[string]string{"nothing": "", "markup": odd, "long": strings.Repeat("w", 1000), "a template": "{.Text}"} {
		t.Run(name, func(t *testing.T) {
			doc := webtest.Both(t, palette.Choices(palette.List{Text: text}))
			if said := webtest.Text(doc.Find(".palette-none")); !strings.Contains(said, text) || doc.Find("b, [role=listbox]").Length() > 0 {
				t.Errorf("it says %q", said)
			}
		})
	}
}
