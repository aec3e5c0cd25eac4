// Package e2e drives the console as people do: in a browser, page by page.
// Every test has a console, a database and browser contexts of its own, and
// fails on whatever the browser complains about.
package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/playwright-community/playwright-go"
)

// patience is how long anything in a browser may take, in milliseconds.
const patience = 10_000

// browser is shared by all tests of a run; starting one takes a second.
var browser playwright.Browser

func TestMain(m *testing.M) {
	code, err := withBrowser(m.Run)
	if err != nil {
		fmt.Fprintln(os.Stderr, "end-to-end tests need a browser; run make test, which sets one up:", err)
		code = 1
	}
	os.Exit(code)
}

func withBrowser(run func() int) (code int, err error) {
	driver, err := filepath.Abs("driver")
	if err != nil {
		return 0, fmt.Errorf("locate the driver: %w", err)
	}
	node, err := exec.LookPath("node")
	if err != nil {
		return 0, fmt.Errorf("find node: %w", err)
	}
	if err := os.Setenv("PLAYWRIGHT_NODEJS_PATH", node); err != nil {
		return 0, fmt.Errorf("name node: %w", err)
	}
	pw, err := playwright.Run(&playwright.RunOptions{DriverDirectory: driver, SkipInstallBrowsers: true})
	if err != nil {
		return 0, fmt.Errorf("start the driver: %w", err)
	}
	defer func() { err = errors.Join(err, pw.Stop()) }()
	browser, err = pw.Chromium.Launch(launchOptions())
	if err != nil {
		return 0, fmt.Errorf("start the browser: %w", err)
	}
	defer func() { err = errors.Join(err, browser.Close()) }()
	return run(), nil
}

// launchOptions use an installed browser; where there is none the path stays
// empty, which means Playwright's own.
func launchOptions() playwright.BrowserTypeLaunchOptions {
	o := playwright.BrowserTypeLaunchOptions{
		Args: []string{
			"--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-dev-shm-usage",
			"--disable-background-networking", "--disable-component-update", "--disable-sync",
		},
	}
	for _, name := range []string{os.Getenv("BERTH_CHROMIUM"), "chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			o.ExecutablePath = new(path)
			break
		}
	}
	return o
}

// visit says how somebody looks at the console. The zero value is a large
// screen with scripts, English, light.
type visit struct {
	base      string // URL of the console; relative addresses start here
	locale    string // as in "fr-FR"; "" is "en-GB"
	noScripts bool
	dark      bool
	width     int // pixels; 0 is 1440
	height    int // pixels; 0 is 900
}

func (v visit) options() playwright.BrowserNewContextOptions {
	o := playwright.BrowserNewContextOptions{
		Locale:            new("en-GB"),
		TimezoneId:        new("Europe/Paris"),
		JavaScriptEnabled: new(!v.noScripts),
		ColorScheme:       playwright.ColorSchemeLight,
		ReducedMotion:     playwright.ReducedMotionReduce,
		Viewport:          &playwright.Size{Width: 1440, Height: 900},
	}
	if v.base != "" {
		o.BaseURL = new(v.base)
	}
	if v.locale != "" {
		o.Locale = new(v.locale)
	}
	if v.dark {
		o.ColorScheme = playwright.ColorSchemeDark
	}
	if v.width != 0 {
		o.Viewport.Width = v.width
	}
	if v.height != 0 {
		o.Viewport.Height = v.height
	}
	return o
}

// page is a tab that remembers what went wrong in it.
type page struct {
	playwright.Page
	mu       sync.Mutex
	problems []string
	statuses []int
}

// newPage opens a tab in a browser context of its own: cookies are not shared
// with another newPage of the test. When the test ends it fails if the tab saw
// a console error, an uncaught exception, a request that got no answer, or an
// answer of 400 and more that was not announced by expectStatus. A failed test
// leaves a trace in e2e/traces.
func newPage(t *testing.T, v visit) *page {
	t.Helper()
	p := openPage(t, v)
	t.Cleanup(func() {
		for _, problem := range p.seen() {
			t.Errorf("browser: %s", problem)
		}
	})
	return p
}

// openPage is newPage without the verdict.
func openPage(t *testing.T, v visit) *page {
	t.Helper()
	context, err := browser.NewContext(v.options())
	must(t, err, "open a browser context")
	context.SetDefaultTimeout(patience)
	must(t, context.Tracing().Start(playwright.TracingStartOptions{
		Screenshots: new(true),
		Snapshots:   new(true),
	}), "start the trace")
	t.Cleanup(func() { closeContext(t, context) })

	tab, err := context.NewPage()
	must(t, err, "open a page")
	p := &page{Page: tab}
	p.watch()
	return p
}

