package e2e

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/playwright-community/playwright-go"
)

const policy = "default-src 'self'; script-src 'self'; style-src 'self'; object-src 'none'; base-uri 'none'; frame-ancestors 'none'; form-action 'self'"

// site serves one page under the console's content policy, a script, and
// answers of several kinds.
func site(t *testing.T, body, script string) string {
	t.Helper()
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Security-Policy", policy)
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		fmt.Fprintf(w, `<!doctype html><html lang="en"><head><title>Page</title><link rel="icon" href="/icon.svg">
			<script src="/page.js" defer></script></head><body><main>%s</main></body></html>`, body)
	})
	mux.HandleFunc("GET /page.js", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/javascript")
		_, _ = io.WriteString(w, script)
	})
	mux.HandleFunc("GET /icon.svg", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "image/svg+xml")
		_, _ = io.WriteString(w, `<svg xmlns="http://www.w3.org/2000/svg"/>`)
	})
	mux.HandleFunc("GET /language", func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, r.Header.Get("Accept-Language"))
	})
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return server.URL
}

func TestSoundPageRaisesNothing(t *testing.T) {
	p := newPage(t, visit{base: site(t, `<h1>Quay</h1><p>Calm.</p>`, `document.title = "Quay"`)})
	p.visit(t, "/")
	p.axe(t)
	if got := p.path(t); got != "/" {
		t.Errorf("path = %q", got)
	}
}

func TestEveryKindOfProblemIsSeen(t *testing.T) {
	tests := []struct{ name, body, script, want string }{
		{"console error", "", `console.error("leak")`, "console error: leak"},
		{"uncaught exception", "", `throw new Error("hull")`, ": hull"},
		{"missing file", `<img src="/none.png" alt="">`, "", "/none.png: status 404"},
		{"blocked by the policy", `<p style="color:red">x</p>`, "", "Content Security Policy"},
		{"no answer", "", `fetch("http://127.0.0.1:1/").catch(() => {})`, "127.0.0.1:1"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := openPage(t, visit{base: site(t, "<h1>Quay</h1>"+tt.body, tt.script)})
			_, err := p.Goto("/", playwright.PageGotoOptions{WaitUntil: playwright.WaitUntilStateNetworkidle})
			must(t, err, "go to the page")
			if got := strings.Join(p.seen(), "\n"); !strings.Contains(got, tt.want) {
				t.Errorf("saw %q, want %q", got, tt.want)
			}
		})
	}
}

func TestExpectedStatusIsNoProblem(t *testing.T) {
	p := newPage(t, visit{base: site(t, `<h1>Quay</h1>`, "")})
	p.expectStatus(http.StatusNotFound)
	p.visit(t, "/nowhere")
}

func TestAxeFindsWhatIsWrong(t *testing.T) {
	p := newPage(t, visit{base: site(t, `<h1>Quay</h1><input type="text">`, "")})
	p.visit(t, "/")
	var all strings.Builder
	for _, v := range p.violations(t) {
		all.WriteString(v.String())
	}
	if got := all.String(); !strings.Contains(got, "label (critical)") || !strings.Contains(got, `<input type="text">`) {
		t.Errorf("axe found %q, want the missing label and the element", got)
	}
}

func TestVisitSetsLanguageAndScripts(t *testing.T) {
	base := site(t, `<h1>Quay</h1>`, `document.querySelector("h1").textContent = "Changed"`)
	p := newPage(t, visit{base: base, locale: "fr-FR", noScripts: true, width: 390})
	p.visit(t, "/")
	heading, err := p.Locator("h1").TextContent()
	must(t, err, "read the heading")
	if heading != "Quay" {
		t.Errorf("a script ran: heading %q", heading)
	}
	p.visit(t, "/language")
	language, err := p.Locator("body").TextContent()
	must(t, err, "read the language")
	if !strings.HasPrefix(language, "fr-FR") {
		t.Errorf("the browser asked for %q", language)
	}
	if size := p.ViewportSize(); size.Width != 390 {
		t.Errorf("width %d, want 390", size.Width)
	}
}
