package quotas_test

import (
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"berth/services"
	"berth/web/i18n"
	"berth/web/quotas"
	"berth/web/urls"
	"berth/web/webtest"
)

// odd is a name that a URL and HTML each read differently.
const odd = `<b>a & "one" ?x#y`

var operators = quotas.TableOptions{Owners: true, Editable: true}

func TestEveryResourceHasANameAndAModelIsItsOwn(t *testing.T) {
	var rows []quotas.Quota
	for _, item := range append([]string{"nvidia-l40", odd}, services.Resources...) {
		rows = append(rows, quotas.Quota{Account: "acc-00000001", Region: "r", Item: item, Max: new(1)})
	}
	for l, want := range map[i18n.Locale][]string{
		i18n.English: {"nvidia-l40", odd, "vCores", "Memory (GiB)", "Machines", "Clusters"},
		i18n.French:  {"nvidia-l40", odd, "vCores", "Mémoire (Gio)", "Machines", "Clusters"},
	} {
		var got []string
		for _, td := range webtest.Render(t, quotas.Table(rows, quotas.TableOptions{}), l).Find("tbody td:first-child").EachIter() {
			got = append(got, webtest.Text(td))
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", l, diff)
		}
	}
}

// The link to the form must name the very quota, whatever its names hold.
func TestAQuotaLeadsOperatorsToItsFormAndItsAccount(t *testing.T) {
	row := quotas.Quota{Account: "acc-00000001", AccountName: odd, Region: odd, Item: odd}
	doc := webtest.Both(t, quotas.Table([]quotas.Quota{row}, operators))
	change := doc.Find("tbody .row-actions a")
	u, err := url.Parse(change.AttrOr("href", ""))
	if err != nil {
		t.Fatal(err)
	}
	want := []any{urls.AdminQuotas, "set-quota", url.Values{"account": {"acc-00000001"}, "region": {odd}, "model": {odd}}}
	if diff := cmp.Diff(want, []any{u.Path, u.Fragment, u.Query()}); diff != "" {
		t.Error(diff)
	}
	if label := change.AttrOr("aria-label", ""); strings.Count(label, odd) != 3 {
		t.Errorf("it does not say which item, region and account: %q", label)
	}
	if got := webtest.Text(doc.Find(`a[href="/admin/accounts/acc-00000001"]`)); got != odd {
		t.Errorf("the account reads %q", got)
	}
	if doc.Find("td b").Length() > 0 {
		t.Error("a name is taken for HTML")
	}
}

func TestOptionsDecideWhatATableHas(t *testing.T) {
	row := quotas.Quota{Account: "acc-00000001", AccountName: "Alpha", Region: "r", Item: "vms", Max: new(3)}
	tests := []struct {
		rule            string
		options         quotas.TableOptions
		owners, editors int
	}{
		{"tenants see their own", quotas.TableOptions{}, 0, 0},
		{"an account's page does not repeat whose they are", quotas.TableOptions{Editable: true}, 0, 1},
		{"operators see whose they are, and change them", operators, 1, 1},
	}
	for _, tt := range tests {
		t.Run(tt.rule, func(t *testing.T) {
			doc := webtest.Both(t, quotas.Table([]quotas.Quota{row}, tt.options))
			got := []int{doc.Find(`a[href^="/admin/accounts"]`).Length(), doc.Find(`a[href^="/admin/quotas"]`).Length()}
			if diff := cmp.Diff([]int{tt.owners, tt.editors}, got); diff != "" {
				t.Error(diff)
			}
			if heads, cells := doc.Find("thead th").Length(), doc.Find("tbody td").Length(); heads != cells {
				t.Errorf("%d headings over %d cells", heads, cells)
			}
		})
	}
}

func TestRowsOfAllAccountsHaveNamesOfTheirOwn(t *testing.T) {
	var rows []quotas.Quota
	for _, account := range []services.AccountID{"acc-00000001", "acc-00000002"} {
		for _, region := range []string{"r", "s"} {
			for _, item := range services.Resources {
				rows = append(rows, quotas.Quota{Account: account, AccountName: "Alpha", Region: region, Item: item})
			}
		}
	}
	seen := map[string]bool{}
	for _, tr := range webtest.Both(t, quotas.Table(rows, operators)).Find("tbody tr").EachIter() {
		seen[tr.AttrOr("data-id", "")] = true
	}
	if len(seen) != len(rows) {
		t.Errorf("%d names for %d rows", len(seen), len(rows))
	}
}

// What is used can be more than the limit: it was lowered since.
func TestABarSaysHowMuchAndNeverRunsOver(t *testing.T) {
	tests := []struct {
		rule        string
		used, most  int
		label, size string
	}{
		{"none of none", 0, 0, "0 of 0 in use", ""}, {"none of some", 0, 4, "0 of 4 in use", ""}, {"some", 1, 4, "1 of 4 in use", "25.00%"},
		{"all", 4, 4, "4 of 4 in use", "100.00%"}, {"more than all", 9, 4, "9 of 4 in use", "100.00%"}, {"some of none", 2, 0, "2 of 0 in use", "100.00%"},
	}
	for _, tt := range tests {
		t.Run(tt.rule, func(t *testing.T) {
			row := quotas.Quota{Account: "acc-00000001", Region: "r", Item: "vms", Used: tt.used, Max: &tt.most}
			bar := webtest.Both(t, quotas.Table([]quotas.Quota{row}, quotas.TableOptions{})).Find("svg.meter")
			if diff := cmp.Diff([]string{tt.label, tt.size}, []string{bar.AttrOr("aria-label", ""), bar.Find(".meter-part").AttrOr("width", "")}); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestALimitIsWrittenForScriptsAsForForms(t *testing.T) {
	for want, most := range map[string]*int{"unlimited": nil, "0": new(0), "12345": new(12345)} {
		row := quotas.Quota{Account: "acc-00000001", AccountName: "Alpha", Region: "r", Item: "vms", Max: most}
		if doc := webtest.Both(t, quotas.Table([]quotas.Quota{row}, operators)); doc.Find(`[data-limit="`+want+`"]`).Length() != 1 {
			t.Errorf("%s is not written so", want)
		}
	}
}

func TestAnAccountsOwnPageFollowsWhatItUses(t *testing.T) {
	p := quotas.Page{Shell: webtest.Shell(), Rows: []quotas.Quota{{Account: "acc-00000001", Region: "r", Item: "vms", Max: new(1)}}}
	doc := webtest.Both(t, quotas.View(p))
	live := doc.Find(`#quotas[data-live]`)
	if live.AttrOr("hx-get", "") != urls.Fragment(urls.Quotas) || !strings.Contains(live.AttrOr("hx-trigger", ""), "gpus") {
		t.Errorf("it is read from %q with %q", live.AttrOr("hx-get", ""), live.AttrOr("hx-trigger", ""))
	}
	if text := webtest.Text(doc.Find(".head-line")); !strings.Contains(text, "Tenant <A>") {
		t.Errorf("it does not say whose they are: %q", text)
	}
	if doc.Find(`#main a[href^="/admin"]`).Length() > 0 {
		t.Error("a tenant is led to the operator's pages")
	}
}
