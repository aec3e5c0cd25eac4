package fleet

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"berth/db"
	"berth/services"
	"berth/services/agentapi"
	"berth/services/compute"
)

// What operators read, as the database has it.
type (
	// Host is a machine with cards.
	Host = db.Host
	// HostRow is a host of a list.
	HostRow = db.HostRow
	// HostFilter narrows a list of hosts.
	HostFilter = db.HostFilter
	// HostCounts counts hosts by state.
	HostCounts = db.HostCounts
	// CardRow is a card with its host and holder.
	CardRow = db.CardRow
	// CardFilter narrows a list of cards.
	CardFilter = db.CardFilter
	// CardCounts counts cards by state.
	CardCounts = db.CardCounts
	// Holding is who had a card, and when.
	Holding = db.Holding
	// Event is something that happened, with where it came from.
	Event = db.AuditRow
)

// ModelUnknown is the filter for cards that the catalogue has no model of.
const ModelUnknown = db.ModelUnknown

// HostPage is one page of hosts with the counts of all that match but for their state.
type HostPage struct {
	Hosts  []HostRow
	Counts HostCounts
	Next   services.HostID // the next page's After; empty: the last page
}

// Hosts gives a page of all hosts.
func (s *Service) Hosts(ctx context.Context, f HostFilter) (HostPage, error) {
	counts, err := s.db.CountHosts(ctx, f)
	if err != nil {
		return HostPage{}, err
	}
	limit := f.Limit
	f.Limit++
	rows, err := s.db.ListHosts(ctx, f)
	p := HostPage{Hosts: rows, Counts: counts}
	if limit > 0 && len(rows) > limit {
		p.Hosts, p.Next = rows[:limit], rows[limit-1].ID
	}
	return p, err
}

// AgentVersions lists the versions of agents in use, the commonest first.
func (s *Service) AgentVersions(ctx context.Context) ([]string, error) {
	return s.db.AgentVersions(ctx)
}

// HostDetail is everything about one host.
type HostDetail struct {
	Host     Host
	Agent    Agent
	NUMA     []agentapi.NUMANode
	Findings []agentapi.Finding
	Cards    []CardRow      // by NUMA node and address, retired ones left out
	Fates    []compute.Fate // of its VMs, in maintenance
	Events   []Event        // newest first
}

const detailEvents = 50

// Host gives everything about a host.
func (s *Service) Host(ctx context.Context, id services.HostID) (HostDetail, error) {
	h, err := s.db.Host(ctx, id)
	if err != nil {
		return HostDetail{}, err
	}
	d := HostDetail{Host: h}
	if err := json.Unmarshal(h.NUMA, &d.NUMA); err != nil {
		return d, fmt.Errorf("decode NUMA nodes of %s: %w", id, err)
	}
	if err := json.Unmarshal(h.Findings, &d.Findings); err != nil {
		return d, fmt.Errorf("decode findings of %s: %w", id, err)
	}
	if d.Agent, _, err = s.db.Agent(ctx, h.Agent); err != nil {
		return d, err
	}
	if d.Cards, err = s.db.HostCards(ctx, id); err != nil {
		return d, err
	}
	if d.Fates, err = s.machines.Fates(ctx, id); err != nil {
		return d, err
	}
	d.Events, err = s.db.ListAudit(ctx, db.AuditFilter{Host: id, Limit: detailEvents})
	return d, err
}

// NewMode asks for what work a host takes.
type NewMode struct {
	Mode    services.HostMode
	Reason  string // why; needed but for accepting
	Confirm bool   // whoever asks knows which VMs move and stop
}

const maxReason = 500

// SetMode changes what work a host takes. Its cards leave or join capacity at
// once; VMs that have to leave do so after it, one operation each, and those
// that maintenance stopped start again when the host accepts. Refusals (invalid):
// invalid-value, required and too-long in a field, confirm where VMs run that
// would move or stop.
func (s *Service) SetMode(ctx context.Context, a services.Actor, id services.HostID, in NewMode) error {
	return s.SetModes(ctx, a, []services.HostID{id}, in)
}

