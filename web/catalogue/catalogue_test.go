package catalogue_test

import (
	"strings"
	"testing"

	"github.com/PuerkitoBio/goquery"
	"github.com/google/go-cmp/cmp"

	"berth/services"
	"berth/services/catalog"
	"berth/web/catalogue"
	"berth/web/i18n"
	"berth/web/layout"
	"berth/web/urls"
	"berth/web/webtest"
)

// h100 is offered in two regions, with a limit in one.
func h100() catalogue.Model {
	return catalogue.Model{
		ID: "nvidia-h100", Architecture: "Hopper", Memory: catalog.Memory{GB: 80, Type: "HBM3"}, VRAMMiB: 80000, INT8TOPS: 1979,
		UseCases: []string{"llm", "something <of> ours"}, ResourceName: "nvidia.com/H100_94GB", DriverBranch: "525",
		Offers: []catalogue.Offer{
			{
				Region: "eu-west-2", MaxVCores: 32, MaxMemoryMiB: 256 << 10, Generations: []string{"v7"}, HourlyPrice: "1.2500", Used: 2, Max: new(8),
				Zones: []catalogue.Zone{{ID: "eu-west-2a", Free: true}, {ID: "eu-west-2b"}},
			},
			{Region: "hikube", Zones: []catalogue.Zone{{ID: "hikube-1"}}},
		},
		Types: []catalogue.Type{{Name: "ns-inf7-64c450r-2h100g", VCores: 64, MemoryMiB: 450 << 10, GPUs: 2}},
	}
}

// h200 is built into types only, and little is known of it.
func h200() catalogue.Model { return catalogue.Model{ID: "nvidia-h200", Architecture: "Hopper"} }

func list(change func(*catalogue.List)) catalogue.List {
	l := catalogue.List{
		Shell: webtest.Shell(), Models: []catalogue.Model{h100(), h200()}, Total: 5, Regions: []string{"eu-west-2", "hikube"},
		Architectures: []string{"Ampere", "Hopper"}, UseCases: []string{"llm"}, Memories: []int{48, 80},
	}
	if change != nil {
		change(&l)
	}
	return l
}

