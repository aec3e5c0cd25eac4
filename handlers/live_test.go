package handlers_test

import (
	"bufio"
	"context"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"berth/handlers"
	"berth/services"
)

// stream is an open live stream.
type stream struct {
	w      *world
	events chan event
	last   event
}

type event struct{ id, name, data string }

// listen opens the live stream that a page names.
func (b *browser) listen(page string) *stream {
	b.w.t.Helper()
	address, ok := b.get(page).wants(200).Find("#stream").Attr("hx-sse:connect")
	if !ok {
		b.w.t.Fatalf("%s names no stream", page)
	}
	return b.listenAt(address, nil)
}

func (b *browser) listenAt(address string, header http.Header) *stream {
	b.w.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, b.w.pages.URL+address, nil)
	b.w.must(err)
	maps.Copy(req.Header, header)
	resp, err := b.client.Do(req)
	b.w.must(err)
	s := &stream{w: b.w, events: make(chan event, 100)}
	done := make(chan struct{})
	b.w.t.Cleanup(func() { cancel(); <-done })
	if kind := resp.Header.Get("Content-Type"); resp.StatusCode != http.StatusOK || kind != "text/event-stream" {
		b.w.t.Errorf("%s: got %d %s", address, resp.StatusCode, kind)
	}
	go func() {
		defer close(done)
		defer resp.Body.Close()
		s.read(bufio.NewScanner(resp.Body))
	}()
	s.until("tick")
	return s
}

func (s *stream) read(lines *bufio.Scanner) {
	defer close(s.events)
	var e event
	for lines.Scan() {
		field, value, _ := strings.Cut(lines.Text(), ": ")
		switch field {
		case "":
			if e.name != "" {
				s.events <- e
			}
			e = event{}
		case "id":
			e.id = value
		case "event":
			e.name = value
		case "data":
			e.data = value
		}
	}
}

// until waits for an event, and gives the names of all up to it.
func (s *stream) until(name string) []string {
	s.w.t.Helper()
	return s.untilOne(name, func(e event) bool { return e.name == name })
}

// position waits for the event that says where the stream stands: the last of
// those that were sent together.
func (s *stream) position() string {
	s.w.t.Helper()
	s.untilOne("a position", func(e event) bool { return e.id != "" })
	return s.last.id
}

func (s *stream) untilOne(name string, is func(event) bool) []string {
	s.w.t.Helper()
	var seen []string
	deadline := time.After(patience)
	for {
		select {
		case e, open := <-s.events:
			if !open {
				s.w.t.Fatalf("the stream ended after %v, want %s", seen, name)
			}
			s.last = e
			seen = append(seen, e.name)
			if is(e) {
				return seen
			}
		case <-deadline:
			s.w.t.Fatalf("%s did not come within %s, but %v", name, patience, seen)
		}
	}
}

// ends waits for the stream to be over.
func (s *stream) ends() {
	s.w.t.Helper()
	deadline := time.After(patience)
	for {
		select {
		case _, open := <-s.events:
			if !open {
				return
			}
		case <-deadline:
			s.w.t.Fatalf("the stream is open after %s", patience)
		}
	}
}

func TestAChangeReachesAnotherBrowserWithinTheTimeAllowed(t *testing.T) {
	w := newWorld(t)
	w.addHost("eu-west-2a", l40)
	s := w.signIn(vera).listen("/gpus")
	b := w.signIn(alice)
	gpu := idIn(b.post("/gpus", "model", "nvidia-l40", "zone", "eu-west-2a").leads("/gpus/"))
	start := time.Now()
	seen := s.until("catalog")
	if took := time.Since(start); took > 300*time.Millisecond {
		t.Errorf("the change took %s", took)
	}
	for _, name := range []string{"gpus", "gpu-" + gpu, "activity"} {
		if !slices.Contains(seen, name) {
			t.Errorf("got %v, want %s among them", seen, name)
		}
	}
	if s.last.data == "" {
		t.Errorf("got %+v, want data: events without are dropped", s.last)
	}
}

