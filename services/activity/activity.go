// Package activity is what happened, and the stream that tells open pages of it.
package activity

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"log/slog"
	"sync"

	"berth/db"
	"berth/services"
)

// Event is something that happened.
type Event = db.EventRow

// Filter narrows and pages an account's events.
type Filter = db.EventFilter

// Change tells an open page that something may look different now.
type Change struct {
	Account services.AccountID `json:"account"` // empty: concerns every account
	GPU     services.GPUID     `json:"gpu"`
	VM      services.VMID      `json:"vm"`
	Kind    string             `json:"kind"`

	// Missed: announcements may have been lost; everything may look different.
	Missed bool `json:"-"`
	// Ended: the session of this hash is over.
	Ended string `json:"-"`
	// Agent: the desired state of this agent changed.
	Agent services.AgentID `json:"-"`
	// Position: of this change, for SubscribeSince.
	Position string `json:"-"`
}

// Service reads events and passes the database's announcements on.
type Service struct {
	db  *db.DB
	log *slog.Logger

	mu      sync.Mutex
	next    int
	subs    map[int]*subscriber
	history history
}

// subscriber keeps at most backlog changes; one that falls behind is told that
// it missed some, which is always true enough to read the state again.
type subscriber struct {
	changes chan Change
	want    func(Change) bool
}

const backlog = 64

// New makes a service over a database.
func New(d *db.DB, log *slog.Logger) *Service {
	return &Service{db: d, log: log, subs: map[int]*subscriber{}, history: newHistory(rand.Text())}
}

// Page is one page of events, newest first.
type Page struct {
	Events []Event
	Next   int64 // the next page's Before; 0: the last page
}

// List gives a page of an account's events.
func (s *Service) List(ctx context.Context, f Filter) (Page, error) {
	limit := f.Limit
	f.Limit++
	events, err := s.db.ListEvents(ctx, f)
	p := Page{Events: events}
	if limit > 0 && len(events) > limit {
		p.Events, p.Next = events[:limit], events[limit-1].ID
	}
	return p, err
}

// Run passes announcements on until ctx ends.
func (s *Service) Run(ctx context.Context) error {
	return s.db.Listen(ctx, s.log, func(n db.Notice) {
		c, err := decode(n)
		if err != nil {
			s.log.ErrorContext(ctx, "announcement not understood", "channel", n.Channel, "error", err)
			c = Change{Missed: true}
		}
		s.tell(c)
	})
}

func decode(n db.Notice) (Change, error) {
	switch {
	case n.Missed:
		return Change{Missed: true}, nil
	case n.Channel == db.ChannelDesired:
		return Change{Agent: services.AgentID(n.Payload)}, nil
	case n.Channel == db.ChannelSessions:
		return Change{Ended: n.Payload}, nil
	}
	var c Change
	if err := json.Unmarshal([]byte(n.Payload), &c); err != nil {
		return c, fmt.Errorf("decode announcement: %w", err)
	}
	return c, nil
}

func (s *Service) tell(c Change) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c = s.history.add(c)
	for _, sub := range s.subs {
		if c.Missed || sub.want(c) {
			sub.offer(c)
		}
	}
}

// offer never blocks: a full backlog is replaced by one Missed.
func (sub *subscriber) offer(c Change) {
	select {
	case sub.changes <- c:
		return
	default:
	}
	for {
		select {
		case <-sub.changes:
		default:
			sub.changes <- Change{Missed: true, Position: c.Position}
			return
		}
	}
}

// Subscribe gives the changes that want accepts, and every Missed, until stop is
// called. The channel is never closed.
func (s *Service) Subscribe(want func(Change) bool) (changes <-chan Change, stop func()) {
	return s.subscribe(want, func(*subscriber) {})
}

// Position is where the stream stands. Who notes it before reading a state, and
// subscribes since it, misses nothing.
func (s *Service) Position() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.history.position()
}

// SubscribeSince is Subscribe that begins with what came after a position; with
// a Missed where that is not known any more, or is of another console.
func (s *Service) SubscribeSince(position string, want func(Change) bool) (changes <-chan Change, stop func()) {
	return s.subscribe(want, func(sub *subscriber) {
		missed, known := s.history.since(position)
		if !known {
			sub.offer(Change{Missed: true, Position: s.history.position()})
			return
		}
		for _, c := range missed {
			if c.Missed || want(c) {
				sub.offer(c)
			}
		}
	})
}

func (s *Service) subscribe(want func(Change) bool, begin func(*subscriber)) (changes <-chan Change, stop func()) {
	sub := &subscriber{changes: make(chan Change, backlog), want: want}
	s.mu.Lock()
	defer s.mu.Unlock()
	begin(sub)
	id := s.next
	s.next++
	s.subs[id] = sub
	return sub.changes, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.subs, id)
	}
}
