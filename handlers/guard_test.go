package handlers_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"mime/multipart"
	"net/http"
	"strings"
	"testing"
	"time"

	"berth/handlers"
)

func TestEveryPageTellsTheBrowserWhatNotToDo(t *testing.T) {
	w := newWorld(t)
	for _, a := range []answer{w.signIn(alice).get("/gpus"), w.visitor().get("/login"), w.visitor().get("/nowhere")} {
		csp := a.Header.Get("Content-Security-Policy")
		for _, part := range []string{"default-src 'self'", "script-src 'self'", "style-src 'self'", "object-src 'none'", "base-uri 'none'", "frame-ancestors 'none'", "form-action 'self'"} {
			if !strings.Contains(csp, part) {
				t.Errorf("%s: the policy %q lacks %s", a.what, csp, part)
			}
		}
		if strings.Contains(csp, "unsafe") || a.Header.Get("Cache-Control") != "no-store" || a.Header.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s: got %v", a.what, a.Header)
		}
		if len(a.Header.Get("X-Request-Id")) < 16 {
			t.Errorf("%s: request id %q", a.what, a.Header.Get("X-Request-Id"))
		}
	}
}

func TestWritesFromOtherSitesAreRefused(t *testing.T) {
	w := newWorld(t)
	w.addHost("eu-west-2a", l40)
	for name, header := range map[string]http.Header{
		"by fetch metadata": {"Sec-Fetch-Site": {"cross-site"}},
		"from a sibling":    {"Sec-Fetch-Site": {"same-site"}},
		"by origin":         {"Origin": {"https://elsewhere.test"}},
	} {
		b := w.signIn(alice)
		b.header = header
		if a := b.post("/gpus", "model", "nvidia-l40", "zone", "eu-west-2a"); a.StatusCode != http.StatusForbidden {
			t.Errorf("%s: got %d, want 403", name, a.StatusCode)
		}
		b.get("/gpus").wants(200).lacks("tr[data-id]")
	}
	b := w.signIn(alice)
	b.header.Set("Sec-Fetch-Site", "same-origin")
	b.post("/gpus", "model", "nvidia-l40", "zone", "eu-west-2a").leads("/gpus/")
}

func TestNothingIsWrittenByGET(t *testing.T) {
	w := newWorld(t)
	b := w.signIn(alice)
	for _, path := range []string{"/logout", "/session/account", "/gpus/bulk/x", "/gpus/fgpu-00000000/release"} {
		if a := b.get(path); a.StatusCode != http.StatusMethodNotAllowed && a.StatusCode != http.StatusNotFound {
			t.Errorf("GET %s: got %d", path, a.StatusCode)
		}
	}
	b.get("/gpus").wants(200)
}

// raw posts a body of a content type.
func (b *browser) raw(path, kind string, body []byte) answer {
	b.w.t.Helper()
	req, err := http.NewRequest(http.MethodPost, b.w.pages.URL+path, bytes.NewReader(body))
	b.w.must(err)
	if kind != "" {
		req.Header.Set("Content-Type", kind)
	}
	return b.send(req)
}

func TestBodiesThatAreNoFormsAreRefused(t *testing.T) {
	w := newWorld(t)
	b := w.signIn(alice)
	const urlencoded = "application/x-www-form-urlencoded"
	for name, c := range map[string]struct {
		kind   string
		body   string
		status int
	}{
		"bad escape":           {urlencoded, "model=%zz", http.StatusBadRequest},
		"NUL":                  {urlencoded, "model=%00", http.StatusBadRequest},
		"no UTF-8":             {urlencoded, "name=%ff%fe", http.StatusBadRequest},
		"no UTF-8 in a name":   {urlencoded, "%ff=x", http.StatusBadRequest},
		"JSON":                 {"application/json", `{"model":"nvidia-l40"}`, http.StatusUnsupportedMediaType},
		"no type":              {"", "model=nvidia-l40", http.StatusUnsupportedMediaType},
		"a type of garbage":    {";;", "model=nvidia-l40", http.StatusUnsupportedMediaType},
		"multipart, cut short": {"multipart/form-data; boundary=x", "--x\r\nContent-Disposition: form-data; name=\"model\"\r\n\r\n", http.StatusBadRequest},
		"too large":            {urlencoded, "name=" + strings.Repeat("x", 2<<20), http.StatusRequestEntityTooLarge},
	} {
		if a := b.raw("/gpus", c.kind, []byte(c.body)); a.StatusCode != c.status {
			t.Errorf("%s: got %d, want %d", name, a.StatusCode, c.status)
		}
	}
	// Larger than allowed without saying so.
	req, err := http.NewRequest(http.MethodPost, w.pages.URL+"/gpus", struct{ *strings.Reader }{strings.NewReader("name=" + strings.Repeat("x", 2<<20))})
	w.must(err)
	req.Header.Set("Content-Type", urlencoded)
	b.send(req).wants(http.StatusRequestEntityTooLarge)
}