func TestOfOtherAccountsOnlyAvailabilityIsTold(t *testing.T) {
	w := newWorld(t)
	w.addHost("eu-west-2a", l40)
	tenant, operator := w.signIn(bob).listen("/gpus"), w.signIn(olga).listen("/catalog")
	gpu := w.signIn(alice).post("/gpus", "model", "nvidia-l40", "zone", "eu-west-2a").leads("/gpus/")
	for _, name := range tenant.until("catalog") {
		if name != "catalog" {
			t.Errorf("another tenant is told %s", name)
		}
	}
	operator.until("fleet")
	w.signIn(alice).post(gpu+"/rename", "name", "secret").leads(gpu)
	w.signIn(alice).post(gpu + "/release").leads(gpu)
	for _, name := range tenant.until("catalog") {
		if name != "catalog" {
			t.Errorf("another tenant is told %s", name)
		}
	}
}

func TestNothingIsMissedBetweenAPageAndItsStream(t *testing.T) {
	w := newWorld(t)
	w.addHost("eu-west-2a", l40, l40)
	b := w.signIn(alice)
	address, _ := b.get("/gpus").Find("#stream").Attr("hx-sse:connect")
	b.post("/gpus", "model", "nvidia-l40", "zone", "eu-west-2a").leads("/gpus/")
	s := b.listenAt(address, nil)
	s.until("gpus")
	at := s.position()
	b.post("/gpus", "model", "nvidia-l40", "zone", "eu-west-2a").leads("/gpus/")
	b.listenAt("/events", http.Header{"Last-Event-Id": {at}}).until("gpus")
	b.listenAt("/events?since=nonsense.1", nil).until("refresh")
}

func TestTheStreamEndsWithItsSession(t *testing.T) {
	w := newWorld(t)
	b := w.signIn(alice)
	s := b.listen("/gpus")
	b.post("/logout").leads("/login")
	s.until("session-ended")
	s.ends()
	if a := b.get("/events"); a.StatusCode != http.StatusUnauthorized || a.Header.Get("HX-Redirect") != "/login" {
		t.Errorf("a stream without a session: got %d, HX-Redirect %q", a.StatusCode, a.Header.Get("HX-Redirect"))
	}
}

func TestTheHeartbeatFollowsWhatTheSessionBecame(t *testing.T) {
	w := newWorld(t, func(o *handlers.Options) { o.Heartbeat = 20 * time.Millisecond })
	w.addHost("eu-west-2a", l40)
	b := w.signIn(alice)
	s := b.listen("/gpus")
	s.until("tick")
	s.until("tick")

	x, err := w.tenancy.SignIn(t.Context(), alice, password)
	w.must(err)
	w.must(w.tenancy.AddMember(t.Context(), w.accounts["Beta"], x.User, services.RoleMember))
	b.post("/session/account", "account", string(w.accounts["Beta"])).leads("/")
	s.until("refresh")
	w.signIn(bob).post("/gpus", "model", "nvidia-l40", "zone", "eu-west-2a").leads("/gpus/")
	s.until("gpus")

	// Sessions may also end in the database, without an announcement.
	w.must(w.db.DeleteStale(t.Context(), time.Now().Add(1000*time.Hour)))
	s.until("session-ended")
	s.ends()
}

func TestStreamsOutliveTheServersTimeLimitsAndEndWithIt(t *testing.T) {
	limit := 400 * time.Millisecond
	w := newWorldReading(t, limit, func(o *handlers.Options) { o.Heartbeat, o.Timeout = 30*time.Millisecond, limit })
	b := w.signIn(alice)
	start := time.Now()
	s := b.listen("/gpus")
	for time.Since(start) < 2*limit {
		s.until("tick")
	}
	w.stop()
	s.ends()
}

func TestManyChangesAtOnceAreOneMessageOfEachKind(t *testing.T) {
	w := newWorld(t)
	w.addHost("eu-west-2a", l40, l40, l40, l40)
	b := w.signIn(alice)
	var ids []string
	for range 4 {
		ids = append(ids, idIn(b.post("/gpus", "model", "nvidia-l40", "zone", "eu-west-2a").leads("/gpus/")))
	}
	s := b.listen("/gpus")
	b.post("/gpus/bulk", "action", "release", "gpu", ids[0], "gpu", ids[1], "gpu", ids[2], "gpu", ids[3]).leads("/gpus")
	heard := map[string]int{}
	for _, id := range ids {
		if heard["gpu-"+id] == 0 {
			for _, name := range s.until("gpu-" + id) {
				heard[name]++
			}
		}
	}
	if heard["gpus"] >= 4 {
		t.Errorf("four changes were told one by one: %v", heard)
	}
}
