package db_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/lib/pq"

	"berth/db"
	"berth/db/dbtest"
	"berth/services"
)

func TestATransactionIsRunAgainAfterADeadlockAlone(t *testing.T) {
	d := dbtest.Open(t)
	deadlock := fmt.Errorf("lock VM: %w", &pq.Error{Code: "40P01"})
	for name, c := range map[string]struct {
		err   error // of every try but the last allowed one
		tries int
		fails bool
	}{
		"done at once":            {nil, 1, false},
		"a deadlock, again":       {deadlock, 4, true},
		"a rule that broke":       {services.Invalid("name", services.CodeRequired, nil), 1, true},
		"a constraint that broke": {&pq.Error{Code: "23505"}, 1, true},
		"a query too long":        {&pq.Error{Code: "57014"}, 1, true},
	} {
		tries := 0
		err := d.Tx(t.Context(), func(*db.Tx) error { tries++; return c.err })
		if tries != c.tries || (err != nil) != c.fails || !errors.Is(err, c.err) {
			t.Errorf("%s: %d tries and %v, want %d", name, tries, err, c.tries)
		}
	}
}

func TestADeadlockThatIsOverIsForgotten(t *testing.T) {
	b := newBerthed(t)
	tries := 0
	b.change(t, func(tx *db.Tx) error {
		if err := tx.RenameGPU(t.Context(), b.gpu, fmt.Sprintf("try %d", tries)); err != nil {
			return err
		}
		if tries++; tries < 3 {
			return &pq.Error{Code: "40P01"}
		}
		return nil
	})
	g, err := b.AccountGPU(t.Context(), b.account, b.gpu)
	if err != nil || g.Name != "try 2" {
		t.Errorf("the GPU is named %q, %v; want only what the last try wrote", g.Name, err)
	}
}

func TestATransactionThatFailsOrPanicsLeavesNothing(t *testing.T) {
	b := newBerthed(t)
	broke := errors.New("broke")
	rename := func(tx *db.Tx) error { return tx.RenameGPU(t.Context(), b.gpu, "changed") }
	err := b.Tx(t.Context(), func(tx *db.Tx) error { return errors.Join(rename(tx), broke) })
	if !errors.Is(err, broke) {
		t.Errorf("got %v", err)
	}
	func() {
		defer func() { _ = recover() }()
		_ = b.Tx(t.Context(), func(tx *db.Tx) error { panic(rename(tx)) })
	}()
	if g, err := b.AccountGPU(t.Context(), b.account, b.gpu); err != nil || g.Name != "one" {
		t.Errorf("the GPU is named %q, %v", g.Name, err)
	}
}

func TestAnAttemptThatFailsLeavesTheRestOfItsTransaction(t *testing.T) {
	b := newBerthed(t)
	broke := errors.New("broke")
	b.change(t, func(tx *db.Tx) error {
		for name, c := range map[string]struct {
			ok  bool
			err error
		}{"kept": {true, nil}, "given up": {false, nil}, "failed": {true, broke}} {
			if err := tx.RenameGPU(t.Context(), b.gpu, "before"); err != nil {
				return err
			}
			ok, err := tx.Try(t.Context(), func() (bool, error) {
				return c.ok, errors.Join(tx.RenameGPU(t.Context(), b.gpu, "tried"), c.err)
			})
			if ok != c.ok || !errors.Is(err, c.err) {
				t.Errorf("%s: got %v, %v", name, ok, err)
			}
			want := "before"
			if c.ok && c.err == nil {
				want = "tried"
			}
			if g, err := tx.AccountGPU(t.Context(), b.account, b.gpu); err != nil || g.Name != want {
				t.Errorf("%s: the GPU is named %q, %v; want %q", name, g.Name, err, want)
			}
		}
		_, err := tx.Try(t.Context(), func() (bool, error) { return true, tx.RenameGPU(t.Context(), b.gpu, "") })
		if err == nil {
			t.Error("a constraint was not held")
		}
		_, err = tx.AccountGPU(t.Context(), b.account, b.gpu)
		return err // an attempt that a constraint ended does not end the transaction
	})
}

