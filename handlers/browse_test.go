package handlers_test

import (
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/PuerkitoBio/goquery"
	"github.com/google/go-cmp/cmp"
)

// found are the values of an attribute on a page, in its order.
func (a answer) found(selector, attribute string) []string {
	all := []string{}
	a.Find(selector).Each(func(_ int, s *goquery.Selection) {
		value, _ := s.Attr(attribute)
		all = append(all, value)
	})
	return all
}

func TestTheCatalogueIsFilteredAndComparedByItsAddress(t *testing.T) {
	w := newWorld(t)
	w.addHost("eu-west-2a", l40)
	b := w.signIn(alice)
	for path, want := range map[string][]string{
		"/catalog":                                    {"nvidia-a100-80", "nvidia-h100", "nvidia-h200", "nvidia-l40", "nvidia-l40s"},
		"/catalog?architecture=Hopper":                {"nvidia-h100", "nvidia-h200"},
		"/catalog?region=hikube":                      {"nvidia-a100-80", "nvidia-h100", "nvidia-l40s"},
		"/catalog?region=hikube&architecture=Ampere":  {"nvidia-a100-80"},
		"/catalog?memory=80":                          {"nvidia-a100-80", "nvidia-h100", "nvidia-h200"},
		"/catalog?memory=lots":                        {"nvidia-a100-80", "nvidia-h100", "nvidia-h200", "nvidia-l40", "nvidia-l40s"},
		"/catalog?use_case=training":                  {"nvidia-a100-80"},
		"/catalog?free=now":                           {"nvidia-l40"},
		"/catalog?free=now&region=eu-west-2":          {"nvidia-l40"},
		"/catalog?free=now&region=hikube":             {},
		"/catalog?architecture=%3Cb%3E":               {},
		"/fragments/catalog?architecture=Ampere":      {"nvidia-a100-80"},
		"/catalog?compare=nvidia-l40&compare=nothing": {"nvidia-a100-80", "nvidia-h100", "nvidia-h200", "nvidia-l40", "nvidia-l40s"},
	} {
		if diff := cmp.Diff(want, b.get(path).wants(200).found(".model", "data-id")); diff != "" {
			t.Errorf("%s: %s", path, diff)
		}
	}
	compared := b.get("/catalog?compare=nvidia-l40&compare=nvidia-h100&compare=nvidia-l40&compare=a&compare=b&compare=nvidia-l40s").wants(200)
	if diff := cmp.Diff([]string{"/catalog/nvidia-h100", "/catalog/nvidia-l40"}, compared.found(".comparison thead a", "href")); diff != "" {
		t.Error(diff)
	}
	b.get("/catalog/nvidia-h200").wants(200).says("Only built into inference types")
	b.get("/catalog/nvidia-b300").wants(404)
	b.get("/fragments/catalog/nvidia-l40").wants(200).lacks(".sidebar").has(`[data-zone="eu-west-2a"][data-free="true"]`)
}

func TestOthersHoldingsShowAsNoneFreeAndNoMore(t *testing.T) {
	w := newWorld(t)
	w.addHost("eu-west-2a", l40)
	w.signIn(bob).post("/gpus", "model", "nvidia-l40", "zone", "eu-west-2a", "name", "bobs secret").leads("/gpus/")
	a := w.signIn(alice).get("/catalog/nvidia-l40").wants(200)
	a.has(`[data-zone="eu-west-2a"][data-free="false"]`).says("0 of 4 used").lacks(`main [data-id^="fgpu-"]`)
	if strings.Contains(a.body, "secret") || strings.Contains(a.body, "Beta") {
		t.Error("another account shows")
	}
}