func TestMultipartFormsAreFormsToo(t *testing.T) {
	w := newWorld(t)
	w.addHost("eu-west-2a", l40)
	var body bytes.Buffer
	m := multipart.NewWriter(&body)
	w.must(errors.Join(m.WriteField("model", "nvidia-l40"), m.WriteField("zone", "eu-west-2a"), m.Close()))
	w.signIn(alice).raw("/gpus", m.FormDataContentType(), body.Bytes()).leads("/gpus/")
}

func TestValuesOfTheAddressAreNoForm(t *testing.T) {
	w := newWorld(t)
	w.addHost("eu-west-2a", l40)
	w.signIn(alice).raw("/gpus?model=nvidia-l40&zone=eu-west-2a", "", nil).wants(422).has(`[data-error="required"]`)
}

func TestAddressesThatNoDatabaseTakesAreRefused(t *testing.T) {
	w := newWorld(t)
	b := w.signIn(alice)
	for _, path := range []string{"/gpus?q=%00", "/gpus?q=%ff", "/gpus?zone=%zz", "/gpus?%00=x", "/gpus?a;b", "/catalog/%00", "/gpus/%ff"} {
		if a := b.get(path); a.StatusCode != http.StatusBadRequest {
			t.Errorf("%s: got %d, want 400", path, a.StatusCode)
		}
	}
	b.get("/gpus?q='%22%25_%5C&sort='%3Bdrop&after=x&zone=%F0%9F%9A%A2").wants(200)
}

func TestFilesAreKeptByTheirVersion(t *testing.T) {
	files := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
		_, _ = w.Write([]byte("body{}"))
	})
	w := newWorld(t, func(o *handlers.Options) { o.Static = files })
	a := w.visitor().get("/static/css/app.css").wants(200)
	if got := a.Header.Get("Cache-Control"); !strings.Contains(got, "immutable") {
		t.Errorf("Cache-Control is %q", got)
	}
}

// line is the log's line for a path.
func (w *world) line(path string) map[string]any {
	w.t.Helper()
	var found map[string]any
	w.eventually("the log tells of "+path, func() bool {
		for text := range strings.Lines(w.log.String()) {
			var line map[string]any
			if json.Unmarshal([]byte(text), &line) == nil && line["msg"] == "request answered" && line["path"] == path {
				found = line
				return true
			}
		}
		return false
	})
	return found
}

func TestEachRequestIsOneLineOfTheLog(t *testing.T) {
	w := newWorld(t)
	b := w.signIn(alice)
	a := b.get("/gpus?q=private").wants(200)
	line := w.line("/gpus")
	for key, want := range map[string]any{
		"method": "GET", "route": "/gpus", "status": 200.0, "level": "INFO", "request_id": a.Header.Get("X-Request-Id"),
		"account": string(w.accounts["Alpha"]), "remote_ip": "127.0.0.1",
	} {
		if line[key] != want {
			t.Errorf("%s is %v, want %v", key, line[key], want)
		}
	}
	if line["bytes"].(float64) == 0 || line["took"] == nil || !strings.HasPrefix(line["user"].(string), "usr-") {
		t.Errorf("got %v", line)
	}
	if strings.Contains(w.log.String(), "private") || strings.Contains(w.log.String(), password) {
		t.Error("the log tells what was searched or typed")
	}
}

