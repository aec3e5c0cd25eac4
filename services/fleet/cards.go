package fleet

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"berth/db"
	"berth/services"
	"berth/services/agentapi"
)

// cards writes what the report says of cards. Rows change only where something
// did, so that a heartbeat never stands in the way of an allocation.
func (t *taking) cards(ctx context.Context) error {
	var hosts []services.HostID
	var identities []string
	t.seen, t.moved = map[string][]string{}, map[services.CardID]bool{}
	for _, h := range t.report.Hosts {
		hosts = append(hosts, t.ids[h.Name])
		for _, c := range h.Cards {
			i := identity(t.ids[h.Name], c)
			identities = append(identities, i)
			t.seen[i] = append(t.seen[i], h.Name)
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
	for _, h := range t.report.Hosts {
		if err := t.missingCards(ctx, h, rows); err != nil {
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
	var found []db.Card
	for _, c := range h.Cards {
		row, ok := known[identity(host, c)]
		var err error
		if ok {
			err = t.seenCard(ctx, h.Name, row, c)
		} else if row, err = t.newCard(ctx, h.Name, c); err == nil {
			found = append(found, row)
		}
		if err != nil {
			return err
		}
	}
	return t.add(ctx, found)
}

// add writes the cards that were not known before, together: a host comes with
// all of its own.
func (t *taking) add(ctx context.Context, found []db.Card) error {
	if len(found) == 0 {
		return nil
	}
	return t.db.Tx(ctx, func(tx *db.Tx) error {
		for _, row := range found {
			if err := tx.InsertCard(ctx, row); err != nil {
				return err
			}
			if err := t.event(ctx, tx, "card.found", row); err != nil {
				return err
			}
		}
		return nil
	})
}

// missingCards flags the cards that a full report of their host does not list.
// One that has moved to another host is not among them.
func (t *taking) missingCards(ctx context.Context, h agentapi.HostReport, known []db.Card) error {
	if t.report.Partial || len(h.Cards) == 0 {
		return nil
	}
	for _, row := range known {
		here := row.Host == t.ids[h.Name] && row.Condition != services.CardRetired
		if !here || t.moved[row.ID] || slices.Contains(t.seen[row.Identity], h.Name) {
			continue
		}
		if err := t.missingCard(ctx, h.Name, row); err != nil {
			return err
		}
	}
	return nil
}

// newCard describes a card at its first sight. One of unknown model is kept for
// an operator to look at.
func (t *taking) newCard(ctx context.Context, hostName string, c agentapi.CardReport) (db.Card, error) {
	id, err := services.NewID[services.CardID](t.random)
	if err != nil {
		return db.Card{}, err
	}
	model, ok, err := t.db.ModelOf(ctx, c.VendorID, c.DeviceID)
	if err != nil {
		return db.Card{}, err
	}
	row := db.Card{
		ID: id, Identity: identity(t.ids[hostName], c), Key: c.Key, Host: t.ids[hostName], Zone: t.agent.Zone, Model: model,
		VendorID: c.VendorID, DeviceID: c.DeviceID, SubsystemID: c.SubsystemID, Serial: c.Serial, UUID: c.UUID,
		Condition: services.CardReady, CleanOrder: max(c.CleanedOrder, c.FailedOrder), LastSeenAt: t.now,
	}
	switch {
	case !ok:
		row.Condition, row.ConditionReason = services.CardNeedsReview, "unknown model "+c.VendorID+":"+c.DeviceID
		t.drift("unknown-model", c.Key, row.ConditionReason)
	case len(t.seen[row.Identity]) > 1:
		row.Condition, row.ConditionReason = services.CardNeedsReview, "seen at once on "+strings.Join(t.seen[row.Identity], " and ")
	}
	err = place(&row, c)
	return row, err
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
	row.PCIAddress, row.IOMMUGroup, row.NUMANode, row.Functions = c.PCIAddress, known(c.IOMMUGroup), known(c.NUMANode), functions
	row.Driver, row.VBIOS, row.Firmware, row.Parents = driverOf(c), clip(c.VBIOS), clip(c.Firmware), parents(c)
	row.Problem = nil
	if c.Problem != nil {
		problem, err := json.Marshal(c.Problem)
		if err != nil {
			return fmt.Errorf("encode problem of card %s: %w", c.Key, err)
		}
		text := db.JSON(problem)
		row.Problem = &text
	}
	return nil
}

// known is a number as Linux numbers groups and nodes: below 0 it stands for none.
func known(n *int) *int {
	if n != nil && *n < 0 {
		return nil
	}
	return n
}

// driverOf is the driver of the card's GPU function; empty: none.
func driverOf(c agentapi.CardReport) string {
	for _, f := range c.Functions {
		if f.Address == c.PCIAddress {
			return clip(f.Driver)
		}
	}
	return ""
}

// maxParents bounds how deep a card lies in its host's PCI tree.
const maxParents = 16

func parents(c agentapi.CardReport) []string {
	out := []string{}
	for _, p := range c.Parents[:min(len(c.Parents), maxParents)] {
		out = append(out, clip(p))
	}
	return out
}

func (t *taking) event(ctx context.Context, tx *db.Tx, kind string, row db.Card, data ...any) error {
	args := map[string]any{"Key": row.Key}
	for i := 0; i+1 < len(data); i += 2 {
		args[fmt.Sprint(data[i])] = data[i+1]
	}
	return tx.InsertEvent(ctx, db.Event{At: t.now, Kind: kind, Actor: services.ActorHost, Data: args},
		db.Subject{Card: row.ID, Host: row.Host})
}

// seenCard follows a known card: what changed of it is written and told.
func (t *taking) seenCard(ctx context.Context, hostName string, row db.Card, c agentapi.CardReport) error {
	before := row
	if row.Condition == services.CardRetired {
		t.drift("retired-card", c.Key, "seen on "+hostName+", but it was retired")
		return nil
	}
	if row.Host != t.ids[hostName] {
		moved, err := t.elsewhere(ctx, hostName, row, c)
		if err != nil || !moved {
			return err
		}
		row.Host, row.Zone, row.Key = t.ids[hostName], t.agent.Zone, c.Key
		t.moved[row.ID] = true
	}
	if row.Model == "" {
		t.drift("unknown-model", c.Key, row.ConditionReason)
	}
	if err := place(&row, c); err != nil {
		return err
	}
	changes := changed(before, row)
	if len(changes) == 0 && row.Condition != services.CardCleaning {
		return nil
	}
	return t.db.Tx(ctx, func(tx *db.Tx) error {
		if len(changes) > 0 {
			row.MissingSince, row.LastSeenAt = nil, t.now
			if err := tx.SawCard(ctx, row); err != nil {
				return err
			}
			if err := t.tell(ctx, tx, row, changes); err != nil {
				return err
			}
		}
		return t.cleanedCard(ctx, tx, row, c)
	})
}

// elsewhere decides about a card that is seen on another host than the books
// have it on. It is the same card that moved where its former host says that it
// is gone, and nobody's VM has it. Seen on both at once, nobody can tell which
// one it is: it needs a review.
func (t *taking) elsewhere(ctx context.Context, hostName string, row db.Card, c agentapi.CardReport) (moved bool, err error) {
	detail := "seen on " + hostName + ", but the books have it on " + string(row.Host)
	both := len(t.seen[row.Identity]) > 1
	gone := row.MissingSince != nil || row.Agent == t.agent.ID && t.lists(row.Host) && !both
	switch {
	case both:
		t.drift("card-elsewhere", c.Key, "seen at once on "+strings.Join(t.seen[row.Identity], " and "))
		return false, t.review(ctx, row, "seen at once on "+strings.Join(t.seen[row.Identity], " and "))
	case !gone && row.Agent != t.agent.ID:
		t.drift("foreign-card", c.Key, detail)
		return false, nil
	case !gone || row.GPU != "":
		t.drift("card-elsewhere", c.Key, detail)
		return false, nil
	}
	return true, nil
}

// lists reports whether a full report shows cards of a host of this agent.
func (t *taking) lists(host services.HostID) bool {
	return !t.report.Partial && slices.ContainsFunc(t.report.Hosts, func(h agentapi.HostReport) bool {
		return t.ids[h.Name] == host && len(h.Cards) > 0
	})
}

// review takes a card out of offer until an operator has looked at it.
func (t *taking) review(ctx context.Context, row db.Card, reason string) error {
	if row.Condition == services.CardNeedsReview {
		return nil
	}
	return t.db.Tx(ctx, func(tx *db.Tx) error {
		c, err := tx.LockCard(ctx, row.ID)
		if err != nil {
			return err
		}
		c.Condition, c.ConditionReason, c.ConditionSince, c.ConditionActor, c.Undo = services.CardNeedsReview, reason, t.now, "", ""
		if err := tx.SetCondition(ctx, c); err != nil {
			return err
		}
		return t.event(ctx, tx, "card.needs-review", c, "Reason", reason)
	})
}

// change is one thing that a report shows otherwise than the books; one without
// a kind is written and not told.
type change struct {
	kind     string
	old, now string
}

// changed lists what differs of a card.
func changed(a, b db.Card) []change {
	var all []change
	add := func(differs bool, kind, old, now string) {
		if differs {
			all = append(all, change{kind, old, now})
		}
	}
	same := func(x, y *int) bool { return (x == nil) == (y == nil) && (x == nil || *x == *y) }
	add(a.MissingSince != nil, "card.returned", "", "")
	add(a.Host != b.Host, "card.moved", string(a.Host), string(b.Host))
	add(a.PCIAddress != b.PCIAddress, "card.address-changed", a.PCIAddress, b.PCIAddress)
	add(a.Driver != b.Driver && a.Driver+b.Driver != "", "card.driver-changed", a.Driver, b.Driver)
	add(a.VBIOS != b.VBIOS || a.Firmware != b.Firmware, "card.firmware-changed", a.VBIOS+" "+a.Firmware, b.VBIOS+" "+b.Firmware)
	add(!same(a.IOMMUGroup, b.IOMMUGroup) || !same(a.NUMANode, b.NUMANode) || !sameJSON(a.Functions, b.Functions) ||
		!slices.Equal(a.Parents, b.Parents) || !sameProblem(a.Problem, b.Problem), "", "", "")
	return all
}

// tell makes an event of each change that has a kind.
func (t *taking) tell(ctx context.Context, tx *db.Tx, row db.Card, changes []change) error {
	for _, c := range changes {
		if c.kind == "" {
			continue
		}
		if err := t.event(ctx, tx, c.kind, row, "Old", t.hostName(c.old), "New", t.hostName(c.now)); err != nil {
			return err
		}
	}
	return nil
}

// hostName names a host of this agent; any other text stays as it is.
func (t *taking) hostName(text string) string {
	for name, id := range t.ids {
		if string(id) == text {
			return name
		}
	}
	return text
}

// sameProblem compares by value, but for when it began.
func sameProblem(a, b *db.JSON) bool {
	if a == nil || b == nil {
		return a == b
	}
	var x, y agentapi.Problem
	if json.Unmarshal(*a, &x) != nil || json.Unmarshal(*b, &y) != nil {
		return false
	}
	x.Since, y.Since = time.Time{}, time.Time{}
	return x == y
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