// A query that was cut off says what cut it off, and keeps what Postgres said.
func TestAQueryWhoseClientLeftSaysSo(t *testing.T) {
	b := newBerthed(t)
	b.change(t, func(holder *db.Tx) error {
		if _, err := holder.LockVM(t.Context(), b.account, b.vm); err != nil {
			return err
		}
		ctx, leave := context.WithCancel(t.Context())
		defer leave()
		done := make(chan error, 1)
		go func() {
			done <- b.Tx(ctx, func(tx *db.Tx) error {
				_, err := tx.LockVM(ctx, b.account, b.vm)
				return err
			})
		}()
		if err := b.untilOneWaits(t.Context()); err != nil {
			return err
		}
		leave()
		err := <-done
		if !errors.Is(err, context.Canceled) {
			t.Errorf("got %v, want %v in it", err, context.Canceled)
		}
		if e, ok := errors.AsType[*pq.Error](err); !ok || e.Code != "57014" {
			t.Errorf("got %v, want SQLSTATE 57014 in it", err)
		}
		return nil
	})
	if _, err := b.AccountVM(t.Context(), b.account, b.vm); err != nil {
		t.Errorf("afterwards: %v", err)
	}
}

// Of many takers each gets a card of its own, and as many go without as there
// are too few.
func TestEachCardHasOneTaker(t *testing.T) {
	b := newBerthed(t)
	b.crowd(t, 10)
	b.change(t, func(tx *db.Tx) error {
		for i := 1; i <= 10; i++ {
			if _, err := tx.MoveGPU(t.Context(), db.Move{
				GPU: services.GPUID(fmt.Sprintf("fgpu-1%07x", i)), From: []services.GPUState{services.GPUAllocated},
				Event: db.Event{At: time.Now(), Kind: "gpu.released", Actor: services.ActorConsole},
			}); err != nil {
				return err
			}
		}
		return nil
	})
	const takers, free = 16, 11
	var wg sync.WaitGroup
	got := make(chan services.CardID, takers)
	for i := range takers {
		wg.Go(func() {
			var card services.CardID
			err := b.Tx(t.Context(), func(tx *db.Tx) error {
				id, ok, err := tx.TakeCard(t.Context(), "eu-west-2a", "nvidia-l40", "")
				if card = id; err != nil || !ok {
					return err
				}
				return tx.InsertGPU(t.Context(), db.GPU{
					ID: services.GPUID(fmt.Sprintf("fgpu-2%07x", i)), Account: b.account, Kind: services.GPUFlexible, Name: "x", Model: "nvidia-l40",
					Region: "eu-west-2", Zone: "eu-west-2a", Card: id, State: services.GPUAllocated, StateSince: time.Now(),
				})
			})
			if err != nil {
				t.Errorf("taker %d: %v", i, err)
			}
			if card != "" {
				got <- card
			}
		})
	}
	wg.Wait()
	close(got)
	holders := map[services.CardID]int{}
	for card := range got {
		holders[card]++
	}
	if len(holders) != free {
		t.Errorf("%d cards were taken, want all %d", len(holders), free)
	}
	for card, n := range holders {
		if n != 1 {
			t.Errorf("%s has %d takers", card, n)
		}
	}
}

// Reports that come at once are taken in one order, each once.
func TestOfReportsThatComeAtOnceTheNewestStands(t *testing.T) {
	b := newBerthed(t)
	const reports = 12
	var wg sync.WaitGroup
	var mu sync.Mutex
	taken := map[int64]int{}
	for i := range 2 * reports {
		sequence := int64(i/2 + 1) // each comes twice
		wg.Go(func() {
			now := time.Now()
			var ok bool
			err := b.Tx(t.Context(), func(tx *db.Tx) error {
				var err error
				ok, err = tx.AcceptReport(t.Context(), db.Agent{ID: "agent-00000001", Epoch: 1, Sequence: sequence, ReportedAt: &now, ReachedRevision: reports - sequence})
				return err
			})
			if err != nil {
				t.Errorf("report %d: %v", sequence, err)
			}
			mu.Lock()
			defer mu.Unlock()
			if ok {
				taken[sequence]++
			}
		})
	}
	wg.Wait()
	if taken[reports] != 1 {
		t.Errorf("the newest was taken %d times", taken[reports])
	}
	for sequence, n := range taken {
		if n > 1 {
			t.Errorf("report %d was taken %d times", sequence, n)
		}
	}
	a, ok, err := b.Agent(t.Context(), "agent-00000001")
	if err != nil || !ok || a.Sequence != reports {
		t.Errorf("the last report is %d, %v, %v", a.Sequence, ok, err)
	}
}