func TestWhatBrokeIsInTheLogAlone(t *testing.T) {
	w := newWorld(t)
	b := w.signIn(alice)
	w.must(w.db.Close())
	a := b.get("/gpus").wants(http.StatusInternalServerError)
	if !strings.Contains(a.body, a.Header.Get("X-Request-Id")) || strings.Contains(a.body, "sql") {
		t.Errorf("the page: %s", a.body)
	}
	if line := w.line("/gpus"); !strings.Contains(line["error"].(string), "database is closed") || line["level"] != "ERROR" {
		t.Errorf("got %v", line)
	}
}

// waiting is a database that never answers. It says when it was asked.
type waiting chan struct{}

func (w waiting) Ping(ctx context.Context) error {
	close(w)
	<-ctx.Done()
	return ctx.Err()
}

func TestAClientThatWentAwayIs499InTheLog(t *testing.T) {
	asked := make(waiting)
	w := newWorld(t, func(o *handlers.Options) { o.Database = asked })
	ctx, leave := context.WithCancel(t.Context())
	go func() {
		<-asked
		leave()
	}()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, w.pages.URL+"/readyz", nil)
	w.must(err)
	if resp, err := http.DefaultClient.Do(req); err == nil {
		resp.Body.Close()
		t.Fatal("got an answer")
	}
	if line := w.line("/readyz"); line["status"] != 499.0 || line["level"] != "INFO" {
		t.Errorf("got %v", line)
	}
}

func TestWhatTakesTooLongIsUnavailable(t *testing.T) {
	asked := make(waiting)
	w := newWorld(t, func(o *handlers.Options) { o.Database, o.Timeout = asked, 200*time.Millisecond })
	w.visitor().get("/readyz").wants(http.StatusServiceUnavailable)
}

func TestAPanicIsAnErrorOfOneRequest(t *testing.T) {
	w := newWorld(t, func(o *handlers.Options) {
		o.Static = http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic("secret detail") })
	})
	if a := w.visitor().get("/static/x").wants(http.StatusInternalServerError); strings.Contains(a.body, "secret") {
		t.Errorf("tells the cause: %s", a.body)
	}
	if line := w.line("/static/x"); !strings.Contains(line["error"].(string), "secret detail") || !strings.Contains(line["error"].(string), "guard_test.go") {
		t.Errorf("got %v", line)
	}
	w.visitor().get("/healthz").wants(200)
}

// broken is a database that does not answer.
type broken struct{}

func (broken) Ping(context.Context) error { return errors.New("connection refused") }

func TestReadiness(t *testing.T) {
	w := newWorld(t)
	w.visitor().get("/healthz").wants(200)
	w.visitor().get("/readyz").wants(200)
	w = newWorld(t, func(o *handlers.Options) { o.Database = broken{} })
	w.visitor().get("/healthz").wants(200)
	if a := w.visitor().get("/readyz").wants(http.StatusServiceUnavailable); strings.Contains(a.body, "refused") {
		t.Errorf("tells the cause: %s", a.body)
	}
	if line := w.line("/readyz"); line["error"] != "connection refused" || line["level"] != "ERROR" {
		t.Errorf("got %v", line)
	}
}

func TestMetricsTellOfRequests(t *testing.T) {
	w := newWorld(t)
	w.visitor().get("/healthz")
	w.visitor().get("/made/up/by/a/client")
	a := w.visitor().get("/metrics").wants(200)
	for _, want := range []string{
		`berth_request_duration_seconds_count{method="GET",route="/healthz",server="pages",status="200"} 1`, `berth_build_info{version="test"} 1`, "berth_live_streams 0",
	} {
		if !strings.Contains(a.body, want) {
			t.Errorf("the figures lack %s", want)
		}
	}
	if strings.Contains(a.body, "made/up") {
		t.Error("clients can make up routes")
	}
}
