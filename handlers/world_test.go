package handlers_test

import (
	"context"
	"crypto/tls"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/PuerkitoBio/goquery"
	"github.com/alexedwards/argon2id"

	"berth/db"
	"berth/db/dbtest"
	"berth/handlers"
	"berth/services"
	"berth/services/activity"
	"berth/services/catalog"
	"berth/services/compute"
	"berth/services/fleet"
	"berth/services/tenancy"
)

// Sign-ins of the world, all with the same password.
const (
	alice    = "alice@example.test" // owner of Alpha
	vera     = "vera@example.test"  // viewer in Alpha
	bob      = "bob@example.test"   // owner of Beta
	olga     = "olga@example.test"  // operator of the platform, member of no account
	password = "correct horse"
)

// cheap hashing keeps the tests fast; what it protects is made up.
var cheap = &argon2id.Params{Memory: 8, Iterations: 1, Parallelism: 1, SaltLength: 16, KeyLength: 16}

// world is a whole console on ports of its own, with a real Postgres.
type world struct {
	t        testing.TB
	db       *db.DB
	compute  *compute.Service
	fleet    *fleet.Service
	tenancy  *tenancy.Service
	pages    *httptest.Server
	agents   *httptest.Server
	log      *journal
	accounts map[string]services.AccountID
	stop     context.CancelFunc // tells the console to end
	reading  time.Duration      // time limit of servers on reading a request; 0: none
}

// journal keeps what the console logs.
type journal struct {
	mu   sync.Mutex
	text strings.Builder
}

func (j *journal) Write(p []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.Write(p)
}

func (j *journal) String() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.String()
}

func newWorld(t testing.TB, adjust ...func(*handlers.Options)) *world {
	t.Helper()
	return newWorldReading(t, 0, adjust...)
}

// newWorldReading is newWorld with a time limit on the reading of requests.
func newWorldReading(t testing.TB, limit time.Duration, adjust ...func(*handlers.Options)) *world {
	t.Helper()
	w := &world{t: t, db: dbtest.Open(t), log: &journal{}, accounts: map[string]services.AccountID{}, reading: limit}
	log := slog.New(slog.NewJSONHandler(w.log, nil))
	ctx := t.Context()
	w.must(w.db.Tx(ctx, func(tx *db.Tx) error { return tx.AddReference(ctx, catalog.Published()) }))
	w.compute = compute.New(w.db, compute.Options{Log: log})
	stream := activity.New(w.db, log)
	var err error
	w.tenancy, err = tenancy.New(w.db, tenancy.Options{Params: cheap})
	w.must(err)
	w.fleet, err = fleet.New(ctx, w.db, w.compute, fleet.Options{Log: log})
	w.must(err)
	o := handlers.Options{
		Compute: w.compute, Fleet: w.fleet, Tenancy: w.tenancy, Activity: stream, Database: w.db, Log: log, Version: "test",
	}
	for _, a := range adjust {
		a(&o)
	}
	w.serve(o)
	w.listen(stream)
	w.people()
	return w
}

// listen passes announcements on for as long as the test runs, and waits until
// the first has come: from then on nothing is missed.
func (w *world) listen(stream *activity.Service) {
	ctx, cancel := context.WithCancel(context.Background())
	first, stop := stream.Subscribe(func(activity.Change) bool { return false })
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- stream.Run(ctx) }()
	w.t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			w.t.Errorf("listen to announcements: %v", err)
		}
	})
	select {
	case <-first:
	case <-time.After(patience):
		w.t.Fatal("no announcement says that the stream has begun")
	}
}

// patience is how long anything may take before a test gives up.
const patience = 10 * time.Second

func (w *world) serve(o handlers.Options) {
	w.t.Helper()
	h, err := handlers.New(o)
	w.must(err)
	var ctx context.Context
	ctx, w.stop = context.WithCancel(context.Background())
	w.pages = httptest.NewUnstartedServer(h.Pages())
	w.pages.Config.BaseContext = func(net.Listener) context.Context { return ctx }
	w.pages.Config.ReadTimeout = w.reading
	w.pages.Start()
	w.agents = httptest.NewUnstartedServer(h.Agents())
	w.agents.Config.BaseContext = func(net.Listener) context.Context { return ctx }
	w.agents.Listener = tls.NewListener(w.agents.Listener, w.fleet.TLS([]string{"127.0.0.1"}))
	w.agents.Config.ReadTimeout = w.reading
	w.agents.Start()
	w.agents.URL = strings.Replace(w.agents.URL, "http:", "https:", 1)
	w.t.Cleanup(func() {
		w.stop()
		w.pages.Close()
		w.agents.Close()
	})
}