func TestSearchFindsOnesOwnByNameAndLeadsToAnID(t *testing.T) {
	w := newWorld(t)
	h := w.addHost("eu-west-2a", l40, l40)
	a, b := w.signIn(alice), w.signIn(bob)
	mine := a.post("/gpus", "model", "nvidia-l40", "zone", "eu-west-2a", "name", "50%_off").leads("/gpus/")
	theirs := b.post("/gpus", "model", "nvidia-l40", "zone", "eu-west-2a", "name", "50%_off too").leads("/gpus/")
	vm := w.addVM(h, w.actor(alice, "Alpha", "owner"), "50%_trainer", "u1.large")
	for query, want := range map[string][]string{
		"50%25_": {"/gpus/" + idIn(mine), "/vms/" + string(vm)}, "OFF": {"/gpus/" + idIn(mine)}, "%25%25": {}, "nothing": {}, "": {},
		"l40": {"/catalog/nvidia-l40", "/catalog/nvidia-l40s"},
	} {
		got := w.signIn(alice).get("/search?q="+query).wants(200).found(".hits a, .panel a", "href")
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%q: %s", query, diff)
		}
	}
	a.get("/search?q=+" + idIn(mine) + "+").leads(mine)
	a.get(a.get("/search?q=" + idIn(theirs)).leads(theirs)).wants(404)
}

func TestActivityIsAnAccountsOwnNarrowedAndPagedByItsAddress(t *testing.T) {
	w := newWorld(t)
	h := w.addHost("eu-west-2a", l40, l40)
	a, b := w.signIn(alice), w.signIn(bob)
	for range 30 {
		gpu := a.post("/gpus", "model", "nvidia-l40", "zone", "eu-west-2a", "name", "one of many").leads("/gpus/")
		a.post(gpu + "/release").leads(gpu)
		h.work() // the card is cleaned
	}
	theirs := b.post("/gpus", "model", "nvidia-l40", "zone", "eu-west-2a", "name", "bobs").leads("/gpus/")

	seen, path, pages := 0, "/activity", 0
	for path != "" {
		page := a.get(path).wants(200)
		if strings.Contains(page.body, "bobs") || strings.Contains(page.body, bob) {
			t.Errorf("%s shows another account", path)
		}
		seen += page.Find("[data-event]").Length()
		next, _ := page.Find(`a[rel=next]`).Attr("href")
		path, pages = next, pages+1
	}
	if seen != 60 || pages != 2 {
		t.Errorf("%d events on %d pages, want 60 on 2", seen, pages)
	}
	b.get("/activity?gpu=" + idIn(theirs)).wants(200).says("bobs")
	a.get("/activity?gpu=" + idIn(theirs)).wants(404)
	a.get("/fragments/activity?kind=vm").wants(200).lacks(".sidebar")
	for _, odd := range []string{"before=-1", "before=9223372036854775808", "before=x", "kind=card", "kind=%25"} {
		a.get("/activity?" + odd).wants(200)
	}
}

func TestTheFleetIsForOperators(t *testing.T) {
	w := newWorld(t)
	w.addHost("eu-west-2a", l40, l40, "ffff")
	page := w.signIn(olga).get("/admin").wants(200).says("host-eu-west-2a").says("unknown model")
	page.has(`tr[data-id^="host-"][data-state="accepting"]`)
	w.signIn(olga).get("/fragments/admin").wants(200).lacks(".sidebar")
	for _, who := range []string{alice, vera} {
		w.signIn(who).get("/admin").wants(403)
		w.signIn(who).get("/fragments/admin").wants(403)
	}
	w.visitor().get("/admin").leads("/login")
}

func TestErrorPagesSayWhatWrongIsAndNameTheRequest(t *testing.T) {
	w := newWorld(t)
	b := w.signIn(alice)
	for path, status := range map[string]int{"/nowhere": 404, "/gpus/fgpu-00000000": 404, "/gpus/fgpu-xyz": 404, "/admin": 403, "/gpus?q=%00": 400} {
		a := b.get(path).wants(status)
		a.has(`.problem[data-status="` + strconv.Itoa(status) + `"] h1`).has(`main a[href="/"]`)
		if got := a.found(".problem-request [data-copy]", "data-copy"); len(got) != 1 || got[0] == "" || got[0] != a.Header.Get("X-Request-Id") {
			t.Errorf("%s names the request %v, its header %q", path, got, a.Header.Get("X-Request-Id"))
		}
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodDelete, w.pages.URL+"/gpus", nil)
	w.must(err)
	b.send(req).wants(405)
}
