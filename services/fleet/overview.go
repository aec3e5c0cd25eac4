package fleet

import (
	"context"

	"berth/db"
	"berth/services"
)

// Overview is what an operator sees first: what needs a person, then capacity.
type Overview struct {
	Hosts      HostCounts
	Cards      CardCounts
	Inventory  []db.Inventory
	Drifts     []db.Drift // newest first, at most overviewRows
	MoreDrifts int
	Away       []HostRow // hosts that no report vouches for, or that are not ready
	Out        []CardRow // cards that need somebody
	Operations []db.OperationRow
	Agents     AgentCounts
	Trend      []Point // of OverviewRange, oldest first
	Events     []Event
}

// OverviewRange is which of Ranges the trend of the start page covers.
const OverviewRange = 1

// overviewRows bounds each list of the start page.
const overviewRows = 8

// Overview gives what an operator sees first.
func (s *Service) Overview(ctx context.Context) (Overview, error) {
	var o Overview
	for _, read := range []func(context.Context, *Overview) error{
		s.countFleet, s.readDrifts, s.readAway, s.readOut, s.readStuck, s.readAgents, s.readTrend, s.readNews,
	} {
		if err := read(ctx, &o); err != nil {
			return o, err
		}
	}
	return o, nil
}

func (s *Service) countFleet(ctx context.Context, o *Overview) error {
	var err error
	if o.Hosts, err = s.db.CountHosts(ctx, HostFilter{}); err != nil {
		return err
	}
	if o.Cards, err = s.db.CountCards(ctx, CardFilter{}); err != nil {
		return err
	}
	o.Inventory, err = s.db.Inventory(ctx)
	return err
}

func (s *Service) readDrifts(ctx context.Context, o *Overview) error {
	drifts, err := s.db.Drifts(ctx)
	o.Drifts = drifts[:min(len(drifts), overviewRows)]
	o.MoreDrifts = len(drifts) - len(o.Drifts)
	return err
}

func (s *Service) readAway(ctx context.Context, o *Overview) error {
	silent, err := s.db.ListHosts(ctx, HostFilter{State: "silent", Limit: overviewRows})
	if err != nil {
		return err
	}
	unready, err := s.db.ListHosts(ctx, HostFilter{State: "not-ready", Limit: overviewRows})
	o.Away = silent
	for _, h := range unready {
		if h.ConfirmedUntil.After(s.now()) { // else it is among the silent ones
			o.Away = append(o.Away, h)
		}
	}
	return err
}

// needing are the statuses of cards that wait for somebody.
var needing = []services.CardCondition{services.CardQuarantined, services.CardNeedsReview, services.CardMissing}

func (s *Service) readOut(ctx context.Context, o *Overview) error {
	for _, c := range needing {
		cards, err := s.db.ListCards(ctx, CardFilter{State: string(c), Limit: overviewRows})
		if err != nil {
			return err
		}
		o.Out = append(o.Out, cards...)
	}
	return nil
}

func (s *Service) readStuck(ctx context.Context, o *Overview) error {
	var err error
	o.Operations, err = s.db.ListOperations(ctx, db.OperationFilter{State: string(services.OpStuck), Limit: overviewRows})
	return err
}

func (s *Service) readAgents(ctx context.Context, o *Overview) error {
	agents, err := s.db.Agents(ctx)
	for _, a := range agents {
		o.Agents.add(a, s.now())
	}
	return err
}

func (s *Service) readTrend(ctx context.Context, o *Overview) error {
	var err error
	o.Trend, err = s.db.Trend(ctx, CapacityFilter{}, s.now().Add(-Ranges[OverviewRange].Length), Ranges[OverviewRange].Stretch)
	return err
}

func (s *Service) readNews(ctx context.Context, o *Overview) error {
	var err error
	o.Events, err = s.db.ListAudit(ctx, db.AuditFilter{Limit: overviewRows})
	return err
}

// Drift is a difference between reality and the books.
type Drift = db.Drift

// Drifts lists where reality and the books differ, newest first.
func (s *Service) Drifts(ctx context.Context) ([]db.Drift, error) { return s.db.Drifts(ctx) }
