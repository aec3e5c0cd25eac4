package handlers

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
	"unicode"

	"github.com/labstack/echo/v4"
	"github.com/prometheus/client_golang/prometheus"

	"berth/services"
	"berth/services/activity"
	"berth/services/tenancy"
	"berth/web/components"
	"berth/web/urls"
)

// announcer passes on what changes.
type announcer interface {
	SubscribeSince(position string, want func(activity.Change) bool) (changes <-chan activity.Change, stop func())
}

// liveStream tells an open tab what to fetch anew.
type liveStream struct {
	changes announcer
	doors   doorkeeper
	beat    time.Duration
	open    prometheus.Gauge
}

func (s *site) live() liveStream {
	return liveStream{changes: s.Activity, doors: s.doors, beat: s.Heartbeat, open: s.metrics.streams}
}

const (
	// gather is how long changes are collected, so that many at once are one
	// message of each kind. A change must show elsewhere within 300 ms.
	gather = 30 * time.Millisecond
	// writeWait is how long a client may take to accept a message.
	writeWait = 10 * time.Second
)

// follow streams until the client leaves or its session ends. A client that
// was here before names the last message it got, a new one where the stream
// stood when its page was read.
func (l liveStream) follow(r *request) error {
	l.open.Inc()
	defer l.open.Dec()
	w := newEventWriter(r.Response(), since(r))
	if err := w.begin(); err != nil {
		return services.Wrap("begin live stream", err)
	}
	w.add(components.EventTick, "0")
	if w.send() != nil {
		return nil // the client has left
	}
	for x := r.session; ; {
		next, err := l.watch(r.ctx(), w, x)
		if err != nil || next == nil {
			return err
		}
		x = *next
		w.add(components.EventRefresh, string(x.Account)) // it looks at something else now
		if w.send() != nil {
			return nil
		}
	}
}

func since(r *request) string {
	position := r.Request().Header.Get("Last-Event-ID")
	if position == "" {
		position = r.QueryParam("since")
	}
	if strings.ContainsFunc(position, unicode.IsControl) {
		return ""
	}
	return position
}

// watch streams for as long as the session stays as it is; it gives the new
// one where it changed, nil where the stream is over. Only what went wrong on
// this side is an error.
func (l liveStream) watch(ctx context.Context, w *eventWriter, x tenancy.Session) (*tenancy.Session, error) {
	a := audienceOf(x)
	changes, stop := l.changes.SubscribeSince(w.position, a.wants)
	defer stop()
	beat := time.NewTicker(l.beat)
	defer beat.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil, nil
		case c := <-changes:
			if !l.pass(ctx, w, a, c, changes) {
				return nil, nil
			}
		case at := <-beat.C:
			now, err := l.doors.Peek(ctx, x.Token)
			switch {
			case services.KindOf(err) == services.KindUnauthorized:
				w.farewell()
				return nil, nil
			case err != nil && ctx.Err() == nil:
				return nil, err
			case err == nil && audienceOf(now) != a:
				return &now, nil
			}
			w.add(components.EventTick, at.UTC().Format(time.RFC3339))
			if w.send() != nil {
				return nil, nil
			}
		}
	}
}

// pass sends a change together with those that follow at once. It reports
// whether the stream goes on.
func (l liveStream) pass(ctx context.Context, w *eventWriter, a audience, c activity.Change, more <-chan activity.Change) bool {
	full := time.NewTimer(gather)
	defer full.Stop()
	for {
		if c.Ended != "" {
			w.farewell()
			return false
		}
		w.position = c.Position
		for _, m := range a.messages(c) {
			w.add(m.name, m.data)
		}
		select {
		case <-ctx.Done():
			return false
		case c = <-more:
		case <-full.C:
			return w.send() == nil
		}
	}
}

// audience is who looks at a stream.
type audience struct {
	account services.AccountID
	role    services.Role
	admin   bool
	session string // hash of its token
}

func audienceOf(x tenancy.Session) audience {
	return audience{account: x.Account, role: x.Role, admin: x.Admin, session: tenancy.SessionHash(x.Token)}
}

