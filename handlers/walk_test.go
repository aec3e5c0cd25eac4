package handlers_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"berth/handlers"
	"berth/services"
	"berth/web/urls"
)

// walker goes through every route of the table, about objects of Alpha.
type walker struct {
	*world
	gpu, vm, op string
}

func newWalker(t *testing.T) *walker {
	t.Helper()
	w := &walker{world: newWorld(t)}
	h := w.addHost("eu-west-2a", l40, l40)
	vm := w.addVM(h, w.actor(alice, "Alpha", services.RoleOwner), "trainer", "u1.large")
	w.vm = string(vm)
	b := w.signIn(alice)
	w.gpu = idIn(b.post("/gpus", "model", "nvidia-l40", "zone", "eu-west-2a").leads("/gpus/"))
	b.post("/vms/"+w.vm+"/power", "action", "stop").leads("/vms/")
	d, err := w.compute.VM(t.Context(), w.accounts["Alpha"], vm)
	w.must(err)
	w.op = string(d.Operation.ID)
	return w
}

// path fills in a route's objects.
func (w *walker) path(r handlers.Route) string {
	id := w.gpu
	switch {
	case strings.Contains(r.Path, "/vms/"):
		id = w.vm
	case strings.Contains(r.Path, "/operations/"):
		id = w.op
	}
	return strings.NewReplacer(":id", id, ":model", "nvidia-l40", "*", "nothing").Replace(r.Path)
}

// walk sends one request to each route but the stream, whose answer has no end.
func (w *walker) walk(b *browser, look func(handlers.Route, answer), fields ...string) {
	w.t.Helper()
	for _, r := range handlers.Routes() {
		if r.Path == urls.Events || strings.HasPrefix(r.Path, "/session/") || r.Path == urls.Logout || r.Path == urls.Login {
			continue
		}
		if r.Method == http.MethodGet {
			look(r, b.get(w.path(r)))
		} else {
			look(r, b.post(w.path(r), fields...))
		}
	}
}

func TestEveryRouteIsForWhomTheTableSays(t *testing.T) {
	t.Parallel()
	w := newWalker(t)
	people := []struct {
		who    string
		refuse map[string]int // by what the route asks for
	}{
		{"", map[string]int{"signed in": 303, "reader": 303, "writer": 303, "operator": 303}},
		{vera, map[string]int{"writer": 403, "operator": 403}},
		{olga, map[string]int{"writer": 403}},
		{alice, map[string]int{"operator": 403}},
	}
	for _, p := range people {
		b := w.visitor()
		if p.who != "" {
			b = w.signIn(p.who)
		}
		w.walk(b, func(r handlers.Route, a answer) {
			want, refused := p.refuse[r.May]
			toSignIn := strings.HasPrefix(a.Header.Get("Location"), urls.Login)
			switch {
			case refused && a.StatusCode != want, refused && want == 303 && !toSignIn:
				t.Errorf("%q at %s %s: got %d, want %d", p.who, r.Method, r.Path, a.StatusCode, want)
			case !refused && (a.StatusCode == http.StatusForbidden || a.StatusCode >= 500 || toSignIn):
				t.Errorf("%q at %s %s: got %d", p.who, r.Method, r.Path, a.StatusCode)
			}
		})
	}
}

func TestNoRouteIsAboutAnotherAccountsObject(t *testing.T) {
	w := newWalker(t)
	about := 0
	w.walk(w.signIn(bob), func(r handlers.Route, a answer) {
		if !strings.Contains(r.Path, ":id") {
			return
		}
		about++
		want := http.StatusNotFound
		if r.May == "operator" { // whatever it is about, and whether it is there or not
			want = http.StatusForbidden
		}
		if a.StatusCode != want {
			t.Errorf("%s %s: got %d, want %d", r.Method, r.Path, a.StatusCode, want)
		}
		if strings.Contains(a.body, "trainer") || strings.Contains(a.body, "Alpha") {
			t.Errorf("%s %s tells of the other account", r.Method, r.Path)
		}
	}, "action", "stop", "vm", w.vm, "gpu", w.gpu, "type", "u1.large", "name", "stolen")
	if about < 15 {
		t.Errorf("only %d routes are about an object", about)
	}
	a := w.signIn(alice)
	a.get("/gpus/" + w.gpu).wants(200).has(`[data-state="allocated"]`)
	a.get("/vms/" + w.vm).wants(200).says("trainer")
}