func (w *world) people() {
	w.t.Helper()
	ctx := w.t.Context()
	ids := map[string]services.UserID{}
	for _, email := range []string{alice, vera, bob, olga} {
		id, err := w.tenancy.EnsureUser(ctx, email, password, email == olga)
		w.must(err)
		ids[email] = id
	}
	for name, owner := range map[string]string{"Alpha": alice, "Beta": bob} {
		id, err := w.tenancy.CreateAccount(ctx, name, ids[owner])
		w.must(err)
		w.accounts[name] = id
		four := 4
		for _, model := range []string{"nvidia-l40", "nvidia-h100", "nvidia-a100-80"} {
			w.must(w.tenancy.SetQuota(ctx, id, "eu-west-2", model, &four))
		}
	}
	w.must(w.tenancy.AddMember(ctx, w.accounts["Alpha"], ids[vera], services.RoleViewer))
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatalf("%v", err)
	}
}

// eventually polls until a condition holds.
func (w *world) eventually(what string, holds func() bool) {
	w.t.Helper()
	deadline := time.After(patience)
	poll := time.NewTicker(5 * time.Millisecond)
	defer poll.Stop()
	for !holds() {
		select {
		case <-deadline:
			w.t.Fatalf("%s: not within %s", what, patience)
		case <-poll.C:
		}
	}
}

// browser follows no redirect by itself, so that tests see them.
type browser struct {
	w      *world
	client *http.Client
	header http.Header // of every request
}

func (w *world) visitor() *browser {
	jar, err := cookiejar.New(nil)
	w.must(err)
	return &browser{w: w, header: http.Header{}, client: &http.Client{
		Jar: jar, Transport: w.pages.Client().Transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// signIn opens a browser in which somebody is signed in.
func (w *world) signIn(email string) *browser {
	w.t.Helper()
	b := w.visitor()
	b.post("/login", "email", email, "password", password).wants(http.StatusSeeOther)
	return b
}

// answer is what came back, with its page.
type answer struct {
	w    *world
	what string
	*http.Response
	body string
	*goquery.Document
}

func (b *browser) get(path string) answer {
	b.w.t.Helper()
	req, err := http.NewRequest(http.MethodGet, b.w.pages.URL+path, nil)
	b.w.must(err)
	return b.send(req)
}

// post sends a form of names and values in turn.
func (b *browser) post(path string, fields ...string) answer {
	b.w.t.Helper()
	f := url.Values{}
	for i := 0; i+1 < len(fields); i += 2 {
		f.Add(fields[i], fields[i+1])
	}
	req, err := http.NewRequest(http.MethodPost, b.w.pages.URL+path, strings.NewReader(f.Encode()))
	b.w.must(err)
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	return b.send(req)
}

func (b *browser) send(req *http.Request) answer {
	b.w.t.Helper()
	maps.Copy(req.Header, b.header)
	resp, err := b.client.Do(req)
	b.w.must(err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	b.w.must(err)
	doc, err := goquery.NewDocumentFromReader(strings.NewReader(string(body)))
	b.w.must(err)
	return answer{w: b.w, what: req.Method + " " + req.URL.Path, Response: resp, body: string(body), Document: doc}
}

// wants checks the status.
func (a answer) wants(status int) answer {
	a.w.t.Helper()
	if a.StatusCode != status {
		a.w.t.Fatalf("%s: got %d, want %d\n%.2000s", a.what, a.StatusCode, status, a.body)
	}
	return a
}

// leads checks a redirect, and gives where it leads.
func (a answer) leads(prefix string) string {
	a.w.t.Helper()
	a.wants(http.StatusSeeOther)
	to := a.Header.Get("Location")
	if !strings.HasPrefix(to, prefix) {
		a.w.t.Fatalf("%s leads to %q, want %q...", a.what, to, prefix)
	}
	return to
}

// has checks that a selector finds something.
func (a answer) has(selector string) answer {
	a.w.t.Helper()
	if a.Find(selector).Length() == 0 {
		a.w.t.Errorf("%s (%d): nothing matches %s\n%.3000s", a.what, a.StatusCode, selector, a.body)
	}
	return a
}

// lacks checks that a selector finds nothing.
func (a answer) lacks(selector string) answer {
	a.w.t.Helper()
	if a.Find(selector).Length() > 0 {
		a.w.t.Errorf("%s (%d): %s is there", a.what, a.StatusCode, selector)
	}
	return a
}

// says checks that the page's text holds something.
func (a answer) says(text string) answer {
	a.w.t.Helper()
	if !strings.Contains(a.Find("body").Text(), text) {
		a.w.t.Errorf("%s (%d): the page does not say %q", a.what, a.StatusCode, text)
	}
	return a
}
