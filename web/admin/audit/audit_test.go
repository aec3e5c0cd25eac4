package audit_test

import (
	"testing"

	"berth/web/admin/audit"
	"berth/web/components"
	"berth/web/urls"
	"berth/web/webtest"
)

func page(q urls.ListQuery, events ...components.Happening) audit.Page {
	return audit.Page{Shell: webtest.Shell(), Listing: components.Listing{Path: urls.AdminActivity, Query: q, Shown: len(events), Total: -1, Next: "7"}, Events: events}
}

func TestTheLogTellsWhoDidWhatToWhichFromWhere(t *testing.T) {
	doc := webtest.Both(t, audit.View(page(urls.ListQuery{},
		components.Happening{
			ID: 8, At: webtest.Now, Kind: "card.disable", Actor: "olga@lab.test", Card: "card-00000001", Host: "host-00000001", HostName: "<b>gpu</b>",
			Address: "192.0.2.7", RequestID: "req-1", Args: map[string]any{"Reason": "<script>burn-in"},
		},
		components.Happening{ID: 7, At: webtest.Now, Kind: "something.new", Actor: "host", VM: "i-00000001", VMName: "render", Account: "acc-00000001", AccountName: "Alpha"},
	)))
	row := doc.Find(`tr[data-id="8"][data-state="card.disable"]`)
	for _, want := range []string{
		`a[href="/admin/activity?actor=olga%40lab.test"]`, `a[href="/admin/cards/card-00000001"]`, `a[href="/admin/hosts/host-00000001"]`,
		`code:contains("192.0.2.7")`, `code:contains("req-1")`, `span:contains("burn-in")`,
	} {
		if row.Find(want).Length() == 0 {
			t.Errorf("the row has no %s: %s", want, webtest.Text(row))
		}
	}
	if doc.Find(`tr[data-id="7"] a[href="/admin/accounts/acc-00000001"]`).Length() != 1 {
		t.Error("an event of an unknown kind is not shown with its objects")
	}
	if doc.Find("#main td b, #main script").Length() > 0 {
		t.Error("a text is taken for HTML")
	}
}

func TestAnExportHoldsWhatTheQueryShows(t *testing.T) {
	q := urls.ListQuery{Text: "a b", State: "card", Actor: "olga@lab.test", Object: "card-00000001", From: "2026-01-01", After: "99"}
	doc := webtest.Both(t, audit.View(page(q)))
	for _, f := range audit.Formats {
		href := doc.Find(`a[download][href^="`+urls.AdminExport(f)+`?"]`).AttrOr("href", "")
		if want := urls.AdminExport(f) + "?actor=olga%40lab.test&from=2026-01-01&object=card-00000001&q=a+b&state=card"; href != want {
			t.Errorf("%s leads to %q, want %q", f, href, want)
		}
	}
	for _, only := range []string{"olga@lab.test", "card-00000001"} {
		if doc.Find(`.only a:contains("`+only+`")`).Length() != 1 {
			t.Errorf("nothing says that only %s is shown", only)
		}
	}
	if doc.Find(`.empty a[href="/admin/activity"]`).Length() != 1 {
		t.Error("a log that is narrowed to nothing shows no way back")
	}
}

func TestEveryFamilyAndFormatHasAName(t *testing.T) {
	for _, f := range audit.Families {
		doc := webtest.Both(t, audit.View(page(urls.ListQuery{State: f})))
		if doc.Find(`select[name=state] option[selected][value="`+f+`"]`).Length() != 1 {
			t.Errorf("%s is not shown as chosen", f)
		}
	}
}