// No list, count, search or log of one account has anything of another's.
func TestNoPageTellsOfAnotherAccount(t *testing.T) {
	t.Parallel()
	w := newWalker(t)
	secrets := []string{w.gpu, w.vm, w.op, "trainer", alice, "Alpha", string(w.accounts["Alpha"])}
	for _, who := range []string{bob, olga} {
		b := w.signIn(who)
		look := func(what string, a answer) {
			for _, secret := range secrets {
				if strings.Contains(a.body, secret) {
					t.Errorf("%s tells %s of %s", what, who, secret)
				}
			}
		}
		w.walk(b, func(r handlers.Route, a answer) {
			if r.Method == http.MethodGet && !strings.Contains(r.Path, ":id") && r.May != "operator" {
				look(r.Path, a)
			}
		})
		for _, path := range []string{"/search?q=train", "/search?q=fgpu-", "/search?q=i-", "/gpus?q=fgpu", "/vms?q=train", "/activity?kind=vm", "/activity?kind=gpu"} {
			if who == bob || !strings.HasPrefix(path, "/search") { // operators find everything
				look(path, b.get(path))
			}
		}
	}
	told := 0
	w.walk(w.signIn(alice), func(r handlers.Route, a answer) {
		if r.Method == http.MethodGet && strings.Contains(a.body, "trainer") {
			told++
		}
	})
	if told < 5 {
		t.Fatalf("only %d pages tell Alpha of its own machine", told)
	}
}

func TestHEADAnswersAsGETDoesWithoutAPage(t *testing.T) {
	w := newWalker(t)
	b := w.signIn(alice)
	paths := []string{"/nowhere", "/gpus/fgpu-00000000", "/gpus?q=%00", "/search?q=" + w.gpu}
	for _, r := range handlers.Routes() {
		if r.Method == http.MethodGet && r.Path != urls.Events && r.Path != "/metrics" { // figures change with each request
			paths = append(paths, w.path(r))
		}
	}
	for _, path := range paths {
		get := b.get(path)
		req, err := http.NewRequestWithContext(t.Context(), http.MethodHead, w.pages.URL+path, nil)
		w.must(err)
		head := b.send(req)
		if head.StatusCode != get.StatusCode || head.body != "" {
			t.Errorf("HEAD %s: got %d and %d bytes, GET gives %d", path, head.StatusCode, len(head.body), get.StatusCode)
		}
		if kind := get.Header.Get("Content-Type"); get.StatusCode < 300 && head.Header.Get("Content-Type") != kind {
			t.Errorf("HEAD %s is %q, GET is %q", path, head.Header.Get("Content-Type"), kind)
		}
		if get.Header.Get("Location") != head.Header.Get("Location") {
			t.Errorf("HEAD %s leads to %q, GET to %q", path, head.Header.Get("Location"), get.Header.Get("Location"))
		}
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodHead, w.pages.URL+urls.Events, nil)
	w.must(err)
	b.send(req).wants(http.StatusMethodNotAllowed)
}

// Every route gets every odd value under every name at once; the tests of
// single fields are in hostile_test.go.
func TestNoRouteFailsOnOddInput(t *testing.T) {
	t.Parallel()
	w := newWalker(t)
	var names []string
	for name := range strings.FieldsSeq(`q model zone state sort after gpu vm name generation delete_on_vm_deletion power by type named vcores memory
		performance tenancy image region architecture use_case free compare kind before next section action restart ssh_key user_data account
		locale theme back email password idempotency_key since`) {
		names = append(names, name)
	}
	for _, value := range hostile {
		b := w.signIn(alice)
		query := url.Values{}
		var fields []string
		for _, name := range names {
			query.Set(name, value)
			fields = append(fields, name, value)
		}
		for _, r := range handlers.Routes() {
			if r.Path == urls.Events {
				continue
			}
			if r.Path == urls.Logout {
				b = w.signIn(alice)
			}
			if r.Method == http.MethodGet {
				b.get(w.path(r)+"?"+query.Encode()).survived(t, r.Path, value)
			} else {
				b.post(w.path(r), fields...).survived(t, r.Path, value)
			}
		}
	}
}
