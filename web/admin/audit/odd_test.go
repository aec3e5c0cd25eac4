package audit_test

import (
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"berth/services"
	"berth/web/admin/audit"
	"berth/web/components"
	"berth/web/i18n"
	"berth/web/urls"
	"berth/web/webtest"
)

// odd is a name that a URL, a selector and HTML each read differently.
const odd = `<b>a & "one" ?x#y`

// all narrows the log in every way that it can be.
func all() urls.ListQuery {
	return urls.ListQuery{State: "card", Account: "acc-00000001", Actor: odd, Object: "card-00000001", From: "2026-01-01", Until: "2026-02-01", After: "99"}
}

func parse(t *testing.T, href string) (path string, q url.Values) {
	t.Helper()
	u, err := url.Parse(href)
	if err != nil {
		t.Fatal(err)
	}
	return u.Path, u.Query()
}

// without is a query's parameters but for some.
func without(q urls.ListQuery, names ...string) url.Values {
	v := q.Values()
	for _, n := range names {
		v.Del(n)
	}
	return v
}

// An export is of everything, from the newest on: the page shown does not matter.
func TestAnExportKeepsEveryFilterAndNoPage(t *testing.T) {
	for name, q := range map[string]urls.ListQuery{"narrowed": all(), "everything": {}, "the second page": {After: "99"}} {
		t.Run(name, func(t *testing.T) {
			doc := webtest.Both(t, audit.View(page(q)))
			links := doc.Find("a[download]")
			if links.Length() != len(audit.Formats) {
				t.Fatalf("%d exports, want %d", links.Length(), len(audit.Formats))
			}
			for i, f := range audit.Formats {
				path, got := parse(t, links.Eq(i).AttrOr("href", ""))
				if diff := cmp.Diff([]any{urls.AdminExport(f), without(q, "after")}, []any{path, got}); diff != "" {
					t.Errorf("%s: %s", f, diff)
				}
			}
		})
	}
}