func TestAvailabilityIsToldForEachZoneAndWithoutAFigure(t *testing.T) {
	doc := webtest.Both(t, catalogue.ListView(list(nil)))
	got := map[string]string{}
	for _, z := range doc.Find(`#model-nvidia-h100 [data-zone]`).EachIter() {
		zone, _ := z.Attr("data-zone")
		free, _ := z.Attr("data-free")
		got[zone] = free + ": " + webtest.Text(z)
	}
	want := map[string]string{
		"eu-west-2a": "true: eu-west-2a free now", "eu-west-2b": "false: eu-west-2b none free", "hikube-1": "false: hikube-1 none free",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestAModelOnlyBuiltInSaysSoAndCannotBeAllocated(t *testing.T) {
	doc := webtest.Both(t, catalogue.ListView(list(nil)))
	built := doc.Find("#model-nvidia-h200")
	if !strings.Contains(webtest.Text(built), "Only built into inference types") || built.Find(`a[href^="/gpus/new"]`).Length() > 0 {
		t.Errorf("it says %q", webtest.Text(built))
	}
	if doc.Find(`#model-nvidia-h100 a[href="/gpus/new?model=nvidia-h100&zone=eu-west-2a"]`).Length() != 1 {
		t.Error("the other does not lead to the form with a zone that has one free")
	}
}

func TestWhoMayNotWriteIsNotLedToForms(t *testing.T) {
	l := list(func(l *catalogue.List) { l.Account.Role = services.RoleViewer })
	if n := webtest.Both(t, catalogue.ListView(l)).Find(`main a[href^="/gpus/new"]`).Length(); n > 0 {
		t.Errorf("a viewer finds %d links to the form", n)
	}
	if n := webtest.Both(t, catalogue.View(catalogue.Page{Shell: l.Shell, Model: h100()})).Find(`main a[href^="/gpus/new"]`).Length(); n > 0 {
		t.Errorf("on the model's page a viewer finds %d links to the form", n)
	}
}

func TestFiltersShowWhatTheyAreSetTo(t *testing.T) {
	l := list(func(l *catalogue.List) {
		l.Query = urls.CatalogQuery{Region: "hikube", Memory: "80", Architecture: "Hopper", UseCase: "llm", FreeNow: true, Compare: []string{"nvidia-h100"}}
	})
	doc := webtest.Both(t, catalogue.ListView(l))
	for selector, want := range map[string]string{
		"#catalog-region option[selected]": "hikube", "#catalog-memory option[selected]": "80 GB or more",
		"#catalog-architecture option[selected]": "Hopper", "#catalog-use_case option[selected]": "large language models",
	} {
		if got := webtest.Text(doc.Find(selector)); got != want {
			t.Errorf("%s is %q, want %q", selector, got, want)
		}
	}
	if doc.Find("#free-now[checked]").Length() != 1 || doc.Find(`#catalog-filters input[type=hidden][name=compare][value=nvidia-h100]`).Length() != 1 {
		t.Error("the form forgets what is free now, or what is compared")
	}
	if doc.Find(`a[href="/catalog?compare=nvidia-h100"]`).Length() == 0 {
		t.Error("nothing clears the filters and keeps the comparison")
	}
}

// The address is all that a list is made from, so each link carries the rest of
// it along.
func TestLinksAndPartsKeepTheFilters(t *testing.T) {
	query := urls.CatalogQuery{Region: "hikube", Memory: "80", Architecture: "Hopper", UseCase: "llm", FreeNow: true, Compare: []string{"nvidia-h100"}}
	l := list(func(l *catalogue.List) { l.Query, l.Compared = query, []catalogue.Model{h100()} })
	doc := webtest.Both(t, catalogue.ListView(l))
	const filters = "architecture=Hopper&%sfree=now&memory=80&region=hikube&use_case=llm"
	without := "/catalog?" + strings.Replace(filters, "%s", "", 1)
	for what, c := range map[string]struct{ selector, attribute, want string }{
		"one more to compare":      {"#model-nvidia-h200 .model-actions a", "href", "/catalog?" + strings.Replace(filters, "%s", "compare=nvidia-h100&compare=nvidia-h200&", 1)},
		"one fewer to compare":     {"#model-nvidia-h100 .model-actions a[aria-current]", "href", without},
		"the end of the comparing": {"section:has(.comparison) .text-link", "href", without},
		"the part that changes":    {"#catalog", "hx-get", "/fragments/catalog?" + strings.Replace(filters, "%s", "compare=nvidia-h100&", 1)},
	} {
		if got := doc.Find(c.selector).First().AttrOr(c.attribute, ""); got != c.want {
			t.Errorf("%s: got %q, want %q", what, got, c.want)
		}
	}
	if form := doc.Find("form#catalog-filters"); form.AttrOr("method", "get") != "get" || form.AttrOr("action", "") != "/catalog" {
		t.Error("the filters are not sent in the address")
	}
	names := []string{}
	for _, field := range doc.Find("#catalog-filters select, #catalog-filters input[type=checkbox]").EachIter() {
		names = append(names, field.AttrOr("name", ""))
	}
	if diff := cmp.Diff([]string{"region", "memory", "architecture", "use_case", "free"}, names); diff != "" {
		t.Error(diff)
	}
}

func TestNoFilterIsSetUnlessAsked(t *testing.T) {
	doc := webtest.Both(t, catalogue.ListView(list(nil)))
	for _, choice := range doc.Find("#catalog-filters select").EachIter() {
		if got := choice.Find("option[selected]"); got.Length() != 1 || got.AttrOr("value", "-") != "" {
			t.Errorf("%s is set to %q", choice.AttrOr("name", ""), webtest.Text(got))
		}
	}
	if doc.Find("#free-now[checked], #catalog-filters a").Length() > 0 {
		t.Error("there is something to clear")
	}
	if got := webtest.Text(doc.Find(".pages-shown")); got != "2 of 5 models" {
		t.Errorf("it says %q", got)
	}
}

func TestBothLanguagesTellTheSame(t *testing.T) {
	l := list(func(l *catalogue.List) { l.Compared = []catalogue.Model{h100()} })
	for locale, want := range map[i18n.Locale][]string{
		i18n.English: {"free now", "none free", "no limit", "Only built into inference types", "80,000 MiB"},
		i18n.French:  {"libre", "aucun libre", "sans limite", "80\u00a0000 Mio"},
	} {
		text := webtest.Render(t, catalogue.ListView(l), locale).Find("main").Text()
		for _, words := range want {
			if !strings.Contains(text, words) {
				t.Errorf("%s lacks %q", locale, words)
			}
		}
	}
}

func TestNothingFoundSaysWhatToDo(t *testing.T) {
	l := list(func(l *catalogue.List) { l.Models, l.Query.Architecture = nil, "Volta" })
	doc := webtest.Both(t, catalogue.ListView(l))
	if !strings.Contains(webtest.Text(doc.Find("main")), "No model matches") || doc.Find(`main a[href="/catalog"]`).Length() == 0 {
		t.Errorf("it says %q", webtest.Text(doc.Find("main")))
	}
}

func TestModelsStandSideBySide(t *testing.T) {
	l := list(func(l *catalogue.List) {
		l.Compared, l.Query.Compare = []catalogue.Model{h100(), h200()}, []string{"nvidia-h100", "nvidia-h200"}
	})
	doc := webtest.Both(t, catalogue.ListView(l))
	got := map[string][]string{}
	for _, row := range doc.Find(".comparison tbody tr").EachIter() {
		for _, cell := range row.Find("td").EachIter() {
			label := webtest.Text(row.Find("th"))
			got[label] = append(got[label], webtest.Text(cell))
		}
	}
	want := map[string][]string{
		"Architecture": {"Hopper", "Hopper"}, "Memory": {"80 GB HBM3", "–"}, "Usable memory": {"80,000 MiB", "–"}, "INT8": {"1,979 TOPS", "–"},
		"Good for": {"large language models, something <of> ours", "–"}, "Kubernetes resource": {"nvidia.com/H100_94GB", "–"},
		"vCores at most": {"eu-west-2 32hikube no limit", "–"}, "Memory at most": {"eu-west-2 256 GiBhikube no limit", "–"},
		"CPU generations": {"eu-west-2 v7hikube any", "–"}, "Price": {"eu-west-2 €1.25 an hourhikube –", "–"},
		"Availability": {"eu-west-2a free noweu-west-2b none freehikube-1 none free", ""},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if doc.Find(`#model-nvidia-h100 a[aria-current][href="/catalog?compare=nvidia-h200"]`).Length() != 1 {
		t.Error("a compared model does not lead out of the comparison")
	}
}

func TestOneModelAsksForAnother(t *testing.T) {
	l := list(func(l *catalogue.List) {
		l.Compared, l.Query.Compare = []catalogue.Model{h100()}, []string{"nvidia-h100"}
	})
	if got := webtest.Text(webtest.Both(t, catalogue.ListView(l)).Find(".comparison").Parent().Parent()); !strings.Contains(got, "Choose another model below") {
		t.Errorf("it says %q", got)
	}
}

func TestNoMoreThanFourAreCompared(t *testing.T) {
	l := list(func(l *catalogue.List) { l.Query.Compare = []string{"a", "b", "c", "d"} })
	if n := webtest.Both(t, catalogue.ListView(l)).Find(`#model-nvidia-h100 .model-actions a[href*="compare"]`).Length(); n > 0 {
		t.Error("a fifth model is offered for comparison")
	}
}

func TestAModelsPageTellsLimitsQuotaAndTypes(t *testing.T) {
	doc := webtest.Both(t, catalogue.View(catalogue.Page{Shell: webtest.Shell(), Model: h100()}))
	got := map[string]string{}
	for _, row := range doc.Find("[data-region]").EachIter() {
		region, _ := row.Attr("data-region")
		got[region] = webtest.Text(row.Find("td.is-number")) + " | " + webtest.Text(row.Find("td").Last())
	}
	want := map[string]string{"eu-west-2": "32256 GiB€1.25 an hour | 2 of 8 used", "hikube": "no limitno limit– | 0 used, unlimited"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if doc.Find(`tr[data-id="ns-inf7-64c450r-2h100g"]`).Length() != 1 {
		t.Error("the inference type is not there")
	}
}

func TestAModelOnlyBuiltInHasNoLimitsToTell(t *testing.T) {
	m := h200()
	m.Types = []catalogue.Type{{Name: "ns-inf7-96c1000r-8h200", VCores: 96, MemoryMiB: 1000 << 10, GPUs: 8}}
	doc := webtest.Both(t, catalogue.View(catalogue.Page{Shell: webtest.Shell(), Model: m}))
	if text := webtest.Text(doc.Find("main")); !strings.Contains(text, "Only built into inference types") || !strings.Contains(text, "ns-inf7-96c1000r-8h200") {
		t.Errorf("it says %q", text)
	}
	if doc.Find("[data-region]").Length() > 0 || doc.Find(`main a[href^="/gpus/new"]`).Length() > 0 {
		t.Error("it is offered to be allocated")
	}
}

func TestWithoutAFreeCardTheFormChoosesNoZone(t *testing.T) {
	m := h100()
	m.Offers[0].Zones[0].Free = false
	l := list(func(l *catalogue.List) { l.Models = []catalogue.Model{m} })
	for what, doc := range map[string]*goquery.Document{
		"list": webtest.Both(t, catalogue.ListView(l)), "page": webtest.Both(t, catalogue.View(catalogue.Page{Shell: l.Shell, Model: m})),
	} {
		if doc.Find(`main a[href="/gpus/new?model=nvidia-h100"]`).Length() != 1 {
			t.Errorf("the %s does not lead to the form", what)
		}
	}
}

// A quota of 0 must never read as unlimited.
func TestAQuotaOfNoneReadsAsNone(t *testing.T) {
	m := h100()
	m.Offers[0].Used, m.Offers[0].Max = 0, new(0)
	doc := webtest.Both(t, catalogue.View(catalogue.Page{Shell: webtest.Shell(), Model: m}))
	if got := webtest.Text(doc.Find(`[data-region="eu-west-2"] td`).Last()); got != "0 of 0 used" {
		t.Errorf("it reads %q", got)
	}
}

func TestOperatorsWithoutAnAccountSeeTheCatalogue(t *testing.T) {
	shell := webtest.Shell()
	shell.Account, shell.Accounts = layout.AccountChoice{}, nil
	doc := webtest.Both(t, catalogue.View(catalogue.Page{Shell: shell, Model: h100()}))
	if doc.Find("h1").Length() != 1 {
		t.Error("there is no page")
	}
}
