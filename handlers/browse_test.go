package handlers_test

import (
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/PuerkitoBio/goquery"
	"github.com/google/go-cmp/cmp"

	"berth/handlers"
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
	if diff := cmp.Diff([]string{"/catalog/nvidia-h100", "/catalog/nvidia-l40", "/catalog/nvidia-l40s"}, compared.found(".comparison thead a", "href")); diff != "" {
		t.Error(diff)
	}
	unknown := b.get("/catalog?compare=a&compare=b&compare=c&compare=d").wants(200).lacks(".comparison") // models that are gone take no place
	unknown.has(`.model-actions a[href="/catalog?compare=nvidia-l40"]`)
	five := b.get("/catalog?compare=nvidia-l40&compare=nvidia-l40s&compare=nvidia-h100&compare=nvidia-h200&compare=nvidia-a100-80").wants(200)
	if n := five.Find(".comparison thead a").Length(); n != 4 {
		t.Errorf("%d models stand side by side, want 4", n)
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
	w.signIn(olga).get("/admin").wants(200).says("host-eu-west-2a").says("unknown model")
	w.signIn(olga).get("/admin/hosts").wants(200).has(`[data-total="1"] tr[data-id^="host-"][data-state="accepting"]`)
	w.signIn(olga).get("/fragments/admin").wants(200).lacks(".sidebar")
	for _, who := range []string{alice, vera} {
		w.signIn(who).get("/admin").wants(403)
		w.signIn(who).get("/fragments/admin").wants(403)
	}
	w.visitor().get("/admin").leads("/login")
}

func TestTheFleetsFiguresAddUpAndAgeWithTheirReports(t *testing.T) {
	var ahead atomic.Int64
	w := newWorld(t, func(o *handlers.Options) {
		o.Now = func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }
	})
	h := w.addHost("eu-west-2a", l40, l40, l40, h100, "ffff")
	w.signIn(alice).post("/gpus", "model", "nvidia-l40", "zone", "eu-west-2a").leads("/gpus/")
	b := w.signIn(olga)
	pools := func() map[string]string {
		rows := map[string]string{}
		for _, row := range b.get("/admin").wants(200).Find("tr:has(td.is-number)").EachIter() {
			var figures []string
			for _, cell := range row.Find("td.is-number").EachIter() {
				figures = append(figures, cell.Text())
			}
			rows[strings.TrimSpace(row.Find("td").Eq(1).Text())] = strings.Join(figures, " ")
		}
		return rows
	}
	// free, held, unavailable
	if diff := cmp.Diff(map[string]string{"nvidia-l40": "2 1 0", "nvidia-h100": "1 0 0", "unknown model": "0 0 1"}, pools()); diff != "" {
		t.Error(diff)
	}
	h.cards = []string{l40, l40, l40} // the other two are gone
	h.work()
	if diff := cmp.Diff(map[string]string{"nvidia-l40": "2 1 0", "nvidia-h100": "0 0 1", "unknown model": "0 0 1"}, pools()); diff != "" {
		t.Error(diff)
	}
	b.get("/admin").has(`[data-drift="card-missing"]`)
	const vouched = `tr[data-id^="host-"] td[data-label="Readiness"] .chip[data-tone=ok]`
	b.get("/admin/hosts").has(vouched)
	ahead.Store(int64(time.Hour))
	b.get("/fragments/admin/hosts").has(`tr[data-id^="host-"]`).lacks(vouched)
}

// named fails where an error page does not name its status and its request.
func (a answer) named(status int) {
	a.w.t.Helper()
	a.wants(status)
	a.has(`.problem[data-status="` + strconv.Itoa(status) + `"] h1`).has(`main a[href="/"]`)
	if got := a.found(".problem-request [data-copy]", "data-copy"); len(got) != 1 || got[0] == "" || got[0] != a.Header.Get("X-Request-Id") {
		a.w.t.Errorf("%s names the request %v, its header %q", a.what, got, a.Header.Get("X-Request-Id"))
	}
}

