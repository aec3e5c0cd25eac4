package capacity_test

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/PuerkitoBio/goquery"
	"github.com/google/go-cmp/cmp"

	"berth/services"
	"berth/web/admin/capacity"
	"berth/web/admin/cards"
	"berth/web/admin/hosts"
	"berth/web/i18n"
	"berth/web/urls"
	"berth/web/webtest"
)

// whys are all reasons why cards are unavailable, with the list that has them.
var whys = map[string]string{
	string(services.CardCleaning): urls.AdminCards, string(services.CardQuarantined): urls.AdminCards, string(services.CardDisabled): urls.AdminCards,
	string(services.CardMissing): urls.AdminCards, string(services.CardNeedsReview): urls.AdminCards,
	string(services.HostDraining): urls.AdminHosts, string(services.HostMaintenance): urls.AdminHosts, "not-ready": urls.AdminHosts, "silent": urls.AdminHosts,
}

// odd is a name that a URL, a selector and HTML each read differently.
const odd = `<b>z & "one" ?state=free#x`

func cell(zone, model string) capacity.Cell {
	c := capacity.Cell{Zone: zone, Model: model, Free: 3, Held: 4, Unavailable: 2 * len(whys)}
	c.Total = c.Free + c.Held + c.Unavailable
	for key := range whys {
		c.Reasons = append(c.Reasons, capacity.Reason{Key: key, State: key, Count: 2})
	}
	return c
}

func page(cells ...capacity.Cell) capacity.Page {
	p := capacity.Page{Shell: webtest.Shell(), Range: "24h", Ranges: []string{"1h", "24h", "7d", "30d"}, Sizes: []int{1, 8}, Cells: cells}
	for _, c := range cells {
		p.Rooms = append(p.Rooms, capacity.Room{Zone: c.Zone, Model: c.Model, Machines: []int{1234, 0}})
	}
	return p
}

// read takes a link apart.
func read(t *testing.T, a *goquery.Selection) (path string, q url.Values) {
	t.Helper()
	u, err := url.Parse(a.AttrOr("href", "-"))
	if err != nil || a.Length() != 1 {
		t.Fatalf("%d links, the first to %q: %v", a.Length(), a.AttrOr("href", ""), err)
	}
	return u.Path, u.Query()
}

func TestEachReasonLeadsToTheListThatHasIt(t *testing.T) {
	for name, at := range map[string]capacity.Cell{"plain": cell("a", "nvidia-l40"), "odd": cell(odd, odd)} {
		doc := webtest.Both(t, capacity.View(page(at)))
		for why, list := range whys {
			t.Run(name+" "+why, func(t *testing.T) {
				path, q := read(t, doc.Find(`a[data-why="`+why+`"]`))
				want := url.Values{"zone": {at.Zone}, "model": {at.Model}, "state": {why}}
				if diff := cmp.Diff([]any{list, want}, []any{path, q}); diff != "" {
					t.Error(diff)
				}
			})
		}
		if doc.Find("#main b").Length() > 0 {
			t.Errorf("%s: a name is taken for HTML", name)
		}
	}
}

// A link to a state that the list does not know shows everything instead.
func TestListsKnowTheStatesThatTheMapLeadsTo(t *testing.T) {
	doc := webtest.Both(t, capacity.View(page(cell("a", "nvidia-l40"), cell("a", ""))))
	known := map[string][]string{urls.AdminCards: cards.States, urls.AdminHosts: hosts.States}
	links := doc.Find("table.heat a")
	if want := 2 * (2 + len(whys)); links.Length() != want {
		t.Errorf("%d links, want %d", links.Length(), want)
	}
	for _, a := range links.EachIter() {
		if path, q := read(t, a); !slices.Contains(known[path], q.Get("state")) {
			t.Errorf("%s has no state %q", path, q.Get("state"))
		}
	}
}

func TestCardsOfNoKnownModelHaveTheirOwnFilter(t *testing.T) {
	doc := webtest.Both(t, capacity.View(page(cell("a", ""))))
	for _, state := range []string{"free", "held", string(services.CardNeedsReview)} {
		if n := doc.Find(`td[data-model=""] a[href="/admin/cards?model=` + cards.Unknown + `&state=` + state + `&zone=a"]`).Length(); n != 1 {
			t.Errorf("%d links to those that are %s", n, state)
		}
	}
	if text := webtest.Text(doc.Find("table.heat thead")); !strings.Contains(text, "unknown model") {
		t.Errorf("the columns are %q", text)
	}
}