func closeContext(t *testing.T, context playwright.BrowserContext) {
	t.Helper()
	keep := ""
	if t.Failed() {
		keep = tracePath(t.Name())
		t.Logf("trace: npx playwright show-trace e2e/%s", keep)
	}
	if err := context.Tracing().Stop(keep); err != nil {
		t.Logf("keep the trace: %v", err)
	}
	if err := context.Close(); err != nil {
		t.Errorf("close the browser context: %v", err)
	}
}

var traces struct {
	sync.Mutex
	n int
}

// tracePath names a file that no other context of the run uses.
func tracePath(test string) string {
	traces.Lock()
	defer traces.Unlock()
	traces.n++
	name := strings.NewReplacer("/", "-", " ", "_").Replace(test)
	return filepath.Join("traces", fmt.Sprintf("%s-%d.zip", name, traces.n))
}

// watch collects problems. Chromium reports answers of 400 and more as console
// errors too; those are left to the response's own event.
func (p *page) watch() {
	p.OnConsole(func(m playwright.ConsoleMessage) {
		if m.Type() == "error" && !strings.HasPrefix(m.Text(), "Failed to load resource") {
			p.note("console error: %s", m.Text())
		}
	})
	p.OnPageError(func(err error) { p.note("uncaught exception: %v", err) })
	p.OnRequestFailed(func(r playwright.Request) {
		// Leaving a page cuts off what it still waits for, its event stream first.
		if err := r.Failure(); err == nil || !strings.Contains(err.Error(), "ERR_ABORTED") {
			p.note("%s %s: %v", r.Method(), r.URL(), err)
		}
	})
	p.OnResponse(func(r playwright.Response) {
		if r.Status() >= 400 && !p.expects(r.Status()) {
			p.note("%s %s: status %d", r.Request().Method(), r.URL(), r.Status())
		}
	})
}

func (p *page) note(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.problems = append(p.problems, fmt.Sprintf(format, args...))
}

func (p *page) seen() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.problems)
}

// expectStatus announces that the test provokes answers with this status.
func (p *page) expectStatus(status int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.statuses = append(p.statuses, status)
}

func (p *page) expects(status int) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Contains(p.statuses, status)
}

// visit goes to an address and checks that the page came.
func (p *page) visit(t *testing.T, address string) {
	t.Helper()
	_, err := p.Goto(address)
	must(t, err, "go to "+address)
}

// path is the address that the tab shows, from the first slash on.
func (p *page) path(t *testing.T) string {
	t.Helper()
	u, err := url.Parse(p.URL())
	must(t, err, "read the page's address")
	return u.RequestURI()
}

func must(t *testing.T, err error, doing string) {
	t.Helper()
	if err != nil {
		t.Fatalf("%s: %v", doing, err)
	}
}

// violation is what axe says about one rule.
type violation struct {
	ID     string `json:"id"`
	Impact string `json:"impact"`
	Help   string `json:"help"`
	Nodes  []struct {
		HTML           string `json:"html"`
		Target         []any  `json:"target"`
		FailureSummary string `json:"failureSummary"`
	} `json:"nodes"`
}

func (v violation) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s (%s): %s", v.ID, v.Impact, v.Help)
	for _, n := range v.Nodes {
		fmt.Fprintf(&b, "\n  at %v\n     %s\n     %s", n.Target, n.HTML, strings.ReplaceAll(n.FailureSummary, "\n", "\n     "))
	}
	return b.String()
}

var axeSource = sync.OnceValues(func() (string, error) {
	source, err := os.ReadFile("../static/node_modules/axe-core/axe.min.js")
	return string(source), err
})

// axe fails the test for everything on the page that people with disabilities
// would stumble over, by WCAG 2.2 AA and by axe's own advice.
func (p *page) axe(t *testing.T) {
	t.Helper()
	for _, v := range p.violations(t) {
		t.Errorf("accessibility of %s: %s", p.URL(), v)
	}
}

func (p *page) violations(t *testing.T) []violation {
	t.Helper()
	source, err := axeSource()
	must(t, err, "read axe-core")
	_, err = p.Evaluate(source + "\n;undefined")
	must(t, err, "load axe-core")
	const run = `async () => JSON.stringify((await axe.run(document, {
		runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'],
		resultTypes: ['violations'],
	})).violations)`
	result, err := p.Evaluate(run)
	must(t, err, "run axe-core")
	text, ok := result.(string)
	if !ok {
		t.Fatalf("axe-core answered %T", result)
	}
	var found []violation
	must(t, json.Unmarshal([]byte(text), &found), "read what axe-core found")
	return found
}
