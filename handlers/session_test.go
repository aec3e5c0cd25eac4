package handlers_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"berth/handlers"
)

func TestSigningInLeadsToWhereOneWanted(t *testing.T) {
	w := newWorld(t)
	b := w.visitor()
	to := b.get("/gpus?state=attached&q=a%26b").leads("/login?next=")
	b.get(to).wants(200).has(`form[action="/login"] input[name=next][value="/gpus?state=attached&q=a%26b"]`).lacks(".errors")
	b.post("/login", "email", alice, "password", "wrong", "next", "/gpus").wants(http.StatusUnauthorized).
		has(`[data-error="bad-credentials"]`).has(`input[name=email][value="` + alice + `"]`).has(`input[name=next][value="/gpus"]`)
	if got := b.post("/login", "email", " "+strings.ToUpper(alice), "password", password, "next", "/gpus?state=attached").leads("/gpus"); got != "/gpus?state=attached" {
		t.Errorf("leads to %s", got)
	}
	b.get("/gpus").wants(200).says("Alpha")
	b.get("/login?next=/vms").leads("/vms") // is signed in already
}

func TestSignInLeadsNowhereElse(t *testing.T) {
	w := newWorld(t)
	for _, next := range []string{
		"https://elsewhere.test/", "//elsewhere.test", `/\elsewhere.test`, `\\elsewhere.test`, "javascript:alert(1)", "gpus", "/\t/elsewhere.test", "", "/%zz",
	} {
		if got := w.visitor().post("/login", "email", alice, "password", password, "next", next).leads("/"); got != "/" {
			t.Errorf("next=%q leads to %q", next, got)
		}
	}
}

func TestTheSessionCookieIsForServersOnly(t *testing.T) {
	for name, secure := range map[string]bool{"berth_session": false, "__Host-berth_session": true} {
		w := newWorld(t, func(o *handlers.Options) { o.Secure = secure })
		a := w.visitor().post("/login", "email", alice, "password", password).wants(http.StatusSeeOther)
		var found bool
		for _, c := range a.Cookies() {
			if c.Name == name {
				found = c.HttpOnly && c.SameSite == http.SameSiteLaxMode && c.Secure == secure && c.Path == "/" && c.Domain == ""
			}
		}
		if !found {
			t.Errorf("secure %v: got cookies %v", secure, a.Cookies())
		}
	}
}

func TestSigningInAnewEndsTheFormerSession(t *testing.T) {
	w := newWorld(t)
	b := w.signIn(alice)
	former := b.client.Jar.Cookies(mustURL(w.pages.URL))
	b.post("/login", "email", bob, "password", password).leads("/")
	b.get("/").wants(200).says("Beta")
	thief := w.visitor()
	thief.client.Jar.SetCookies(mustURL(w.pages.URL), former)
	thief.get("/").leads("/login")
}

func TestSigningOut(t *testing.T) {
	w := newWorld(t)
	b := w.signIn(alice)
	copied := b.client.Jar.Cookies(mustURL(w.pages.URL))
	b.post("/logout").leads("/login")
	b.get("/gpus").leads("/login?next=")
	b.client.Jar.SetCookies(mustURL(w.pages.URL), copied)
	b.get("/gpus").leads("/login?next=")
	b.post("/logout").leads("/login")
}

func TestTooManyTriesAreThrottled(t *testing.T) {
	w := newWorld(t)
	b := w.visitor()
	for range 10 {
		b.post("/login", "email", alice, "password", "wrong").wants(http.StatusUnauthorized)
	}
	b.post("/login", "email", alice, "password", password).wants(http.StatusTooManyRequests).has(`[data-error="too-many-tries"]`)
	w.signIn(bob)
}

