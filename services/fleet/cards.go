package fleet

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"

	"berth/db"
	"berth/services"
	"berth/services/agentapi"
)

// cards writes what the report says of cards. Rows change only where something
// did, so that a heartbeat never stands in the way of an allocation.
func (t *taking) cards(ctx context.Context) error {
	var hosts []services.HostID
	var identities []string
	for _, h := range t.report.Hosts {
		hosts = append(hosts, t.ids[h.Name])
		for _, c := range h.Cards {
			identities = append(identities, identity(t.ids[h.Name], c))
		}
	}
	rows, err := t.db.CardsOf(ctx, hosts, identities)
	if err != nil {
		return err
	}
	known := map[string]db.Card{}
	for _, c := range rows {
		known[c.Identity] = c
	}
	for _, h := range t.report.Hosts {
		if err := t.hostCards(ctx, h, known); err != nil {
			return err
		}
	}
	return nil
}

// identity is what a card is known by for good: serial, else UUID, else what
// the agent calls it on that host.
func identity(host services.HostID, c agentapi.CardReport) string {
	switch {
	case c.Serial != "":
		return "serial:" + c.VendorID + ":" + c.Serial
	case c.UUID != "":
		return "uuid:" + c.UUID
	default:
		return "slot:" + string(host) + ":" + c.Key
	}
}

func (t *taking) hostCards(ctx context.Context, h agentapi.HostReport, known map[string]db.Card) error {
	host := t.ids[h.Name]
	listed := map[services.CardID]bool{}
	for _, c := range h.Cards {
		row, ok := known[identity(host, c)]
		if !ok {
			if err := t.newCard(ctx, h.Name, c); err != nil {
				return err
			}
			continue
		}
		listed[row.ID] = true
		if err := t.seenCard(ctx, h.Name, row, c); err != nil {
			return err
		}
	}
	if t.report.Partial || len(h.Cards) == 0 {
		return nil
	}
	for _, row := range known {
		if row.Host == host && !listed[row.ID] {
			if err := t.missingCard(ctx, h.Name, row); err != nil {
				return err
			}
		}
	}
	return nil
}

// newCard adds a card at its first sight. One of unknown model is kept for an
// operator to look at.
func (t *taking) newCard(ctx context.Context, hostName string, c agentapi.CardReport) error {
	id, err := services.NewID[services.CardID](t.random)
	if err != nil {
		return err
	}
	model, ok, err := t.db.ModelOf(ctx, c.VendorID, c.DeviceID)
	if err != nil {
		return err
	}
	row := db.Card{
		ID: id, Identity: identity(t.ids[hostName], c), Key: c.Key, Host: t.ids[hostName], Zone: t.agent.Zone, Model: model,
		VendorID: c.VendorID, DeviceID: c.DeviceID, SubsystemID: c.SubsystemID, Serial: c.Serial, UUID: c.UUID,
		Condition: services.CardReady, CleanOrder: max(c.CleanedOrder, c.FailedOrder), LastSeenAt: t.now,
	}
	if !ok {
		row.Condition, row.ConditionReason = services.CardNeedsReview, "unknown model "+c.VendorID+":"+c.DeviceID
		t.drift("unknown-model", c.Key, row.ConditionReason)
	}
	if err := place(&row, c); err != nil {
		return err
	}
	return t.db.Tx(ctx, func(tx *db.Tx) error {
		if err := tx.InsertCard(ctx, row); err != nil {
			return err
		}
		return t.event(ctx, tx, "card.found", row)
	})
}

// place writes where and how a card was seen.
func place(row *db.Card, c agentapi.CardReport) error {
	if c.Functions == nil {
		c.Functions = []agentapi.Function{}
	}
	functions, err := json.Marshal(c.Functions)
	if err != nil {
		return fmt.Errorf("encode functions of card %s: %w", c.Key, err)
	}
	row.PCIAddress, row.IOMMUGroup, row.NUMANode, row.Functions = c.PCIAddress, c.IOMMUGroup, c.NUMANode, functions
	return nil
}

