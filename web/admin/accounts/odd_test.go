package accounts_test

import (
	"net/url"
	"strings"
	"testing"

	"github.com/PuerkitoBio/goquery"
	"github.com/google/go-cmp/cmp"

	"berth/services"
	"berth/web/admin/accounts"
	"berth/web/components"
	"berth/web/i18n"
	"berth/web/quotas"
	"berth/web/urls"
	"berth/web/webtest"
)

// odd is a name that a URL, a selector and HTML each read differently.
const odd = `<b>a & "one" ?x#y`

func list(q urls.ListQuery, rows ...accounts.Row) accounts.List {
	return accounts.List{
		Shell: webtest.Shell(), Listing: components.Listing{Path: urls.AdminAccounts, Query: q, Shown: len(rows), Total: len(rows), Column: "name"},
		Rows: rows, Count: func(state string) int { return map[string]int{"": 1234, "active": 1233, "suspended": 1}[state] },
	}
}

func quotaList(q urls.ListQuery, rows ...quotas.Quota) accounts.Quotas {
	return accounts.Quotas{
		Shell: webtest.Shell(), Listing: components.Listing{Path: urls.AdminQuotas, Query: q, Shown: len(rows), Total: len(rows)}, Rows: rows,
		Setting: accounts.Setting{Account: q.Account, Region: q.Region, Item: q.Model, Regions: []string{"r", "s"}, Models: []string{"nvidia-l40"}, Back: q.On(urls.AdminQuotas)},
	}
}

