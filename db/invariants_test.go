package db_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/lib/pq"

	"berth/db"
	"berth/services"
)

// What must never be in the books is refused by the schema, whoever writes.
func TestTheSchemaRefusesWhatMustNeverBe(t *testing.T) {
	const gpu = `insert into gpus (id, account_id, kind, name, model_id, region_id, zone_id, card_id, state, vm_id, state_since, created_at, released_at) values `
	tests := map[string]string{
		"two open GPUs on one card":           gpu + `('fgpu-00000002', 'acc-00000001', 'flexible', 'x', 'nvidia-l40', 'eu-west-2', 'eu-west-2a', 'card-00000001', 'allocated', null, now(), '2026-01-01', null)`,
		"an allocated GPU with a VM":          `update gpus set vm_id = 'i-00000001'`,
		"an attached GPU without one":         `update gpus set state = 'attached'`,
		"an attaching GPU without one":        `update gpus set state = 'attaching'`,
		"a detaching GPU without one":         `update gpus set state = 'detaching'`,
		"a state that is none":                `update gpus set state = 'lost', vm_id = 'i-00000001'`,
		"an open GPU without a state":         `update gpus set state = null`,
		"a released GPU with a state":         `update gpus set released_at = now()`,
		"a GPU on a VM of another zone":       `update gpus set state = 'attached', vm_id = 'i-00000001', zone_id = 'eu-west-2b'`,
		"a built-in GPU with a state":         gpu + `('fgpu-00000002', 'acc-00000001', 'built-in', 'x', 'nvidia-l40', 'eu-west-2', 'eu-west-2a', 'card-00000002', 'attached', 'i-00000001', now(), '2026-01-01', null)`,
		"GPUs of two models on one VM":        `with a as (update gpus set state = 'attached', vm_id = 'i-00000001') ` + gpu + `('fgpu-00000002', 'acc-00000001', 'flexible', 'x', 'nvidia-h100', 'eu-west-2', 'eu-west-2a', 'card-00000002', 'attached', 'i-00000001', now(), '2026-01-01', null)`,
		"a card condition that is none":       `update cards set condition = 'tired'`,
		"a power that is none":                `update vms set power = 'sleeping'`,
		"a deleted VM that is wanted running": `update vms set deleted_at = now()`,
		"a VM without cores":                  `update vms set vcores = 0`,
		"a GPU without a name":                `update gpus set name = ''`,
		"a GPU of a card that is not":         `update gpus set card_id = 'card-99999999'`,
		"two open operations of one VM": `insert into operations (id, vm_id, account_id, kind, state, deadline, created_at)
			select 'op-0000000' || i, 'i-00000001', 'acc-00000001', 'stop', 'running', now(), now() from generate_series(1, 2) i`,
		"an operation that ended and runs": `insert into operations (id, vm_id, account_id, kind, state, deadline, created_at, ended_at)
			values ('op-00000001', 'i-00000001', 'acc-00000001', 'stop', 'running', now(), '2026-01-01', now())`,
		"a quota below 0": `insert into quotas (account_id, region_id, model_id, max) values ('acc-00000001', 'eu-west-2', 'nvidia-l40', -1)`,
	}
	b := newBerthed(t)
	for name, q := range tests {
		t.Run(name, func(t *testing.T) {
			tx, err := b.raw.BeginTxx(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = tx.Rollback() }()
			_, err = tx.ExecContext(t.Context(), q)
			e, ok := errors.AsType[*pq.Error](err)
			if !ok || e.Code.Class() != "23" {
				t.Errorf("got %v, want an integrity constraint to refuse it", err)
			}
		})
	}
}

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
	if len(tries) != 3 {
		t.Errorf("%d tries, want 3: one of the two again", len(tries))
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
