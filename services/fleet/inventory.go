package fleet

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"berth/db"
	"berth/services"
	"berth/services/agentapi"
)

// CardPage is one page of cards with the counts of all that match but for their state.
type CardPage struct {
	Cards  []CardRow
	Counts CardCounts
	Next   services.CardID // the next page's After; empty: the last page
}

// Cards gives a page of all cards.
func (s *Service) Cards(ctx context.Context, f CardFilter) (CardPage, error) {
	counts, err := s.db.CountCards(ctx, f)
	if err != nil {
		return CardPage{}, err
	}
	limit := f.Limit
	f.Limit++
	rows, err := s.db.ListCards(ctx, f)
	p := CardPage{Cards: rows, Counts: counts}
	if limit > 0 && len(rows) > limit {
		p.Cards, p.Next = rows[:limit], rows[limit-1].ID
	}
	return p, err
}

// CardDetail is everything about one card.
type CardDetail struct {
	Card      CardRow
	Deadline  *time.Time // of a reset and scrub under way; past it an operator is told, it still ends by itself when it can
	Functions []agentapi.Function
	Problem   *agentapi.Problem // what its host says keeps it from what is wanted; nil: nothing
	Choices   []CardChoice      // what an operator may do with it now
	Holdings  []Holding         // newest first
	Events    []Event           // newest first
}

// Card gives everything about a card.
func (s *Service) Card(ctx context.Context, id services.CardID) (CardDetail, error) {
	row, err := s.db.CardRow(ctx, id)
	if err != nil {
		return CardDetail{}, err
	}
	d := CardDetail{Card: row}
	if row.Status == services.CardCleaning {
		d.Deadline = new(row.ConditionSince.Add(s.prepare))
	}
	if err := json.Unmarshal(row.Functions, &d.Functions); err != nil {
		return d, fmt.Errorf("decode functions of %s: %w", id, err)
	}
	if d.Problem, err = cardProblem(row.Card); err != nil {
		return d, err
	}
	if d.Holdings, err = s.db.Holdings(ctx, id, detailEvents); err != nil {
		return d, err
	}
	if d.Events, err = s.db.ListAudit(ctx, db.AuditFilter{Card: id, Limit: detailEvents}); err != nil {
		return d, err
	}
	vms, err := s.db.HostVMs(ctx, row.Host)
	d.Choices = choices(row, d.Problem, vms)
	return d, err
}

// cardProblem reads what its host says of a card; nil: nothing.
func cardProblem(c db.Card) (*agentapi.Problem, error) {
	if c.Problem == nil {
		return nil, nil
	}
	var p agentapi.Problem
	if err := json.Unmarshal(*c.Problem, &p); err != nil {
		return nil, fmt.Errorf("decode problem of %s: %w", c.ID, err)
	}
	return &p, nil
}
