package db_test

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"berth/db"
	"berth/services"
)

// Each kind of row goes when it is useless, and not before.
func TestOnlyWhatAgeMadeUselessIsDeleted(t *testing.T) {
	b := newBerthed(t)
	ctx, now := t.Context(), time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	b.change(t, func(tx *db.Tx) error {
		return tx.InsertUser(ctx, db.User{ID: "usr-00000001", Email: "a@example.test", PasswordHash: "x"}, now)
	})
	if _, err := b.raw.ExecContext(ctx, `
		insert into sessions (token_hash, user_id, created_at, expires_at) values
			('over', 'usr-00000001', cast($1 as timestamptz) - interval '1 day', $1),
			('good', 'usr-00000001', cast($1 as timestamptz) - interval '9 days', cast($1 as timestamptz) + interval '1 second')`, now); err != nil {
		t.Fatal(err)
	}
	if _, err := b.raw.ExecContext(ctx, `
		insert into sign_in_failures values ('over', cast($1 as timestamptz) - interval '61 minutes'), ('good', cast($1 as timestamptz) - interval '59 minutes')`, now); err != nil {
		t.Fatal(err)
	}
	if _, err := b.raw.ExecContext(ctx, `
		insert into idempotency_keys values
			('usr-00000001', 'over', '', '', cast($1 as timestamptz) - interval '7 days 1 second'),
			('usr-00000001', 'good', '', '', cast($1 as timestamptz) - interval '7 days')`, now); err != nil {
		t.Fatal(err)
	}
	if err := b.DeleteStale(ctx, now); err != nil {
		t.Fatal(err)
	}
	var left []string
	if err := b.raw.SelectContext(ctx, &left, `
		select 'session ' || encode(token_hash, 'escape') from sessions union all select 'failure ' || email from sign_in_failures
		union all select 'key ' || key from idempotency_keys order by 1`); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"failure good", "key good", "session good"}, left); diff != "" {
		t.Error(diff)
	}
}

func TestAnAddressIsFoundAndThrottledInAnySpelling(t *testing.T) {
	b := newBerthed(t)
	ctx, now := t.Context(), time.Now()
	b.change(t, func(tx *db.Tx) error {
		return tx.InsertUser(ctx, db.User{ID: "usr-00000001", Email: "Ann@Example.test", PasswordHash: "x"}, now)
	})
	for _, email := range []string{"ann@example.test", "ANN@EXAMPLE.TEST"} {
		if u, ok, err := b.UserByEmail(ctx, email); err != nil || !ok || u.Email != "Ann@Example.test" {
			t.Errorf("%s: %+v, %v, %v", email, u, ok, err)
		}
		if err := b.AddSignInFailure(ctx, email, now); err != nil {
			t.Fatal(err)
		}
	}
	if _, ok, err := b.UserByEmail(ctx, "ann_example.test"); ok || err != nil {
		t.Errorf("a pattern finds somebody: %v, %v", ok, err)
	}
	for since, want := range map[time.Time]int{now.Add(-time.Second): 2, now.Add(time.Second): 0} {
		if n, err := b.SignInFailures(ctx, "aNN@example.test", since); err != nil || n != want {
			t.Errorf("%d failures since %s, %v; want %d", n, since.Sub(now), err, want)
		}
	}
	if err := b.ClearSignInFailures(ctx, "Ann@example.test"); err != nil {
		t.Fatal(err)
	}
	if n, err := b.SignInFailures(ctx, "ann@example.test", now.Add(-time.Second)); err != nil || n != 0 {
		t.Errorf("%d failures after a success, %v", n, err)
	}
}

// listening gives the notices of a database.
func listening(t *testing.T, d *db.DB) <-chan db.Notice {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	notices, ended := make(chan db.Notice, 100), make(chan error, 1)
	go func() { ended <- d.Listen(ctx, slog.New(slog.DiscardHandler), func(n db.Notice) { notices <- n }) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Errorf("listen: %v", err)
		}
	})
	return notices
}

func next(t *testing.T, notices <-chan db.Notice) db.Notice {
	t.Helper()
	select {
	case n := <-notices:
		return n
	case <-time.After(10 * time.Second):
		t.Fatal("nothing is announced")
		return db.Notice{}
	}
}

func TestAnnouncementsComeWithTheirTransactionAndNotWithOneThatFailed(t *testing.T) {
	b := newBerthed(t)
	ctx := t.Context()
	notices := listening(t, b.DB)
	if n := next(t, notices); !n.Missed {
		t.Errorf("it begins with %+v, want that some may be missed", n)
	}
	rename := func(tx *db.Tx, kind string) error {
		return tx.InsertEvent(ctx, db.Event{At: time.Now(), Kind: kind, Actor: services.ActorConsole}, db.Subject{Account: b.account, GPU: b.gpu, VM: b.vm})
	}
	if err := b.Tx(ctx, func(tx *db.Tx) error {
		if err := rename(tx, "gpu.never"); err != nil {
			return err
		}
		return context.Canceled
	}); err == nil {
		t.Fatal("the transaction did not fail")
	}
	b.change(t, func(tx *db.Tx) error {
		if err := rename(tx, "gpu.renamed"); err != nil {
			return err
		}
		revision, err := tx.Bump(ctx, b.hosts[1])
		if revision != 2 {
			t.Errorf("the desired revision is %d, want 2", revision)
		}
		return err
	})
	got := map[string]string{}
	for range 2 {
		n := next(t, notices)
		got[n.Channel] = n.Payload
	}
	want := map[string]string{
		db.ChannelDesired: "agent-00000001",
		db.ChannelEvents:  `{"account" : "acc-00000001", "gpu" : "fgpu-00000001", "vm" : "i-00000001", "kind" : "gpu.renamed"}`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// Whoever was signed in with the old password is signed out, and told so.
func TestAnotherPasswordEndsEverySessionOfItsUser(t *testing.T) {
	b := newBerthed(t)
	ctx, now := t.Context(), time.Now()
	for i, id := range []services.UserID{"usr-00000001", "usr-00000002"} {
		b.change(t, func(tx *db.Tx) error {
			return tx.InsertUser(ctx, db.User{ID: id, Email: string(id) + "@example.test", PasswordHash: "x"}, now)
		})
		if err := b.InsertSession(ctx, []byte{byte(i), 0xab}, id, "", now, now.Add(time.Hour)); err != nil {
			t.Fatal(err)
		}
	}
	notices := listening(t, b.DB)
	next(t, notices)
	if err := b.SetPassword(ctx, "usr-00000001", "other"); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(db.Notice{Channel: db.ChannelSessions, Payload: "00ab"}, next(t, notices)); diff != "" {
		t.Error(diff)
	}
	for i, want := range []bool{false, true} {
		if _, ok, err := b.Session(ctx, []byte{byte(i), 0xab}, now); err != nil || ok != want {
			t.Errorf("the session of user %d is there: %v, %v; want %v", i+1, ok, err, want)
		}
	}
}
