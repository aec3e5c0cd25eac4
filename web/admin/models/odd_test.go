package models_test

import (
	"context"
	"strings"
	"testing"

	"github.com/PuerkitoBio/goquery"
	"github.com/a-h/templ"
	"github.com/google/go-cmp/cmp"

	"berth/services"
	"berth/services/catalog"
	"berth/web/admin/models"
	"berth/web/i18n"
	"berth/web/webtest"
)

// odd is a name that a URL, a selector and HTML each read differently.
const odd = `<b>a/b & "one" ?x#y`

// escaped is odd as a part of a path.
const escaped = "%3Cb%3Ea%2Fb%20&%20%22one%22%20%3Fx%23y"

func TestLimitsAreSaidInWordsAndNoneBindsSilently(t *testing.T) {
	offer := catalog.Offer{MaxVCores: 35, MaxMemoryMiB: 192<<10 + 512, Generations: []string{"v6", "v7"}}
	tests := []struct {
		rule   string
		locale i18n.Locale
		offer  catalog.Offer
		want   string
	}{
		{"none", i18n.English, catalog.Offer{}, ""}, {"none", i18n.French, catalog.Offer{}, ""},
		{"one", i18n.English, catalog.Offer{MaxVCores: 1234}, "≤ 1,234 vCores"}, {"generations alone", i18n.English, catalog.Offer{Generations: []string{"v7"}}, "v7"},
		{"all", i18n.English, offer, "≤ 35 vCores, ≤ 192.5 GiB, v6 v7"}, {"all", i18n.French, offer, "≤ 35 vCores, ≤ 192,5 Gio, v6 v7"},
	}
	for _, tt := range tests {
		t.Run(tt.rule+" "+string(tt.locale), func(t *testing.T) {
			if diff := cmp.Diff(tt.want, models.Limits(i18n.With(context.Background(), tt.locale), tt.offer)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestTheIndexSaysWhatIsMissing(t *testing.T) {
	doc := webtest.Both(t, models.IndexView(models.Index{
		Shell:  webtest.Shell(),
		Models: []models.Model{{ID: "bare"}, {ID: "free", Offers: []models.Offer{{Region: "r"}, {Region: odd, Limits: odd, HourlyPrice: "0"}}}},
		Types:  []models.Type{{Name: "bare"}, {Name: "odd", GPUModel: odd, GPUCount: 16, Generation: odd, HourlyPrice: odd}},
	}))
	got := map[string][]string{}
	for _, row := range doc.Find("tbody tr").EachIter() {
		id := row.AttrOr("data-id", "") + "/" + row.Find("a.row-name").AttrOr("href", "")
		for _, td := range row.Find("td").Slice(1, row.Find("td").Length()).EachIter() {
			got[id] = append(got[id], webtest.Text(td))
		}
	}
	want := map[string][]string{
		"bare//admin/catalog/models/bare": {"–", "", "only built into types"},
		"free//admin/catalog/models/free": {"–", "", "r " + odd + " " + odd + " €0.00 an hour"},
		"bare//admin/catalog/types/bare":  {"0", "0 GiB", "–", "–", "–"},
		"odd//admin/catalog/types/odd":    {"0", "0 GiB", odd, "16 × " + odd, odd},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if doc.Find("td b").Length() > 0 {
		t.Error("a text is taken for HTML")
	}
}

func TestAnEmptyCatalogueOffersToFillIt(t *testing.T) {
	doc := webtest.Both(t, models.IndexView(models.Index{Shell: webtest.Shell()}))
	if doc.Find("tbody tr").Length() > 0 {
		t.Error("there is a row of nothing")
	}
	for _, href := range []string{"/admin/catalog/models/new", "/admin/catalog/types/new"} {
		if doc.Find(`#main a[href="`+href+`"]`).Length() != 1 {
			t.Errorf("nothing leads to %s", href)
		}
	}
}

// What a form posts goes to its own model or type, whatever that is called.
func TestFormsGoToTheirOwnModelOrType(t *testing.T) {
	model := models.ModelForm{
		Shell: webtest.Shell(), ID: odd, Version: odd, Fields: map[string]string{"architecture": odd},
		Offers: []models.OfferForm{{Region: "r", Version: odd, Fields: map[string]string{}}, {Region: "s", Fields: map[string]string{}}},
	}
	kind := models.TypeForm{Shell: webtest.Shell(), Name: odd, Version: odd, Fields: map[string]string{}, Models: []string{"nvidia-l40"}}
	for base, found := range map[string][]string{
		"/admin/catalog/models/" + escaped: actions(t, models.ModelView(model)), "/admin/catalog/types/" + escaped: actions(t, models.TypeView(kind)),
	} {
		want := []string{base + "/delete", base}
		if strings.Contains(base, "models") {
			want = append(want, base+"/offers", base+"/offers")
		}
		if diff := cmp.Diff(want, found); diff != "" {
			t.Error(diff)
		}
	}
}

// actions are where the forms of a page go, in their order.
func actions(t *testing.T, c templ.Component) []string {
	t.Helper()
	var out []string
	for _, f := range webtest.Both(t, c).Find("#main form").EachIter() {
		out = append(out, f.AttrOr("action", ""))
	}
	return out
}

func TestOffersOfRegionsStandApart(t *testing.T) {
	f, long := form(), strings.Repeat("r", 63)
	f.Offers = nil
	for _, region := range []string{"eu-west-2", "eu-west-2-max", long} {
		f.Offers = append(f.Offers, models.OfferForm{
			Region: region, Fields: map[string]string{"max_memory": region},
			Broken: []services.Violation{{Field: "max_memory", Code: services.CodeInvalidValue, Args: map[string]any{"Value": odd, "Allowed": odd}}},
		})
	}
	doc := webtest.Both(t, models.ModelView(f)) // finds ids that stand twice
	var got []string
	for _, s := range doc.Find("[data-region]").EachIter() {
		field := s.Find("[name=max_memory]")
		got = append(got, s.AttrOr("data-region", "")+"="+field.AttrOr("value", "")+" "+field.AttrOr("aria-invalid", ""))
		if s.Find("[name=region]").AttrOr("value", "") != s.AttrOr("data-region", "") {
			t.Errorf("the form of %s posts another region", s.AttrOr("data-region", ""))
		}
	}
	if diff := cmp.Diff([]string{"eu-west-2=eu-west-2 true", "eu-west-2-max=eu-west-2-max true", long + "=" + long + " true"}, got); diff != "" {
		t.Error(diff)
	}
	if doc.Find("#main b").Length() > 0 {
		t.Error("what is wrong is taken for HTML")
	}
}

func TestARefusalOfTheWholeFormIsShown(t *testing.T) {
	stale := []services.Violation{{Code: services.CodeStale}, {Code: services.CodeInUse, Args: map[string]any{"Cards": 3}}}
	model, kind := form(), models.TypeForm{Shell: webtest.Shell(), Name: "inf.2h", Fields: map[string]string{}, Broken: stale}
	model.Broken = stale
	for what, doc := range map[string]*goquery.Document{"model": webtest.Both(t, models.ModelView(model)), "type": webtest.Both(t, models.TypeView(kind))} {
		if doc.Find("#errors [data-error=stale]").Length() != 1 || !strings.Contains(webtest.Text(doc.Find("#errors [data-error=in-use]")), "cards: 3") {
			t.Errorf("%s: it says %q", what, webtest.Text(doc.Find("#errors")))
		}
	}
}

func TestEachFieldOfAFormSaysWhatIsWrongWithIt(t *testing.T) {
	blank := models.ModelForm{Shell: webtest.Shell(), New: true, Fields: map[string]string{}}
	kind := models.TypeForm{Shell: webtest.Shell(), New: true, Fields: map[string]string{}, Models: []string{"nvidia-l40"}}
	modelFields := []string{"id", "architecture", "memory_gb", "memory_type", "vram", "int8", "use_cases", "resource_name", "driver_branch", "pci_ids"}
	typeFields := []string{"name", "vcores", "memory", "generation", "gpu_model", "gpu_count", "hourly_price"}
	blank.Broken, kind.Broken = wrong(modelFields), wrong(typeFields)
	for _, c := range []struct {
		form   string
		doc    *goquery.Document
		fields []string
	}{{"#model-form", webtest.Both(t, models.ModelView(blank)), modelFields}, {"#type-form", webtest.Both(t, models.TypeView(kind)), typeFields}} {
		for _, name := range c.fields {
			field := c.doc.Find(c.form + " [name=" + name + "][aria-invalid=true]")
			if text := webtest.Text(c.doc.Find("#" + name + "-error")); field.Length() != 1 || !strings.Contains(text, "wrong "+name) {
				t.Errorf("%s: %d fields called %s are wrong, one since %q", c.form, field.Length(), name, text)
			}
		}
		for _, a := range c.doc.Find("#errors a").EachIter() {
			if c.doc.Find(c.form+" "+a.AttrOr("href", "-")).Length() != 1 {
				t.Errorf("%q leads to %q", webtest.Text(a), a.AttrOr("href", ""))
			}
		}
		if strings.Contains(c.doc.Find("#main").Text(), "models.") {
			t.Errorf("%s: a text is missing", c.form)
		}
	}
}

func wrong(fields []string) []services.Violation {
	var broken []services.Violation
	for _, f := range fields {
		broken = append(broken, services.Violation{Field: f, Code: services.CodeInvalidValue, Args: map[string]any{"Value": "wrong " + f, "Allowed": "x"}})
	}
	return broken
}

// A type may have a model built in that has left the catalogue since.
func TestATypeKeepsAModelThatIsGone(t *testing.T) {
	f := models.TypeForm{Shell: webtest.Shell(), Name: "inf.2h", Models: []string{"nvidia-l40"}}
	for model, want := range map[string][]string{
		"":           {"none built in", "nvidia-l40"},
		"nvidia-l40": {"none built in", "nvidia-l40"},
		odd:          {"none built in", odd, "nvidia-l40"},
	} {
		f.Fields = map[string]string{"gpu_model": model}
		doc := webtest.Both(t, models.TypeView(f))
		var got []string
		for _, o := range doc.Find("select[name=gpu_model] option").EachIter() {
			got = append(got, webtest.Text(o))
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%q: %s", model, diff)
		}
		if chosen := doc.Find("select[name=gpu_model] option[selected]"); chosen.Length() != 1 || chosen.AttrOr("value", "-") != model {
			t.Errorf("%d are chosen of %q", chosen.Length(), model)
		}
	}
}

func TestMisfitsStayText(t *testing.T) {
	f := form()
	f.Offers[0].Misfits = []models.Misfit{{VM: "i-00000001", Name: odd, Account: odd, GPUs: odd}, {VM: "i-00000002", Name: strings.Repeat("w", 300)}}
	doc := webtest.Both(t, models.ModelView(f))
	if text := webtest.Text(doc.Find(`[data-misfits] [data-id="i-00000001"]`)); strings.Count(text, odd) != 3 || doc.Find("#main b").Length() > 0 {
		t.Errorf("it says %q, or takes a name for HTML", text)
	}
	if text := webtest.Text(doc.Find("#offer-r .note")); !strings.Contains(text, "2 machines have GPUs") {
		t.Errorf("it does not count them: %q", text)
	}
}