func (a audience) wants(c activity.Change) bool {
	return c.Ended == a.session || c.Ended == "" && len(a.messages(c)) > 0
}

// message is what the stream says: that a kind of part, or an object, may look
// different now.
type message struct{ name, data string }

// messages are what a change means for whoever looks: all of it within their
// account, and of other accounts' no more than that availability changed.
func (a audience) messages(c activity.Change) []message {
	if c.Missed {
		return []message{{components.EventRefresh, c.Position}}
	}
	if c.Agent != "" || c.Ended != "" {
		return nil
	}
	var m []message
	if c.Account != "" && c.Account == a.account {
		m = own(c)
	}
	if movesCards(c) {
		m = append(m, message{components.EventCatalog, c.Kind})
		if a.admin {
			m = append(m, message{components.EventFleet, c.Kind})
		}
	}
	if a.admin && c.Kind != "" {
		m = append(m, message{components.EventOperations, c.Kind})
	}
	return m
}

// own are the messages about the account looked at.
func own(c activity.Change) []message {
	var m []message
	if c.GPU != "" {
		m = append(m, message{components.EventGPUs, string(c.GPU)}, message{components.GPUEvent(string(c.GPU)), string(c.GPU)})
	}
	if c.VM != "" {
		m = append(m, message{components.EventVMs, string(c.VM)}, message{components.VMEvent(string(c.VM)), string(c.VM)})
	}
	if c.Kind != seenOnly {
		m = append(m, message{components.EventActivity, c.Kind})
	}
	return m
}

// seenOnly is the kind of an announcement that no event stands behind.
const seenOnly = "vm.seen"

// movesCards reports whether a change makes cards free or takes them, or changes
// what operators see of the fleet.
func movesCards(c activity.Change) bool {
	switch c.Kind {
	case "gpu.allocated", "gpu.released", "gpu.released-with-vm", "gpu.force-released", "gpu.built-in", "vm.deleted":
		return true
	}
	return strings.HasPrefix(c.Kind, "card.") || strings.HasPrefix(c.Kind, "host.") || strings.HasPrefix(c.Kind, "agent.")
}

// eventWriter writes server-sent events, each name once in a message.
type eventWriter struct {
	w        http.ResponseWriter
	control  *http.ResponseController
	position string // the id of the last message
	pending  []message
}

func newEventWriter(w *echo.Response, position string) *eventWriter {
	return &eventWriter{w: w, control: http.NewResponseController(w), position: position}
}

// begin answers the request. The stream outlives the server's time limits: each
// write gets one of its own.
func (w *eventWriter) begin() error {
	if err := w.control.SetReadDeadline(time.Time{}); err != nil {
		return err
	}
	h := w.w.Header()
	h.Set(echo.HeaderContentType, "text/event-stream")
	h.Set("X-Accel-Buffering", "no")
	w.w.WriteHeader(http.StatusOK)
	return nil
}

// add keeps a message for the next send; a later one of the same name replaces it.
func (w *eventWriter) add(name, data string) {
	for i, m := range w.pending {
		if m.name == name {
			w.pending[i].data = data
			return
		}
	}
	w.pending = append(w.pending, message{name, data})
}

// send writes what was added. Only the last message carries the position: who
// got less than all of them is told again.
func (w *eventWriter) send() error {
	var b strings.Builder
	for i, m := range w.pending {
		if i == len(w.pending)-1 {
			fmt.Fprintf(&b, "id: %s\n", w.position)
		}
		fmt.Fprintf(&b, "event: %s\ndata: %s\n\n", m.name, m.data)
	}
	w.pending = w.pending[:0]
	return w.write(b.String())
}

// farewell tells the tab that its session is over. That nobody hears it any
// more harms nobody.
func (w *eventWriter) farewell() {
	w.pending = []message{{components.EventSessionEnded, urls.Login}}
	_ = w.send()
}

func (w *eventWriter) write(text string) error {
	if err := w.control.SetWriteDeadline(time.Now().Add(writeWait)); err != nil {
		return err
	}
	if _, err := io.WriteString(w.w, text); err != nil {
		return err
	}
	return w.control.Flush()
}
