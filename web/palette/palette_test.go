package palette_test

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"berth/web/components"
	"berth/web/i18n"
	"berth/web/layout"
	"berth/web/palette"
	"berth/web/webtest"
)

func names(items []palette.Item) string {
	var all []string
	for _, i := range items {
		all = append(all, i.Name)
	}
	return strings.Join(all, ", ")
}

func TestChoicesAreOptionsOfOneList(t *testing.T) {
	l := palette.List{Text: "x", Groups: []palette.Group{
		{Key: "pages", Items: []palette.Item{{Icon: components.IconHost, Name: "<b>Hosts", URL: "/admin/hosts"}, {Icon: components.IconHost, Name: "Cards", URL: "/admin/cards"}}},
		{Key: "actions", Items: []palette.Item{{Icon: components.IconSystem, Name: "Dark", URL: "/", Press: "#dark"}}},
	}}
	doc := webtest.Both(t, palette.Choices(l))
	var ids []string
	for _, o := range doc.Find("[role=listbox] [role=group] [role=option]").EachIter() {
		ids = append(ids, o.AttrOr("id", ""))
	}
	if diff := cmp.Diff([]string{"palette-0", "palette-1", "palette-2"}, ids); diff != "" {
		t.Error(diff)
	}
	if doc.Find(`#palette-2[data-press="#dark"]`).Length() != 1 || doc.Find("b").Length() > 0 {
		t.Error("an action presses nothing, or a name is taken for HTML")
	}
}

func TestWhatIsCalledNothingSaysSo(t *testing.T) {
	doc := webtest.Both(t, palette.Choices(palette.List{Text: "<i>nope"}))
	if text := webtest.Text(doc.Find(".palette-none")); !strings.Contains(text, "<i>nope") {
		t.Errorf("it says %q", text)
	}
}

func TestPagesAreFoundByAnyWordInAnyLanguage(t *testing.T) {
	operator := webtest.Shell()
	operator.Admin = true
	tests := []struct {
		locale i18n.Locale
		shell  layout.Shell
		text   string
		want   string
	}{
		{i18n.English, operator, "host", "Hosts"}, {i18n.French, operator, "HÔTE", "Hôtes"}, {i18n.English, webtest.Shell(), "host", ""},
		{i18n.English, webtest.Shell(), "virtual", "Virtual machines"},
	}
	for _, tt := range tests {
		if got := names(palette.Pages(i18n.With(context.Background(), tt.locale), tt.shell, tt.text)); got != tt.want {
			t.Errorf("%q in %s finds %q, want %q", tt.text, tt.locale, got, tt.want)
		}
	}
}

func TestActionsAreThoseOfTheRole(t *testing.T) {
	ctx := i18n.With(context.Background(), i18n.English)
	owner, nobody := webtest.Shell(), webtest.Shell()
	nobody.Account = layout.AccountChoice{}
	if got := names(palette.Actions(ctx, owner, "allocate")); got == "" {
		t.Error("an owner is not offered to allocate a GPU")
	}
	if got := names(palette.Actions(ctx, nobody, "allocate")); got != "" {
		t.Errorf("somebody without an account is offered %q", got)
	}
}