func TestTabsCountAccountsByStateAndKeepTheSearch(t *testing.T) {
	doc := webtest.Both(t, accounts.ListView(list(urls.ListQuery{Text: "al pha", State: "suspended", After: "acc-00000009"}, accounts.Row{ID: "acc-00000001", Name: "Alpha"})))
	got := map[string]string{}
	for _, a := range doc.Find(`#main a.pill`).EachIter() {
		got[a.AttrOr("href", "")] = webtest.Text(a) + a.AttrOr("aria-current", "")
	}
	want := map[string]string{
		"/admin/accounts?q=al+pha": "All 1,234", "/admin/accounts?q=al+pha&state=active": "Active 1,233", "/admin/accounts?q=al+pha&state=suspended": "Suspended 1true",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if doc.Find(`form#accounts [name=q][value="al pha"]`).Length() != 1 || doc.Find(`form#accounts [type=hidden][name=state][value=suspended]`).Length() != 1 {
		t.Error("searching forgets the text or the state")
	}
}

func TestAListOfNoAccountsSaysWhatToDo(t *testing.T) {
	none := webtest.Both(t, accounts.ListView(list(urls.ListQuery{})))
	if text := webtest.Text(none.Find(".empty")); !strings.Contains(text, "Open one for each team") {
		t.Errorf("it says %q", text)
	}
	narrowed := webtest.Both(t, accounts.ListView(list(urls.ListQuery{Text: odd})))
	if narrowed.Find(`.empty a[href="/admin/accounts"]`).Length() != 1 || narrowed.Find("#main b").Length() > 0 {
		t.Error("a list that is narrowed to nothing shows no way back, or takes the search for HTML")
	}
}

// An error that leads nowhere leaves those who can't see the form alone.
func TestAnErrorLeadsToItsField(t *testing.T) {
	missing := func(field string) []services.Violation {
		return []services.Violation{{Field: field, Code: services.CodeRequired}}
	}
	refused := func(change func(*accounts.Page)) *goquery.Document {
		p := account()
		change(&p)
		return webtest.Both(t, accounts.View(p))
	}
	opening := list(urls.ListQuery{})
	opening.Broken = append(missing("name"), missing("email")...)
	limit := quotaList(urls.ListQuery{})
	limit.Broken, limit.Setting.Broken = missing("limit"), missing("limit")
	for form, doc := range map[string]*goquery.Document{
		"open-account": webtest.Both(t, accounts.ListView(opening)),
		"set-quota":    webtest.Both(t, accounts.QuotasView(limit)),
		"suspend":      refused(func(p *accounts.Page) { p.Asked.Form, p.Broken = "suspend", missing("reason") }),
		"member": refused(func(p *accounts.Page) {
			p.Asked.Form, p.Broken = "member", append(missing("email"), missing("role")...)
		}),
	} {
		t.Run(form, func(t *testing.T) {
			links := doc.Find("#errors a")
			if links.Length() == 0 {
				t.Error("no error leads anywhere")
			}
			for _, a := range links.EachIter() {
				target := a.AttrOr("href", "")
				if field := doc.Find(target); field.Length() != 1 || field.AttrOr("aria-invalid", "") != "true" {
					t.Errorf("%q leads to %q, where %d fields are wrong", webtest.Text(a), target, field.Length())
				}
			}
		})
	}
}

func TestEveryRoleCanBeGivenAndEveryMemberRemoved(t *testing.T) {
	p := account()
	p.Members, p.Asked = nil, accounts.Asked{Form: "member", Email: odd, Role: string(services.RoleViewer)}
	for _, r := range accounts.Roles {
		p.Members = append(p.Members, accounts.Member{Email: string(r) + "@x.test", Role: r})
	}
	doc := webtest.Both(t, accounts.View(p))
	for _, r := range accounts.Roles {
		email := string(r) + "@x.test"
		if doc.Find(`#member-role option[value="`+string(r)+`"]`).Length() != 1 {
			t.Errorf("%s can't be given", r)
		}
		form := doc.Find(`li[data-id="` + email + `"] form[action="/admin/accounts/acc-00000001/members"]`)
		if form.Find(`[name=email][value="`+email+`"]`).Length() != 1 || form.Find("[name=role]").AttrOr("value", "-") != "" {
			t.Errorf("%s can't be removed", email)
		}
		if label := form.Find("button").AttrOr("aria-label", ""); label != "Remove "+email {
			t.Errorf("the button is called %q", label)
		}
	}
	if doc.Find(`#member-email`).AttrOr("value", "") != odd || doc.Find(`#member-role option[selected]`).AttrOr("value", "") != "viewer" {
		t.Error("what was asked of a member is lost")
	}
}

func TestAnAccountOfNobodyWithNothingSaysSo(t *testing.T) {
	p := account()
	p.Members, p.Quotas = nil, nil
	text := webtest.Text(webtest.Both(t, accounts.View(p)).Find("#main"))
	for _, want := range []string{"Nobody belongs to it yet.", "Without a quota an account may have no GPUs", "0 GPUs held", "0 machines"} {
		if !strings.Contains(text, want) {
			t.Errorf("the page does not say %q", want)
		}
	}
}

func TestOddNamesStayTextOnEveryPage(t *testing.T) {
	name := odd + strings.Repeat("w", 400)
	p := account()
	p.Account.Name, p.Account.Suspended, p.Account.Reason, p.SuspendedSince = name, true, name, webtest.Now
	p.Members = []accounts.Member{{Email: name, Role: services.RoleOwner}}
	p.Events = []components.Happening{{ID: 1, At: webtest.Now, Kind: name, Actor: name, Account: "acc-00000001", AccountName: name, Host: "host-00000001", HostName: name}}
	active := account()
	active.Account.Name = name
	for what, doc := range map[string]*goquery.Document{
		"suspended": webtest.Both(t, accounts.View(p)), "active": webtest.Both(t, accounts.View(active)),
		"list":   webtest.Both(t, accounts.ListView(list(urls.ListQuery{}, accounts.Row{ID: "acc-00000001", Name: name}))),
		"quotas": webtest.Both(t, accounts.QuotasView(quotaList(urls.ListQuery{}, quotas.Quota{Account: "acc-00000001", AccountName: name, Region: name, Item: name}))),
	} {
		if !strings.Contains(doc.Find("#main").Text(), name) || doc.Find("b").Length() > 0 {
			t.Errorf("%s: a name is cut or taken for HTML", what)
		}
	}
}

func TestASuspensionSaysWhyAndSinceWhen(t *testing.T) {
	p := account()
	p.Account.Suspended, p.Account.Reason, p.SuspendedSince = true, "unpaid", webtest.Now.AddDate(0, 0, -3)
	for l, want := range map[i18n.Locale][]string{i18n.English: {"unpaid", "3 days"}, i18n.French: {"unpaid", "3 jours"}} {
		text := webtest.Text(webtest.Render(t, accounts.View(p), l).Find(".banner[data-tone=bad]"))
		for _, words := range want {
			if !strings.Contains(text, words) {
				t.Errorf("%s: %q does not say %q", l, text, words)
			}
		}
	}
}

func TestAFilterNamesTheItemThatItIsSetTo(t *testing.T) {
	for item, want := range map[string]string{"": "Anything", "nvidia-l40": "nvidia-l40", "gone": "gone", "vms": "Machines", "memory": "Memory (GiB)"} {
		doc := webtest.Both(t, accounts.QuotasView(quotaList(urls.ListQuery{Model: item})))
		chosen := doc.Find("form#quotas select[name=model] option[selected]")
		if chosen.Length() != 1 || webtest.Text(chosen) != want || chosen.AttrOr("value", "-") != item {
			t.Errorf("%d choices for %q, the first reads %q", chosen.Length(), item, webtest.Text(chosen))
		}
		if n := doc.Find(`form#quotas select[name=model] option[value="vms"]`).Length(); n != 1 {
			t.Errorf("machines can be chosen %d times", n)
		}
	}
}

func TestTheFormOfAQuotaIsFilledInWithTheOneToChange(t *testing.T) {
	q := quotaList(urls.ListQuery{Account: "acc-00000001", Region: "s", Model: "memory"},
		quotas.Quota{Account: "acc-00000001", AccountName: "Alpha", Region: "s", Item: "memory", Max: new(0)})
	q.Setting.Limit = q.Rows[0].Value()
	doc := webtest.Both(t, accounts.QuotasView(q))
	got := url.Values{}
	for _, f := range doc.Find("#set-quota form [name]").EachIter() {
		value := f.AttrOr("value", "")
		if goquery.NodeName(f) == "select" {
			value = f.Find("option[selected]").AttrOr("value", "")
		}
		got.Add(f.AttrOr("name", ""), value)
	}
	want := url.Values{"back": {"/admin/quotas?account=acc-00000001&model=memory&region=s"}, "account": {"acc-00000001"}, "region": {"s"}, "model": {"memory"}, "limit": {"0"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestTheListsOfQuotasFollowTheirQuery(t *testing.T) {
	q := quotaList(urls.ListQuery{Account: "acc-00000001", Region: "gone", Text: "al"})
	doc := webtest.Both(t, accounts.QuotasView(q))
	for _, want := range []string{
		`[data-total="0"]`, `.empty a[href="/admin/quotas"]`, `form#quotas [type=hidden][name=account][value="acc-00000001"]`,
		`form#quotas option[value=gone][selected]`, `form#quotas [name=q][value=al]`,
	} {
		if doc.Find(want).Length() != 1 {
			t.Errorf("%d match %s", doc.Find(want).Length(), want)
		}
	}
}