func TestErrorPagesSayWhatIsWrongAndNameTheRequest(t *testing.T) {
	w := newWorld(t)
	b, french := w.signIn(alice), w.signIn(bob)
	french.post("/session/locale", "locale", "fr").leads("/")
	const urlencoded = "application/x-www-form-urlencoded"
	for path, status := range map[string]int{
		"/nowhere": 404, "/gpus/fgpu-00000000": 404, "/gpus/fgpu-xyz": 404, "/catalog/%3Cb%3E": 404, "/activity?vm=i-00000000": 404, "/activity?gpu=x": 404,
		"/admin": 403, "/fragments/admin": 403, "/gpus?q=%00": 400, "/catalog?region=%ff": 400, "/search?q=%zz": 400,
	} {
		b.get(path).named(status)
		french.get(path).named(status)
	}
	b.raw("/gpus", "application/json", []byte("{}")).named(415)
	b.raw("/gpus", urlencoded, []byte("name="+strings.Repeat("x", 2<<20))).named(413)
	b.raw("/gpus", urlencoded, []byte("name=%00")).named(400)
	b.post("/session/region", "region", "nowhere").named(422)
	b.post("/gpus/bulk", "action", "release", "gpu", "fgpu-00000000").named(404)
	w.signIn(vera).post("/gpus").named(403)
	w.visitor().get("/nowhere").named(404)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodDelete, w.pages.URL+"/gpus", nil)
	w.must(err)
	b.send(req).named(405)
	if title := french.get("/nowhere").Find("h1").Text(); title != "Il n’y a rien ici" {
		t.Errorf("in French it is called %q", title)
	}
}

// A part of a page that is refused is a page of its own too, for its script shows
// it in place of the rest.
func TestAPartOfAPageThatIsRefusedSaysSo(t *testing.T) {
	w := newWorld(t)
	b := w.signIn(alice)
	b.header.Set("HX-Request", "true")
	b.header.Set("HX-Current-URL", w.pages.URL+"/gpus")
	b.get("/fragments/gpus/fgpu-00000000").named(404)
	b.post("/gpus/fgpu-00000000/release").named(404)
	b.get("/fragments/vms/i-00000000/resize?type=%00").named(400)
}

func TestOddValuesOfAnAddressReadAsNone(t *testing.T) {
	w := newWorld(t)
	h := w.addHost("eu-west-2a", l40)
	b := w.signIn(alice)
	gpu := idIn(b.post("/gpus", "model", "nvidia-l40", "zone", "eu-west-2a").leads("/gpus/"))
	vm := string(w.addVM(h, w.actor(alice, "Alpha", "owner"), "trainer", "u1.large"))
	for path, id := range map[string]string{
		"/gpus?state=%3Cb%3E": gpu, "/gpus?sort=x&sort=name": gpu, "/gpus?after=-1": gpu, "/gpus?after=i-00000000": gpu, "/gpus?unknown=1": gpu, "/gpus?q=+": gpu,
		"/vms?power=%3Cb%3E": vm, "/vms?sort=memory": vm, "/vms?after=fgpu-00000000": vm, "/vms?unknown=1": vm,
	} {
		b.get(path).wants(200).has(`tr[data-id="` + id + `"]`)
	}
	for _, path := range []string{"/gpus?model=nothing", "/gpus?zone=nowhere", "/gpus?q=nothing", "/vms?zone=nowhere", "/vms?q=nothing"} {
		b.get(path).wants(200).lacks("tr[data-id]").has(`.empty a`)
	}
	b.get("/gpus/new?model=%3Cb%3E&zone=nowhere&delete_on_vm_deletion=maybe").wants(200).has(`form[action="/gpus"]`)
	b.get("/vms/new?type=%3Cb%3E&zone=nowhere&vcores=-1&memory=x&performance=none").wants(200).has(`form[action="/vms"]`)
	b.get("/vms/" + vm + "/resize?type=%3Cb%3E&vcores=99999999999999999999").wants(200).has(`[data-error="invalid-type"]`)
}
