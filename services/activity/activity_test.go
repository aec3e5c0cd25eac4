package activity_test

import (
	"context"
	"database/sql"
	"log/slog"
	"testing"
	"time"

	"go.uber.org/goleak"

	"berth/db"
	"berth/db/dbtest"
	"berth/services"
	"berth/services/activity"
)

// patience is how long anything may take before a test gives up.
const patience = 10 * time.Second

// world is a stream on a real Postgres.
type world struct {
	*testing.T
	db     *db.DB
	raw    *sql.DB
	stream *activity.Service
}

// newWorld gives a stream that has begun: nothing is missed from then on.
func newWorld(t *testing.T) *world {
	t.Helper()
	url := dbtest.New(t)
	w := &world{T: t}
	var err error
	w.db, err = db.Open(t.Context(), url)
	w.must(err)
	w.raw, err = sql.Open("postgres", url)
	w.must(err)
	t.Cleanup(func() { _ = w.raw.Close(); _ = w.db.Close() })
	w.change(func(tx *db.Tx) error {
		for _, id := range []services.AccountID{"acc-00000001", "acc-00000002"} {
			if err := tx.InsertAccount(t.Context(), id, string(id), time.Now()); err != nil {
				return err
			}
		}
		return nil
	})
	w.stream = activity.New(w.db, slog.New(slog.DiscardHandler))
	begun, stop := w.stream.Subscribe(func(activity.Change) bool { return false })
	defer stop()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- w.stream.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("the stream ended with: %v", err)
		}
	})
	if c := w.next(begun); !c.Missed {
		t.Fatalf("the stream begins with %+v, want that something may have been missed", c)
	}
	return w
}

func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

func (w *world) change(f func(*db.Tx) error) {
	w.Helper()
	w.must(w.db.Tx(w.Context(), f))
}

// happen writes an event of an account.
func (w *world) happen(account services.AccountID, kind string) {
	w.Helper()
	w.change(func(tx *db.Tx) error { return w.insert(tx, account, kind) })
}

func (w *world) insert(tx *db.Tx, account services.AccountID, kind string) error {
	return tx.InsertEvent(w.Context(), db.Event{At: time.Now(), Kind: kind, Actor: services.ActorConsole}, db.Subject{Account: account})
}

func (w *world) next(changes <-chan activity.Change) activity.Change {
	w.Helper()
	select {
	case c := <-changes:
		return c
	case <-time.After(patience):
		w.Fatal("no change came")
		return activity.Change{}
	}
}

func all(activity.Change) bool { return true }

func of(account services.AccountID) func(activity.Change) bool {
	return func(c activity.Change) bool { return c.Account == account }
}

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreTopFunction("database/sql.(*DB).connectionOpener"))
}

func TestEventsReachWhoWantsThemInTheirOrder(t *testing.T) {
	w := newWorld(t)
	changes, stop := w.stream.Subscribe(of("acc-00000001"))
	defer stop()
	for _, kind := range []string{"vm.one", "vm.two", "vm.three"} {
		w.happen("acc-00000002", "vm.other")
		w.happen("acc-00000001", kind)
	}
	for _, want := range []string{"vm.one", "vm.two", "vm.three"} {
		if c := w.next(changes); c.Kind != want || c.Account != "acc-00000001" {
			t.Errorf("got %s of %s, want %s", c.Kind, c.Account, want)
		}
	}
}

func TestWhatWasRolledBackIsNotTold(t *testing.T) {
	w := newWorld(t)
	changes, stop := w.stream.Subscribe(all)
	defer stop()
	err := w.db.Tx(t.Context(), func(tx *db.Tx) error {
		if err := w.insert(tx, "acc-00000001", "vm.never"); err != nil {
			return err
		}
		return services.NotFound("vm", "i-00000001")
	})
	if services.KindOf(err) != services.KindNotFound {
		t.Fatal(err)
	}
	w.happen("acc-00000001", "vm.after")
	if c := w.next(changes); c.Kind != "vm.after" {
		t.Errorf("got %s", c.Kind)
	}
}

func TestEverySubscriberIsToldAfterAnInterruption(t *testing.T) {
	w := newWorld(t)
	changes, stop := w.stream.Subscribe(func(activity.Change) bool { return false })
	defer stop()
	if _, err := w.raw.ExecContext(t.Context(), `
		select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and query ilike 'listen%'`); err != nil {
		t.Fatal(err)
	}
	if c := w.next(changes); !c.Missed {
		t.Errorf("got %+v, want that something may have been missed", c)
	}
	again, stopAgain := w.stream.Subscribe(all)
	defer stopAgain()
	w.happen("acc-00000001", "vm.after")
	if c := w.next(again); c.Kind != "vm.after" {
		t.Errorf("after the interruption: got %+v", c)
	}
}

func TestNobodyIsToldAfterTheyStopped(t *testing.T) {
	w := newWorld(t)
	left, stop := w.stream.Subscribe(all)
	stop()
	stays, stopStaying := w.stream.Subscribe(all)
	defer stopStaying()
	w.happen("acc-00000001", "vm.after")
	w.next(stays)
	if len(left) != 0 {
		t.Errorf("told of %+v", <-left)
	}
}

func TestEventsArePagedNewestFirst(t *testing.T) {
	w := newWorld(t)
	for range 5 {
		w.happen("acc-00000001", "vm.step")
		w.happen("acc-00000002", "vm.other")
	}
	f := activity.Filter{Account: "acc-00000001", Limit: 2}
	var seen []int64
	for {
		p, err := w.stream.List(t.Context(), f)
		w.must(err)
		for _, e := range p.Events {
			seen = append(seen, e.ID)
			if e.Kind != "vm.step" {
				t.Errorf("another account's %s is listed", e.Kind)
			}
		}
		if p.Next == 0 {
			break
		}
		f.Before = p.Next
	}
	if len(seen) != 5 {
		t.Fatalf("seen %v, want 5 events", seen)
	}
	for i := 1; i < len(seen); i++ {
		if seen[i] >= seen[i-1] {
			t.Errorf("seen %v, want the newest first", seen)
		}
	}
}