func TestEveryReasonIsNamedWithItsCount(t *testing.T) {
	for _, l := range i18n.Locales {
		doc := webtest.Render(t, capacity.View(page(cell("a", "nvidia-l40"))), l)
		for why := range whys {
			if text := webtest.Text(doc.Find(`a[data-why="` + why + `"]`)); !strings.HasPrefix(text, "2 ") || strings.Contains(text, "capacity.") {
				t.Errorf("%s: %s reads %q", l, why, text)
			}
		}
	}
}

func TestTheMapIsAGridWithAPlaceForEveryPair(t *testing.T) {
	p := page(cell("a", "m1"), cell("b", "m2"), cell("b", ""), capacity.Cell{Zone: "c", Model: "m1"})
	doc := webtest.Both(t, capacity.View(p))
	var got []string
	for _, row := range doc.Find("table.heat tbody tr").EachIter() {
		line := webtest.Text(row.Find("th")) + ":"
		for _, td := range row.Find("td").EachIter() {
			line += fmt.Sprintf(" %s/%s", td.AttrOr("data-model", "none"), td.AttrOr("data-total", "-"))
		}
		got = append(got, line)
	}
	want := []string{"a: none/- m1/25 none/-", "b: /25 none/- m2/25", "c: none/- m1/0 none/-"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestTheHeadCountsAllCells(t *testing.T) {
	p := page(capacity.Cell{Zone: "a", Model: "m", Free: 1000, Held: 200, Unavailable: 34, Total: 1234}, capacity.Cell{Zone: "b", Model: "m", Free: 1, Held: 2, Unavailable: 3, Total: 6})
	for l, want := range map[i18n.Locale][]string{
		i18n.English: {"1,240", "1,001", "202", "37"}, i18n.French: {"1\u00a0240", "1\u00a0001", "202", "37"},
	} {
		text := webtest.Render(t, capacity.View(p), l).Find(".head-line").Text()
		for _, n := range want {
			if !strings.Contains(text, n) {
				t.Errorf("%s: %q does not say %s", l, text, n)
			}
		}
	}
}

func TestRoomForMachinesIsToldBySizeAndNoneReadsAsNone(t *testing.T) {
	doc := webtest.Both(t, capacity.View(page(cell(odd, ""))))
	var got []string
	for _, td := range doc.Find(`tr[data-zone][data-model=""] td`).EachIter() {
		got = append(got, td.AttrOr("data-size", "")+" "+webtest.Text(td))
	}
	if diff := cmp.Diff([]string{" " + odd, " unknown model", "1 1,234", "8 0"}, got); diff != "" {
		t.Error(diff)
	}
}

func TestWhatNarrowsThePageStaysInItsForm(t *testing.T) {
	p := page()
	p.Query, p.Zones = urls.ListQuery{Region: odd, Zone: "b", Model: "gone"}, []string{"a", "b"}
	doc := webtest.Both(t, capacity.View(p))
	got := map[string]string{}
	for _, s := range doc.Find("#capacity-filter select").EachIter() {
		got[s.AttrOr("name", "")] = s.Find("option[selected]").AttrOr("value", "-")
	}
	if diff := cmp.Diff(map[string]string{"region": odd, "zone": "b", "model": "gone"}, got); diff != "" {
		t.Error(diff)
	}
	_, q := read(t, doc.Find(`.pill[href*="range=1h"]`))
	if diff := cmp.Diff(url.Values{"region": {odd}, "zone": {"b"}, "model": {"gone"}, "range": {"1h"}}, q); diff != "" {
		t.Error(diff)
	}
	fragment, err := url.Parse(doc.Find("#capacity[data-live]").AttrOr("hx-get", ""))
	if err != nil || fragment.Path != urls.Fragment(urls.AdminCapacity) || fragment.Query().Get("range") != "24h" || fragment.Query().Get("zone") != "b" {
		t.Errorf("the part that changes by itself is read from %v: %v", fragment, err)
	}
}
