// Package webtest renders views in tests and checks what holds for every page:
// nothing that the security policy refuses, no text that was never translated,
// labels for all fields, identifiers that are unique.
package webtest

import (
	"context"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/PuerkitoBio/goquery"
	"github.com/a-h/templ"

	"berth/services"
	"berth/web/i18n"
	"berth/web/layout"
	"berth/web/locales"
)

// Now is when the pages of tests are rendered.
var Now = time.Date(2025, 12, 1, 14, 2, 31, 0, time.UTC)

// Frame is a frame for pages of tests.
func Frame() layout.Frame {
	return layout.Frame{
		Assets: layout.Assets{CSS: "/static/css/app.css", HTMX: "/static/vendor/htmx.js",
			App: "/static/js/app.js", Icon: "/static/img/berth.svg", Font: "/static/fonts/inter-latin.woff2"},
		Path: "/gpus?state=attached", Now: Now,
	}
}

// Shell is a frame for pages of tests whose user owns an account.
func Shell() layout.Shell {
	account := layout.AccountChoice{ID: "acc-00000001", Name: "Tenant <A>", Role: services.RoleOwner}
	return layout.Shell{
		Frame: Frame(), Email: "tenant-a@lab.test", Account: account,
		Accounts: []layout.AccountChoice{account, {ID: "acc-00000002", Name: "Tenant B", Role: services.RoleViewer}},
		Regions:  []string{"eu-west-2", "hikube"}, Counts: layout.Counts{GPUs: 12, Waiting: 2, VMs: 7},
	}
}

// Render renders a view in a language and checks it. A fragment is rendered
// like a page.
func Render(t *testing.T, c templ.Component, l i18n.Locale) *goquery.Document {
	t.Helper()
	var b strings.Builder
	if err := c.Render(i18n.With(context.Background(), l), &b); err != nil {
		t.Fatalf("render: %v", err)
	}
	doc, err := goquery.NewDocumentFromReader(strings.NewReader(b.String()))
	if err != nil {
		t.Fatalf("parse: %v", err)
	}
	check(t, doc)
	return doc
}

// Both renders a view in both languages and gives the English one.
func Both(t *testing.T, c templ.Component) *goquery.Document {
	t.Helper()
	Render(t, c, i18n.French)
	return Render(t, c, i18n.English)
}

// Text is the text of a selection with its white space collapsed.
func Text(s *goquery.Selection) string { return strings.Join(strings.Fields(s.Text()), " ") }

func check(t *testing.T, doc *goquery.Document) {
	t.Helper()
	checkPolicy(t, doc)
	checkIDs(t, doc)
	checkLabels(t, doc)
	checkTexts(t, doc)
	checkForms(t, doc)
}

// checkPolicy finds what the Content Security Policy would refuse.
func checkPolicy(t *testing.T, doc *goquery.Document) {
	t.Helper()
	doc.Find("*").Each(func(_ int, s *goquery.Selection) {
		for _, a := range s.Get(0).Attr {
			switch {
			case a.Key == "style", strings.HasPrefix(a.Key, "on"), strings.HasPrefix(a.Key, "hx-on"):
				t.Errorf("<%s> has the attribute %s", goquery.NodeName(s), a.Key)
			case strings.HasPrefix(strings.TrimSpace(a.Val), "js:"), strings.HasPrefix(strings.TrimSpace(a.Val), "javascript:"):
				t.Errorf("<%s> has code in %s", goquery.NodeName(s), a.Key)
			}
		}
	})
	if doc.Find("style, script:not([src])").Length() > 0 {
		t.Error("the page has an inline style or script")
	}
}

func checkIDs(t *testing.T, doc *goquery.Document) {
	t.Helper()
	seen := map[string]bool{}
	doc.Find("[id]").Each(func(_ int, s *goquery.Selection) {
		id := s.AttrOr("id", "")
		if seen[id] {
			t.Errorf("the id %q stands twice", id)
		}
		seen[id] = true
	})
	for _, attribute := range []string{"aria-describedby", "aria-labelledby", "for", "popovertarget"} {
		doc.Find("[" + attribute + "]").Each(func(_ int, s *goquery.Selection) {
			for id := range strings.FieldsSeq(s.AttrOr(attribute, "")) {
				if !seen[id] && doc.Find("body.app, body.plain").Length() > 0 {
					t.Errorf("%s names %q, which is not there", attribute, id)
				}
			}
		})
	}
}

func checkLabels(t *testing.T, doc *goquery.Document) {
	t.Helper()
	doc.Find("input:not([type=hidden]), select, textarea").Each(func(_ int, s *goquery.Selection) {
		id := s.AttrOr("id", "-")
		if s.AttrOr("aria-label", "") == "" && s.Closest("label").Length() == 0 && doc.Find(`label[for="`+id+`"]`).Length() == 0 {
			t.Errorf("the field %q has no label", s.AttrOr("name", id))
		}
	})
	doc.Find("button, a, summary").Each(func(_ int, s *goquery.Selection) {
		if Text(s) == "" && s.AttrOr("aria-label", "") == "" {
			html, _ := goquery.OuterHtml(s)
			t.Errorf("nothing says what this does: %s", html)
		}
	})
}

// untranslated is what a missing text leaves: its key. Keys begin with a table
// of the locale files.
var untranslated = regexp.MustCompile(`\b(` + strings.Join(tables(), "|") + `)\.[a-z][a-z_-]+(\.[a-z_-]+)*\b`)

// tables lists the first words of all keys.
func tables() []string {
	names := map[string]bool{}
	entries, err := locales.Files.ReadDir(".")
	if err != nil {
		panic(err) // they are embedded
	}
	for _, e := range entries {
		text, err := locales.Files.ReadFile(e.Name())
		if err != nil {
			panic(err)
		}
		for _, m := range table.FindAllSubmatch(text, -1) {
			names[string(m[1])] = true
		}
	}
	return slices.Sorted(maps.Keys(names))
}

var table = regexp.MustCompile(`(?m)^\[([a-z-]+)`)

func checkTexts(t *testing.T, doc *goquery.Document) {
	t.Helper()
	words := doc.Clone()
	words.Find("script, code").Remove()
	for _, found := range untranslated.FindAllString(words.Text(), -1) {
		t.Errorf("%q was not translated", found)
	}
	doc.Find("[title], [aria-label], [placeholder]").Each(func(_ int, s *goquery.Selection) {
		for _, a := range []string{"title", "aria-label", "placeholder"} {
			if v, ok := s.Attr(a); ok && (v == "" || untranslated.MatchString(v)) {
				t.Errorf("%s is %q", a, v)
			}
		}
	})
	if strings.Contains(doc.Text(), "<no value>") || strings.Contains(doc.Text(), "{{") {
		t.Error("a text has an unfilled place")
	}
}

// checkForms finds forms that would not work without JavaScript.
func checkForms(t *testing.T, doc *goquery.Document) {
	t.Helper()
	doc.Find("form").Each(func(_ int, s *goquery.Selection) {
		if s.AttrOr("action", "") == "" {
			t.Errorf("a form has no action")
		}
		if s.Find("form").Length() > 0 {
			t.Errorf("the form %s has another within", s.AttrOr("action", ""))
		}
		if post, ok := s.Attr("hx-post"); ok && post != s.AttrOr("action", "") {
			t.Errorf("the form %s is posted to %s by scripts", s.AttrOr("action", ""), post)
		}
	})
}
