package db_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"berth/db"
	"berth/services"
)

func TestACardNamesItsHolderWhoeverWritesTheGPU(t *testing.T) {
	b := newBerthed(t)
	holders := func() (first, second string) {
		t.Helper()
		if err := b.raw.QueryRowContext(t.Context(), `
			select coalesce(a.gpu_id, ''), coalesce(b.gpu_id, '') from cards a, cards b where a.id = 'card-00000001' and b.id = 'card-00000002'`).
			Scan(&first, &second); err != nil {
			t.Fatal(err)
		}
		return first, second
	}
	for _, step := range []struct{ query, first, second string }{
		{`select 1`, "fgpu-00000001", ""},
		{`update gpus set card_id = 'card-00000002'`, "", "fgpu-00000001"},
		{`update gpus set state = null, released_at = now()`, "", ""},
	} {
		if _, err := b.raw.ExecContext(t.Context(), step.query); err != nil {
			t.Fatal(err)
		}
		if first, second := holders(); first != step.first || second != step.second {
			t.Errorf("after %s: held by %q and %q, want %q and %q", step.query, first, second, step.first, step.second)
		}
	}
}

func TestAKeyIsForOneRequestAndItsRepeats(t *testing.T) {
	b := newBerthed(t)
	ctx, now := t.Context(), time.Now()
	b.change(t, func(tx *db.Tx) error {
		return tx.InsertUser(ctx, db.User{ID: "usr-00000001", Email: "a@example.test", PasswordHash: "x"}, now)
	})
	claim := func(user services.UserID, request string) (answer string, repeated bool, err error) {
		err = b.Tx(ctx, func(tx *db.Tx) error {
			if answer, repeated, err = tx.Claim(ctx, user, "key", []byte(request), now); err != nil || repeated {
				return err
			}
			return tx.Answer(ctx, user, "key", "answer to "+request)
		})
		return answer, repeated, err
	}
	if _, repeated, err := claim("usr-00000001", "one"); err != nil || repeated {
		t.Fatalf("the first: repeated %v, %v", repeated, err)
	}
	if answer, repeated, err := claim("usr-00000001", "one"); err != nil || !repeated || answer != "answer to one" {
		t.Errorf("a repeat: %q, repeated %v, %v", answer, repeated, err)
	}
	if _, _, err := claim("usr-00000001", "two"); !services.HasCode(err, services.CodeKeyReused) {
		t.Errorf("another request: %v", err)
	}
}

func TestAClaimWaitsForTheOneBefore(t *testing.T) {
	b := newBerthed(t)
	ctx, now := t.Context(), time.Now()
	b.change(t, func(tx *db.Tx) error {
		return tx.InsertUser(ctx, db.User{ID: "usr-00000001", Email: "a@example.test", PasswordHash: "x"}, now)
	})
	b.meanwhile(t, func(tx *db.Tx) error {
		if _, repeated, err := tx.Claim(ctx, "usr-00000001", "key", []byte("one"), now); err != nil || repeated {
			t.Errorf("the first: repeated %v, %v", repeated, err)
		}
		return tx.Answer(ctx, "usr-00000001", "key", "done")
	}, func(tx *db.Tx) error {
		answer, repeated, err := tx.Claim(ctx, "usr-00000001", "key", []byte("one"), now)
		if !repeated || answer != "done" {
			t.Errorf("the one that waited: %q, repeated %v", answer, repeated)
		}
		return err
	})
}

func TestADeadlockIsResolvedByDoingItAgain(t *testing.T) {
	b := newBerthed(t)
	ctx := t.Context()
	both := make(chan struct{}, 2) // each has one lock
	meet := make(chan struct{})
	go func() {
		<-both
		<-both
		close(meet)
	}()
	lock := func(tx *db.Tx, vm bool) error {
		if vm {
			_, err := tx.LockVM(ctx, b.account, b.vm)
			return err
		}
		_, err := tx.LockGPU(ctx, b.account, b.gpu)
		return err
	}
	tries := make(chan bool, 10)
	run := func(vmFirst bool) error {
		first := true
		return b.Tx(ctx, func(tx *db.Tx) error {
			tries <- vmFirst
			if err := lock(tx, vmFirst); err != nil {
				return err
			}
			if first {
				first = false
				both <- struct{}{}
				<-meet
			}
			return lock(tx, !vmFirst)
		})
	}
	done := make(chan error, 1)
	go func() { done <- run(true) }()
	if err := errors.Join(run(false), <-done); err != nil {
		t.Errorf("got %v", err)
	}
	if len(tries) < 3 { // on a slow machine both may be broken off
		t.Errorf("%d tries, want one of the two again", len(tries))
	}
}

func TestWhatWasCancelledSaysSo(t *testing.T) {
	b := newBerthed(t)
	b.change(t, func(tx *db.Tx) error {
		if _, err := tx.LockVM(t.Context(), b.account, b.vm); err != nil {
			return err
		}
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		err := b.Tx(ctx, func(tx *db.Tx) error {
			_, err := tx.LockVM(ctx, b.account, b.vm)
			return err
		})
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a wait that took too long: got %v", err)
		}
		return nil
	})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := b.Zones(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("a request that was cancelled: got %v", err)
	}
}
