package layout_test

import (
	"testing"

	"berth/services"
	"berth/web/components"
	"berth/web/i18n"
	"berth/web/layout"
	"berth/web/webtest"
)

func TestPageHasItsLandmarksAndTheStream(t *testing.T) {
	doc := webtest.Both(t, layout.Page(webtest.Shell(), "Page", layout.SectionGPUs))
	for _, part := range []string{"header", "main#main", "nav#nav", "a.skip[href='#main']", "#live", "form[role=search][action='/search']"} {
		if doc.Find(part).Length() != 1 {
			t.Errorf("%s stands %d times", part, doc.Find(part).Length())
		}
	}
	if got := doc.Find("#stream").AttrOr("hx-sse:connect", ""); got != "/events" {
		t.Errorf("the stream is %q", got)
	}
	if got := doc.Find("nav#nav [aria-current]").AttrOr("href", ""); got != "/gpus" {
		t.Errorf("the present section is %q", got)
	}
	if got := webtest.Text(doc.Find("title")); got != "Page · Berth" {
		t.Errorf("title %q", got)
	}
}

func TestEverySwitchIsAForm(t *testing.T) {
	doc := webtest.Both(t, layout.Page(webtest.Shell(), "Page", layout.SectionNone))
	for action, values := range map[string]int{
		"/session/account": 2, "/session/region": 3, "/session/locale": 2, "/session/theme": 3, "/logout": 1,
	} {
		form := doc.Find(`form[method=post][action="` + action + `"]`)
		if form.Length() != 1 || form.Find("button[type=submit]").Length() != values {
			t.Errorf("%s: %d forms, %d buttons; want one with %d", action, form.Length(), form.Find("button").Length(), values)
		}
	}
	if got := doc.Find(`form[action="/session/locale"] [name=back]`).AttrOr("value", ""); got != webtest.Frame().Path {
		t.Errorf("the language switch leads back to %q", got)
	}
}

func TestFleetIsForAdminsOnly(t *testing.T) {
	s := webtest.Shell()
	if webtest.Render(t, layout.Page(s, "Page", layout.SectionNone), i18n.English).Find(`nav a[href="/admin"]`).Length() != 0 {
		t.Error("a tenant sees the fleet")
	}
	s.Admin = true
	if webtest.Render(t, layout.Page(s, "Page", layout.SectionFleet), i18n.English).Find(`nav a[href="/admin"][aria-current]`).Length() != 1 {
		t.Error("an admin does not see the fleet")
	}
}

func TestThemeAndLanguageAreOnTheDocument(t *testing.T) {
	s := webtest.Shell()
	for theme, want := range map[layout.Theme]string{layout.ThemeSystem: "", layout.ThemeLight: "berth-light", layout.ThemeDark: "berth-dark"} {
		s.Theme = theme
		html := webtest.Render(t, layout.Page(s, "Page", layout.SectionNone), i18n.French).Find("html")
		if html.AttrOr("data-theme", "") != want || html.AttrOr("lang", "") != "fr" {
			t.Errorf("%s: theme %q, language %q", theme, html.AttrOr("data-theme", ""), html.AttrOr("lang", ""))
		}
	}
}

func TestInitialsComeFromTheAddress(t *testing.T) {
	for email, want := range map[string]string{"tenant-a@lab.test": "TA", "zoé@x": "Z", "": "", "a.b.c@x": "AB", "...@x": ""} {
		if got := (layout.Shell{Email: email}).Initials(); got != want {
			t.Errorf("%q: %q, want %q", email, got, want)
		}
	}
}

func TestNoticeIsShownOnce(t *testing.T) {
	s := webtest.Shell()
	s.Notice = layout.Notice{Key: "error.required", Tone: components.ToneBad}
	doc := webtest.Both(t, layout.Page(s, "Page", layout.SectionNone))
	if doc.Find(`.notice [data-tone=bad]`).Length() != 1 {
		t.Error("the notice does not show")
	}
	if !services.RoleOwner.CanWrite() || !s.CanWrite() {
		t.Error("an owner may write")
	}
}