func TestASessionThatEndedLeadsPartsOfPagesToTheSignIn(t *testing.T) {
	w := newWorld(t)
	b := w.visitor()
	b.header.Set("HX-Request", "true")
	b.header.Set("HX-Current-URL", w.pages.URL+"/gpus?state=attached")
	for name, a := range map[string]answer{"fragment": b.get("/fragments/gpus"), "write": b.post("/gpus")} {
		a.wants(http.StatusNoContent)
		if got := a.Header.Get("HX-Redirect"); got != "/login?next=%2Fgpus%3Fstate%3Dattached" {
			t.Errorf("%s: HX-Redirect is %q", name, got)
		}
	}
	plain := w.visitor()
	plain.header.Set("Referer", w.pages.URL+"/gpus/new")
	if got := plain.post("/gpus").leads("/login"); got != "/login?next=%2Fgpus%2Fnew" {
		t.Errorf("a plain write leads to %s", got)
	}
}

func TestAccountsAreSwitchedAmongOnesOwn(t *testing.T) {
	w := newWorld(t)
	b := w.signIn(alice)
	b.post("/session/account", "account", string(w.accounts["Beta"])).wants(http.StatusNotFound)
	x, err := w.tenancy.SignIn(t.Context(), alice, password)
	w.must(err)
	w.must(w.tenancy.AddMember(t.Context(), w.accounts["Beta"], x.User, "viewer"))
	b.post("/session/account", "account", string(w.accounts["Beta"]), "back", "/gpus").leads("/gpus")
	b.get("/gpus").wants(200).lacks(`a[href="/gpus/new"]`)
	b.post("/session/region", "region", "nowhere").wants(http.StatusUnprocessableEntity)
	b.post("/session/region", "region", "hikube", "back", "https://elsewhere.test").leads("/")
	b.get("/gpus").has(`button[name=region][value=hikube][aria-current]`)
}

func TestLanguageIsTheUsersElseTheCookiesElseTheBrowsers(t *testing.T) {
	w := newWorld(t)
	lang := func(b *browser, path string) string {
		l, _ := b.get(path).Find("html").Attr("lang")
		return l
	}
	b := w.visitor()
	b.header.Set("Accept-Language", "fr-CA,fr;q=0.8,en;q=0.5")
	if got := lang(b, "/login"); got != "fr" {
		t.Errorf("by the browser: %q", got)
	}
	b.post("/session/locale", "locale", "en", "back", "/login").leads("/login")
	if got := lang(b, "/login"); got != "en" {
		t.Errorf("by the cookie: %q", got)
	}
	b.post("/login", "email", alice, "password", password).leads("/")
	b.post("/session/locale", "locale", "fr").leads("/")
	other := w.signIn(alice)
	other.header.Set("Accept-Language", "en")
	if got := lang(other, "/gpus"); got != "fr" {
		t.Errorf("by the user, in another browser: %q", got)
	}
	b.post("/session/locale", "locale", "tlh").wants(http.StatusUnprocessableEntity)
}

func TestTheThemeIsRemembered(t *testing.T) {
	w := newWorld(t)
	b := w.signIn(alice)
	b.get("/gpus").lacks("html[data-theme]")
	b.post("/session/theme", "theme", "dark", "back", "/gpus").leads("/gpus")
	b.get("/gpus").has(`html[data-theme="berth-dark"]`)
	b.post("/session/theme", "theme", "pink").wants(http.StatusUnprocessableEntity)
}

func TestOperatorsAreLedToTheFleetAndTenantsAreKeptOut(t *testing.T) {
	w := newWorld(t)
	w.signIn(olga).get("/").leads("/admin")
	w.signIn(alice).get("/admin").wants(http.StatusForbidden)
	w.signIn(olga).post("/gpus", "model", "nvidia-l40", "zone", "eu-west-2a").wants(http.StatusForbidden)
	w.signIn(olga).get("/gpus").wants(200).lacks("tr[data-id]")
}

func mustURL(text string) *url.URL {
	u, err := url.Parse(text)
	if err != nil {
		panic(err)
	}
	return u
}