// SetModes is SetMode for several hosts, all or none.
func (s *Service) SetModes(ctx context.Context, a services.Actor, ids []services.HostID, in NewMode) error {
	reason, err := checkMode(in)
	if err != nil {
		return err
	}
	slices.Sort(ids) // locks are taken in one order
	if !in.Confirm {
		if err := s.unconfirmed(ctx, ids, in.Mode); err != nil {
			return err
		}
	}
	err = s.db.Tx(ctx, func(tx *db.Tx) error {
		for _, id := range ids {
			if err := s.setMode(ctx, tx, a, id, in.Mode, reason); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	if err := s.machines.TendHosts(ctx); err != nil { // it is repeated until it is done
		s.log.WarnContext(ctx, "VMs of hosts not moved on at once", "error", err)
	}
	return nil
}

func checkMode(in NewMode) (reason string, err error) {
	if !in.Mode.Valid() {
		return "", services.NoneOf("mode", string(in.Mode), "accepting", "draining", "maintenance")
	}
	reason, err = checkReason(in.Reason)
	if err == nil && reason == "" && in.Mode != services.HostAccepting {
		err = services.Invalid("reason", services.CodeRequired, nil)
	}
	return reason, err
}

// checkReason trims a reason and refuses one that no page could show.
func checkReason(text string) (string, error) {
	text = strings.TrimSpace(text)
	switch {
	case utf8.RuneCountInString(text) > maxReason:
		return "", services.Invalid("reason", services.CodeTooLong, map[string]any{"Max": maxReason})
	case strings.ContainsFunc(text, func(r rune) bool { return r < ' ' && r != '\n' && r != '\r' && r != '\t' }):
		return "", services.Invalid("reason", services.CodeInvalidValue, map[string]any{"Value": ""})
	}
	return text, nil
}

// unconfirmed refuses a mode that moves or stops what runs.
func (s *Service) unconfirmed(ctx context.Context, ids []services.HostID, mode services.HostMode) error {
	if mode == services.HostAccepting {
		return nil
	}
	moving, stopping := 0, 0
	for _, id := range ids {
		fates, err := s.machines.Fates(ctx, id)
		if err != nil {
			return err
		}
		moves, stops := Affected(fates, mode)
		moving, stopping = moving+len(moves), stopping+len(stops)
	}
	if moving+stopping == 0 {
		return nil
	}
	return services.Invalid("confirm", services.CodeConfirm, map[string]any{"Moves": moving, "Stops": stopping})
}

// Affected are the VMs that a mode of their host moves, and those it stops.
func Affected(fates []compute.Fate, mode services.HostMode) (moves, stops []compute.Fate) {
	for _, f := range fates {
		switch {
		case !f.Running || mode == services.HostAccepting:
		case f.Moves:
			moves = append(moves, f)
		case mode == services.HostMaintenance:
			stops = append(stops, f)
		}
	}
	return moves, stops
}

func (s *Service) setMode(ctx context.Context, tx *db.Tx, a services.Actor, id services.HostID, mode services.HostMode, reason string) error {
	h, err := tx.LockHost(ctx, id)
	if err != nil || h.Mode == mode && h.ModeReason == reason {
		return err
	}
	before := h.Mode
	if h.Mode != mode {
		h.ModeSince = s.now()
	}
	h.Mode, h.ModeReason, h.ModeActor = mode, reason, a.Email
	if err := tx.SetHostMode(ctx, h); err != nil {
		return err
	}
	return tx.InsertEvent(ctx, s.event(a, "host."+string(mode), map[string]any{"Host": h.Name, "Reason": reason}),
		db.Subject{Host: id, From: string(before), To: string(mode)})
}

func (s *Service) event(a services.Actor, kind string, data map[string]any) db.Event {
	return db.Event{At: s.now(), Kind: kind, Actor: a.Email, RequestID: a.RequestID, Address: a.Address, Data: data}
}

// NoteSilence tells of hosts that no report vouches for any more. A console
// that was away itself first gives them the time to report.
func (s *Service) NoteSilence(ctx context.Context) error {
	if s.now().Sub(s.started) < s.trust {
		return nil
	}
	return s.db.Tx(ctx, func(tx *db.Tx) error {
		hosts, err := tx.FallSilent(ctx)
		for _, h := range hosts {
			err = errors.Join(err, tx.InsertEvent(ctx,
				db.Event{At: s.now(), Kind: "host.silent", Actor: services.ActorConsole, Data: map[string]any{"Host": h.Name}}, db.Subject{Host: h.ID}))
		}
		return err
	})
}
