package handlers_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"berth/services"
)

// hostile are values that nobody types by accident.
var hostile = []string{
	"", "\x00", "\xff\xfe", "<script>alert(1)</script>", `"><img src=x onerror=alert(1)>`, "' or 1=1 --", "-1", "99999999999999999999",
	"../../etc/passwd", `%_\*`, "\r\nX-Injected: yes", strings.Repeat("é", 10_000), "fgpu-00000000", "javascript:alert(1)", "//evil.example",
}

// survived fails where an answer is the console's fault, or repeats a script.
func (a answer) survived(t *testing.T, what, value string) {
	t.Helper()
	if a.StatusCode >= http.StatusInternalServerError {
		t.Errorf("%s with %.40q: got %d", what, value, a.StatusCode)
	}
	if strings.Contains(a.body, "<script>alert(1)") || strings.Contains(a.body, "<img src=x") || a.Header.Get("X-Injected") != "" {
		t.Errorf("%s with %.40q: it comes back unescaped", what, value)
	}
	for _, href := range a.found("a[href], form[action]", "href") {
		if strings.HasPrefix(strings.ToLower(href), "javascript:") || strings.HasPrefix(href, "//") {
			t.Errorf("%s with %.40q: a link leads to %s", what, value, href)
		}
	}
}

func TestNoValueOfAnAddressBreaksAPage(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.addHost("eu-west-2a", l40)
	b := w.signIn(alice)
	for path, names := range map[string]string{
		"/gpus": "q model zone state sort after gpu vm", "/gpus/new": "model zone name generation delete_on_vm_deletion",
		"/vms": "q zone power sort after", "/vms/new": "name zone by type named vcores memory generation performance tenancy image model",
		"/catalog": "region memory architecture use_case free compare", "/activity": "kind gpu vm before", "/search": "q", "/login": "next",
		"/fragments/gpus": "q after", "/fragments/gpus/new": "model zone", "/fragments/vms/new": "type vcores memory zone", "/fragments/nav": "section",
	} {
		for name := range strings.FieldsSeq(names) {
			for _, value := range hostile {
				b.get(path+"?"+url.Values{name: {value, value}}.Encode()).survived(t, path+"?"+name, value)
			}
		}
	}
}

func TestNoValueOfAFormBreaksAWrite(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	h := w.addHost("eu-west-2a", l40, l40)
	actor := w.actor(alice, "Alpha", services.RoleOwner)
	vm := "/vms/" + string(w.addVM(h, actor, "trainer", "u1.large"))
	b := w.signIn(alice)
	gpu := b.post("/gpus", "model", "nvidia-l40", "zone", "eu-west-2a").leads("/gpus/")
	for path, names := range map[string]string{
		"/gpus": "model zone name generation delete_on_vm_deletion idempotency_key", gpu + "/attach": "vm idempotency_key", gpu + "/rename": "name",
		gpu + "/detach": "idempotency_key", "/gpus/bulk": "action gpu vm", "/vms": "name zone type tenancy image performance ssh_key user_data",
		vm + "/power": "action", vm + "/resize": "type restart performance", vm + "/gpus": "gpu", "/session/account": "account back",
		"/session/region": "region back", "/session/locale": "locale back", "/session/theme": "theme back", "/login": "email password next",
	} {
		for name := range strings.FieldsSeq(names) {
			for _, value := range hostile {
				fields := []string{name, value, name, value}
				if path == "/vms" && name != "type" { // all else is right, but for the size: nothing is made
					fields = append(fields, "type", "tinav7.c1024r65536p1", "zone", "eu-west-2a", "name", "x")
				}
				b.post(path, fields...).survived(t, path+" "+name, value)
			}
		}
	}
	b.get(gpu).wants(http.StatusOK)
	b.get(vm).wants(http.StatusOK)
}

func TestNoHeaderBreaksAPage(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.addHost("eu-west-2a", l40)
	b := w.signIn(alice)
	session := b.client.Jar.Cookies(mustURL(w.pages.URL))[0].String()
	values := []string{
		"\xff\xfe", `"><script>alert(1)</script>`, "javascript:alert(1)", "//evil.example", w.pages.URL + "//evil.example", "http://%zz/", strings.Repeat("x", 10_000),
		"-1", "fr;q=x,,;", "bytes=0-,-", "gzip;q=0", "9223372036854775808", "=;=; a=",
	}
	for _, name := range []string{
		"Referer", "HX-Current-URL", "HX-Request", "HX-Target", "Accept-Language", "Accept-Encoding", "Cookie", "X-Forwarded-For", "X-Request-Id", "Range",
		"If-None-Match", "If-Modified-Since", "Content-Type", "User-Agent",
	} {
		for _, value := range values {
			b.header = http.Header{"Hx-Request": {"true"}}
			b.header.Set(name, value)
			path := "/nowhere"
			switch {
			case name == "Cookie":
				b.header.Set(name, session+"; berth_locale="+value+"; berth_theme="+value)
			case name == "Range" || strings.HasPrefix(name, "If-"):
				path = "/static/css/app.css"
			}
			b.get(path).survived(t, path+" with "+name, value)
			a := b.post("/session/theme", "theme", "dark")
			a.survived(t, "write with "+name, value)
			if to := a.Header.Get("Location"); strings.HasPrefix(to, "//") || strings.Contains(to, "evil") {
				t.Errorf("%s %q leads to %s", name, value, to)
			}
		}
	}
}

func TestNoAddressOfAnObjectBreaksAPage(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b := w.signIn(alice)
	for _, value := range hostile {
		for _, path := range []string{"/gpus/", "/vms/", "/catalog/", "/fragments/gpus/", "/static/"} {
			b.get(path+url.PathEscape(value)).survived(t, path, value)
		}
		for _, path := range []string{"/gpus/%s/attach", "/gpus/%s/release", "/vms/%s/power", "/vms/%s/delete", "/operations/%s/retry"} {
			b.post(strings.ReplaceAll(path, "%s", url.PathEscape(value)), "action", "stop", "vm", "i-00000000").survived(t, path, value)
		}
	}
}