func (t *taking) event(ctx context.Context, tx *db.Tx, kind string, row db.Card) error {
	return tx.InsertEvent(ctx, db.Event{At: t.now, Kind: kind, Actor: services.ActorHost, Data: map[string]any{"Key": row.Key}},
		db.Subject{Card: row.ID, Host: row.Host})
}

// seenCard follows a known card. One that the books have on another host, of
// this agent or of a foreign one, is only flagged: nothing moves by itself.
func (t *taking) seenCard(ctx context.Context, hostName string, row db.Card, c agentapi.CardReport) error {
	if row.Host != t.ids[hostName] {
		kind := "card-elsewhere"
		if row.Agent != t.agent.ID {
			kind = "foreign-card"
		}
		t.drift(kind, c.Key, "seen on "+hostName+", but the books have it on "+string(row.Host))
		return nil
	}
	if row.Model == "" {
		t.drift("unknown-model", c.Key, row.ConditionReason)
	}
	before := row
	if err := place(&row, c); err != nil {
		return err
	}
	news := row.MissingSince != nil || movedCard(before, row)
	if !news && row.Condition != services.CardCleaning {
		return nil
	}
	return t.db.Tx(ctx, func(tx *db.Tx) error {
		if news {
			row.MissingSince, row.LastSeenAt = nil, t.now
			if err := tx.SawCard(ctx, row); err != nil {
				return err
			}
		}
		return t.cleanedCard(ctx, tx, row, c)
	})
}

func movedCard(a, b db.Card) bool {
	same := func(x, y *int) bool { return (x == nil) == (y == nil) && (x == nil || *x == *y) }
	return a.PCIAddress != b.PCIAddress || !same(a.IOMMUGroup, b.IOMMUGroup) || !same(a.NUMANode, b.NUMANode) ||
		!sameJSON(a.Functions, b.Functions)
}

// sameJSON compares by value: Postgres spells what it stores in its own way.
func sameJSON(a, b []byte) bool {
	var x, y []agentapi.Function
	if json.Unmarshal(a, &x) != nil || json.Unmarshal(b, &y) != nil {
		return bytes.Equal(a, b)
	}
	if len(x) != len(y) {
		return false
	}
	for i := range x {
		if x[i] != y[i] {
			return false
		}
	}
	return true
}

// cleanedCard ends a cleaning order that the report says was carried out, or
// that failed: then the card is quarantined, never ready.
func (t *taking) cleanedCard(ctx context.Context, tx *db.Tx, row db.Card, c agentapi.CardReport) error {
	if row.Condition != services.CardCleaning {
		return nil
	}
	var kind string
	switch {
	case c.CleanedOrder >= row.CleanOrder:
		ok, err := tx.Cleaned(ctx, row.ID, row.CleanOrder)
		if err != nil || !ok {
			return err
		}
		kind = "card.cleaned"
	case c.FailedOrder >= row.CleanOrder:
		reason := "reset failed"
		if c.Problem != nil {
			reason = clip(c.Problem.Message)
		}
		ok, err := tx.Quarantine(ctx, row.ID, row.CleanOrder, reason)
		if err != nil || !ok {
			return err
		}
		kind = "card.quarantined"
	default:
		return nil
	}
	if _, err := tx.Bump(ctx, row.Host); err != nil {
		return err
	}
	return t.event(ctx, tx, kind, row)
}

// missingCard flags a card that a full report of its host does not list. It is
// not offered; whoever holds it keeps it.
func (t *taking) missingCard(ctx context.Context, hostName string, row db.Card) error {
	t.drift("card-missing", row.Key, "not listed by "+hostName)
	if row.MissingSince != nil {
		return nil
	}
	row.MissingSince = &t.now
	return t.db.Tx(ctx, func(tx *db.Tx) error {
		if err := tx.SawCard(ctx, row); err != nil {
			return err
		}
		return t.event(ctx, tx, "card.missing", row)
	})
}
