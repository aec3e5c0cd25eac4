package db_test

import (
	"testing"
	"time"

	"berth/db"
	"berth/services"
)

// What keeps a card from being offered, each alone.
func TestACardIsOfferedOnlyWhereNothingStandsAgainstIt(t *testing.T) {
	const asBefore = `
		update gpus set card_id = 'card-00000001';
		update cards set condition = 'ready', missing_since = null, model_id = 'nvidia-l40', zone_id = 'eu-west-2a';
		update hosts set mode = 'accepting', ready = true, confirmed_until = now() + interval '1 hour'`
	b := newBerthed(t)
	free := func(tx *db.Tx) bool {
		t.Helper()
		_, ok, err := tx.TakeCard(t.Context(), "eu-west-2a", "nvidia-l40", "")
		if err != nil {
			t.Fatal(err)
		}
		return ok
	}
	b.change(t, func(tx *db.Tx) error {
		if !free(tx) {
			t.Fatal("the second card is not offered")
		}
		return nil
	})
	for what, q := range map[string]string{
		"it is being cleaned":       `update cards set condition = 'cleaning' where id = 'card-00000002'`,
		"it is quarantined":         `update cards set condition = 'quarantined' where id = 'card-00000002'`,
		"it is disabled":            `update cards set condition = 'disabled' where id = 'card-00000002'`,
		"it needs review":           `update cards set condition = 'needs_review' where id = 'card-00000002'`,
		"no report lists it":        `update cards set missing_since = now() where id = 'card-00000002'`,
		"it is held":                `update gpus set card_id = 'card-00000002'; update cards set condition = 'disabled' where id = 'card-00000001'`,
		"its host is drained":       `update hosts set mode = 'draining'`,
		"its host is maintained":    `update hosts set mode = 'maintenance'`,
		"its host is not ready":     `update hosts set ready = false`,
		"nothing vouches for it":    `update hosts set confirmed_until = now() - interval '1 second'`,
		"it is of another model":    `update cards set model_id = 'nvidia-h100' where id = 'card-00000002'`,
		"it is in another zone":     `update cards set zone_id = 'eu-west-2b' where id = 'card-00000002'`,
		"its model is not known":    `update cards set condition = 'needs_review', model_id = null where id = 'card-00000002'`,
		"it is missing by an agent": `update cards set condition = 'missing' where id = 'card-00000002'`,
	} {
		if _, err := b.raw.ExecContext(t.Context(), q); err != nil {
			t.Fatal(err)
		}
		b.change(t, func(tx *db.Tx) error {
			if free(tx) {
				t.Errorf("a card is offered though %s", what)
			}
			return nil
		})
		if _, err := b.raw.ExecContext(t.Context(), asBefore); err != nil {
			t.Fatal(err)
		}
	}
	b.change(t, func(tx *db.Tx) error {
		if !free(tx) {
			t.Error("the second card is not offered again")
		}
		return nil
	})
}

func TestTwoGPUsExchangeTheirCardsWholeOrNotAtAll(t *testing.T) {
	b := newBerthed(t)
	b.change(t, func(tx *db.Tx) error {
		return tx.InsertGPU(t.Context(), db.GPU{
			ID: "fgpu-00000002", Account: b.account, Kind: services.GPUFlexible, Name: "two", Model: "nvidia-l40", Region: "eu-west-2", Zone: "eu-west-2a",
			Card: b.cards[1], State: services.GPUAllocated, StateSince: time.Now(),
		})
	})
	standing := func() [2]services.CardID {
		t.Helper()
		var cards [2]services.CardID
		for i, id := range []services.GPUID{b.gpu, "fgpu-00000002"} {
			g, err := b.AccountGPU(t.Context(), b.account, id)
			if err != nil {
				t.Fatal(err)
			}
			cards[i] = g.Card
		}
		return cards
	}
	exchange := func(card services.CardID) bool {
		t.Helper()
		var done bool
		b.change(t, func(tx *db.Tx) error {
			mine, err := tx.LockGPU(t.Context(), b.account, b.gpu)
			if err != nil {
				return err
			}
			done, err = tx.Exchange(t.Context(), mine, "fgpu-00000002", card)
			return err
		})
		return done
	}
	if exchange(b.cards[0]) || standing() != b.cards {
		t.Error("a partner that is not on the card it was seen on was exchanged")
	}
	if !exchange(b.cards[1]) || standing() != [2]services.CardID{b.cards[1], b.cards[0]} {
		t.Errorf("after an exchange they stand on %v", standing())
	}
	b.change(t, func(tx *db.Tx) error {
		_, err := tx.MoveGPU(t.Context(), db.Move{
			GPU: "fgpu-00000002", From: []services.GPUState{services.GPUAllocated}, To: services.GPUAttaching, VM: b.vm,
			Event: db.Event{At: time.Now(), Kind: "gpu.attach", Actor: services.ActorConsole},
		})
		if err != nil {
			return err
		}
		return tx.MarkUsed(t.Context(), []services.GPUID{"fgpu-00000002"})
	})
	if exchange(b.cards[0]) || standing() != [2]services.CardID{b.cards[1], b.cards[0]} {
		t.Error("a partner that has a VM was exchanged")
	}
	if found, err := b.Audit(t.Context()); err != nil || len(found) > 0 {
		t.Errorf("the books: %v, %v", found, err)
	}
}

func TestACleaningOrderIsEndedByItsOwnNumberAlone(t *testing.T) {
	b := newBerthed(t)
	card := b.cards[1]
	order := func() {
		t.Helper()
		b.change(t, func(tx *db.Tx) error {
			_, err := tx.Clean(t.Context(), card)
			return err
		})
	}
	end := func(number int64, quarantine bool) bool {
		t.Helper()
		var done bool
		b.change(t, func(tx *db.Tx) error {
			var err error
			if quarantine {
				done, err = tx.Quarantine(t.Context(), card, number, "reset failed")
			} else {
				done, err = tx.Cleaned(t.Context(), card, number)
			}
			return err
		})
		return done
	}
	order()
	order() // before the first was done
	for what, got := range map[string]bool{
		"the former order is done": end(1, false), "the former order failed": end(1, true), "an order to come is done": end(3, false),
	} {
		if got {
			t.Errorf("%s: it ended the present one", what)
		}
	}
	if !end(2, false) || end(2, false) || end(2, true) {
		t.Error("an order ends once, by its number")
	}
	order()
	if !end(3, true) || end(3, false) {
		t.Error("a card whose cleaning failed is in quarantine and stays there")
	}
	order() // leaves it there
	if end(4, true) {
		t.Error("it was cleaned in quarantine")
	}
	var condition string
	if err := b.raw.GetContext(t.Context(), &condition, `select condition from cards where id = $1`, card); err != nil || condition != "quarantined" {
		t.Errorf("it is %q, %v", condition, err)
	}
}
