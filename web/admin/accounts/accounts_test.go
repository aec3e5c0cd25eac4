package accounts_test

import (
	"testing"

	"berth/services"
	"berth/web/admin/accounts"
	"berth/web/components"
	"berth/web/quotas"
	"berth/web/urls"
	"berth/web/webtest"
)

func TestAccountsShowWhatTheyHaveAndWhetherTheyAreActive(t *testing.T) {
	l := accounts.List{
		Shell: webtest.Shell(), Listing: components.Listing{Path: urls.AdminAccounts, Shown: 2, Total: 2, Column: "name"},
		Count: func(state string) int { return len(state) },
		Rows: []accounts.Row{
			{ID: "acc-00000001", Name: "<b>Alpha", GPUs: 1234, Machines: 2, Members: 3, OpenedAt: webtest.Now},
			{ID: "acc-00000002", Name: "Beta", Suspended: true, Reason: "unpaid", OpenedAt: webtest.Now},
		},
	}
	doc := webtest.Both(t, accounts.ListView(l))
	for _, want := range []string{
		`[data-total="2"]`, `tr[data-id="acc-00000001"][data-state=active] a[href="/admin/accounts/acc-00000001"]`, `tr[data-id="acc-00000002"][data-state=suspended]`,
		`tr[data-id="acc-00000001"] td:contains("1,234")`, `form[action="/admin/accounts"] [name=name]`,
	} {
		if doc.Find(want).Length() != 1 {
			t.Errorf("%d match %s", doc.Find(want).Length(), want)
		}
	}
	if doc.Find("td b").Length() > 0 {
		t.Error("a name is taken for HTML")
	}
}

func account() accounts.Page {
	return accounts.Page{
		Shell: webtest.Shell(), Account: accounts.Row{ID: "acc-00000001", Name: "Alpha", OpenedAt: webtest.Now},
		Members: []accounts.Member{{Email: "<i>@x.test", Role: services.RoleOwner}},
		Quotas:  []quotas.Quota{{Account: "acc-00000001", AccountName: "Alpha", Region: "r", Item: "nvidia-l40", Max: new(4), Used: 3, Pending: 1}},
		Setting: accounts.Setting{Account: "acc-00000001", Regions: []string{"r"}, Models: []string{"nvidia-l40"}, Back: "/admin/accounts/acc-00000001"},
	}
}

func TestAnAccountsPageShowsQuotasMembersAndWhatCanBeDone(t *testing.T) {
	doc := webtest.Both(t, accounts.View(account()))
	for _, want := range []string{
		`tr[data-model="nvidia-l40"][data-state=open] [data-limit="4"]`, `tr[data-model="nvidia-l40"] a[href="/admin/quotas?account=acc-00000001&model=nvidia-l40&region=r#set-quota"]`,
		`#suspend form [name=reason]`, `li[data-id="<i>@x.test"] [name=email]`, `#set-quota [name=back][value="/admin/accounts/acc-00000001"]`,
	} {
		if doc.Find(want).Length() != 1 {
			t.Errorf("%d match %s", doc.Find(want).Length(), want)
		}
	}
	if doc.Find("li i").Length() > 0 {
		t.Error("an e-mail is taken for HTML")
	}
}

func TestARefusalKeepsItsFormOpenAndFilledIn(t *testing.T) {
	p := account()
	p.Asked = accounts.Asked{Form: "suspend", Reason: "because"}
	p.Broken = []services.Violation{{Field: "reason", Code: services.CodeTooLong}}
	doc := webtest.Both(t, accounts.View(p))
	if doc.Find(`#suspend[open] [name=reason][value=because][aria-invalid=true]`).Length() != 1 {
		t.Error("the suspension is closed, or has lost its reason")
	}
	p = account()
	p.Setting.Limit, p.Setting.Broken = "some", []services.Violation{{Field: "limit", Code: services.CodeInvalidValue}}
	doc = webtest.Both(t, accounts.View(p))
	if doc.Find(`#set-quota[open] [name=limit][value=some][aria-invalid=true]`).Length() != 1 || doc.Find(`#suspend[open]`).Length() != 0 {
		t.Error("the quota's form is closed, or has lost the limit, or another is open")
	}
}

func TestASuspendedAccountCanOnlyBeResumed(t *testing.T) {
	p := account()
	p.Account.Suspended, p.Account.Reason, p.SuspendedSince = true, "<script>unpaid", webtest.Now
	doc := webtest.Both(t, accounts.View(p))
	if doc.Find(`button[name=action][value=resume]`).Length() != 1 || doc.Find("#suspend").Length() != 0 || doc.Find(`.banner:contains("unpaid")`).Length() != 1 {
		t.Error("it can be suspended again, or not resumed, or does not say why it is")
	}
}

func TestQuotasOfAllAccountsNameWhose(t *testing.T) {
	q := accounts.Quotas{
		Shell: webtest.Shell(), Listing: components.Listing{Path: urls.AdminQuotas, Shown: 1, Total: 1}, Rows: account().Quotas, Setting: account().Setting,
	}
	doc := webtest.Both(t, accounts.QuotasView(q))
	if doc.Find(`tr[data-account="acc-00000001"] a[href="/admin/accounts/acc-00000001"]`).Length() != 1 {
		t.Error("it does not lead to the account")
	}
	for _, item := range services.Resources {
		if doc.Find(`select[name=model] option[value="`+item+`"]`).Length() < 1 {
			t.Errorf("%s can't be limited", item)
		}
	}
}