func TestEachPartOfTheQueryCanBeTakenAway(t *testing.T) {
	doc := webtest.Both(t, audit.View(page(all(), components.Happening{ID: 1, At: webtest.Now, Kind: "card.disable", Actor: "host"})))
	got := map[string]url.Values{}
	for _, a := range doc.Find(".only a, a[rel=next]").EachIter() {
		_, got[webtest.Text(a)] = parse(t, a.AttrOr("href", ""))
	}
	next := all()
	next.After = "7"
	want := map[string]url.Values{
		"By " + odd: without(all(), "after", "actor"), "About card-00000001": without(all(), "after", "object"),
		"In acc-00000001": without(all(), "after", "account"), "Next": next.Values(),
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if doc.Find("#main b").Length() > 0 {
		t.Error("an actor is taken for HTML")
	}
}

func TestTheBarShowsDatesAndKeepsTheRest(t *testing.T) {
	doc := webtest.Both(t, audit.View(page(all())))
	got := map[string]string{}
	for _, f := range doc.Find("form#audit input").EachIter() {
		got[f.AttrOr("type", "")+" "+f.AttrOr("name", "")] = f.AttrOr("value", "")
	}
	want := map[string]string{
		"search q": "", "date from": "2026-01-01", "date until": "2026-02-01",
		"hidden account": "acc-00000001", "hidden actor": odd, "hidden object": "card-00000001",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestADateThatIsNoneIsSaidAndStays(t *testing.T) {
	p := page(urls.ListQuery{From: odd})
	p.Broken = []services.Violation{{Field: "from", Code: services.CodeInvalidValue, Args: map[string]any{"Value": odd, "Allowed": "2025-12-31"}}}
	doc := webtest.Both(t, audit.View(p))
	if text := webtest.Text(doc.Find("[data-error=invalid-value]")); !strings.Contains(text, odd) || !strings.Contains(text, "2025-12-31") {
		t.Errorf("it says %q", text)
	}
	if doc.Find("form#audit [name=from]").AttrOr("value", "") != odd || doc.Find("#main b").Length() > 0 {
		t.Error("the date is lost, or taken for HTML")
	}
}

func TestWhoDidItIsNamedAndLeadsToAllTheyDid(t *testing.T) {
	for actor, want := range map[string]string{
		services.ActorHost: "the host", services.ActorConsole: "the console", services.ActorOperator: "the operator", "olga@lab.test": "olga@lab.test", odd: odd,
	} {
		t.Run(want, func(t *testing.T) {
			doc := webtest.Both(t, audit.View(page(urls.ListQuery{State: "card", After: "99"}, components.Happening{ID: 1, At: webtest.Now, Kind: "card.disable", Actor: actor})))
			link := doc.Find("tbody a.text-link")
			_, q := parse(t, link.AttrOr("href", ""))
			if diff := cmp.Diff([]any{want, url.Values{"state": {"card"}, "actor": {actor}}}, []any{webtest.Text(link), q}); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// GPUs and machines are tenants': operators have no page of them.
func TestObjectsLeadToTheirPagesWhereOperatorsHaveOne(t *testing.T) {
	h := components.Happening{
		ID: 1, At: webtest.Now, Kind: "gpu.attached", Actor: "host", Account: "acc-00000001", AccountName: odd, GPU: "fgpu-00000001", GPUName: odd,
		VM: "i-00000001", VMName: odd, Card: "card-00000001", Host: "host-00000001", HostName: odd,
	}
	nameless := h
	nameless.ID, nameless.AccountName, nameless.GPUName, nameless.VMName, nameless.HostName = 2, "", "", "", ""
	doc := webtest.Both(t, audit.View(page(urls.ListQuery{}, h, nameless, components.Happening{ID: 3, At: webtest.Now, Kind: "catalog.type-deleted", Actor: "host"})))
	got := map[string][]string{}
	for _, row := range doc.Find("tbody tr").EachIter() {
		for _, o := range row.Find(".object").EachIter() {
			got[row.AttrOr("data-id", "")] = append(got[row.AttrOr("data-id", "")], o.AttrOr("href", "-")+" "+webtest.Text(o))
		}
	}
	want := map[string][]string{
		"1": {"/admin/accounts/acc-00000001 " + odd, "- " + odd, "- " + odd, "/admin/cards/card-00000001 card-00000001", "/admin/hosts/host-00000001 " + odd},
		"2": {
			"/admin/accounts/acc-00000001 acc-00000001", "- fgpu-00000001", "- i-00000001", "/admin/cards/card-00000001 card-00000001",
			"/admin/hosts/host-00000001 host-00000001",
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestARowSaysFromWhereOrThatNobodyKnows(t *testing.T) {
	long := strings.Repeat("r", 300)
	doc := webtest.Both(t, audit.View(page(urls.ListQuery{},
		components.Happening{ID: 1, At: webtest.Now, Kind: "vm.running", Actor: "host"},
		components.Happening{ID: 2, At: webtest.Now, Kind: "vm.running", Actor: "host", Address: "2001:db8::1", RequestID: long},
	)))
	got := []string{webtest.Text(doc.Find(`tr[data-id="1"] td`).Last()), webtest.Text(doc.Find(`tr[data-id="2"] td`).Last())}
	if diff := cmp.Diff([]string{"–", "2001:db8::1 " + long}, got); diff != "" {
		t.Error(diff)
	}
}

// What an event holds comes from elsewhere: any of it may lack, or be of another kind.
func TestNoDataOfAnEventBreaksItsTitle(t *testing.T) {
	for name, args := range map[string]map[string]any{
		"none": nil, "markup": {"Reason": odd, "Zone": odd}, "a number": {"Reason": 12345.0}, "a list": {"Reason": []any{odd, 1.5}},
		"nothing": {"Reason": nil}, "a fraction as a count": {"Count": 1.5}, "a count": {"Count": 2.0},
	} {
		for _, kind := range []string{"card.disable", "card.quarantined", "host.not-ready", "agent.token-made", "account.quota-changed", "of.tomorrow", odd} {
			t.Run(name+" "+kind, func(t *testing.T) {
				doc := webtest.Both(t, audit.View(page(urls.ListQuery{}, components.Happening{ID: 1, At: webtest.Now, Kind: kind, Actor: "host", Args: args})))
				if title := webtest.Text(doc.Find("tbody .block")); title == "" || doc.Find("#main b").Length() > 0 {
					t.Errorf("the title is %q, or a text is taken for HTML", title)
				}
			})
		}
	}
}

func TestFamiliesAreNamedAndAnyOtherIsAnything(t *testing.T) {
	for _, l := range i18n.Locales {
		doc := webtest.Render(t, audit.View(page(urls.ListQuery{State: "of-tomorrow"})), l)
		options := doc.Find("form#audit select[name=state] option")
		if options.Length() != len(audit.Families)+1 || options.Filter("[selected]").AttrOr("value", "-") != "" {
			t.Errorf("%s: %d families, %q is chosen", l, options.Length(), options.Filter("[selected]").AttrOr("value", "-"))
		}
		for _, o := range options.EachIter() {
			if text := webtest.Text(o); text == "" || strings.Contains(text, "audit.") {
				t.Errorf("%s: %s reads %q", l, o.AttrOr("value", ""), text)
			}
		}
	}
}

func TestOnlyTheFirstPageOfTheLogChangesByItself(t *testing.T) {
	for after, want := range map[string]bool{"": true, "99": false} {
		q := urls.ListQuery{State: "card", After: after}
		live := webtest.Both(t, audit.View(page(q))).Find("#audit-list[data-live]")
		if got := strings.Contains(live.AttrOr("hx-trigger", ""), "fleet "); got != want {
			t.Errorf("after %q it changes by itself: %v", after, got)
		}
		if path, got := parse(t, live.AttrOr("hx-get", "")); path != urls.Fragment(urls.AdminActivity) || !cmp.Equal(q.Values(), got) {
			t.Errorf("it is read from %s with %v", path, got)
		}
	}
}
