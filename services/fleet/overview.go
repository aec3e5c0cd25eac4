package fleet

import (
	"context"

	"berth/db"
)

// Overview is what an operator sees first.
type Overview struct {
	Agents    []db.Agent
	Hosts     []db.Host
	Inventory []db.Inventory
	Drifts    []db.Drift
}

// Overview gives agents, hosts, card counts and drifts.
func (s *Service) Overview(ctx context.Context) (Overview, error) {
	var o Overview
	var err error
	if o.Agents, err = s.db.Agents(ctx); err != nil {
		return o, err
	}
	if o.Hosts, err = s.db.Hosts(ctx); err != nil {
		return o, err
	}
	if o.Inventory, err = s.db.Inventory(ctx); err != nil {
		return o, err
	}
	o.Drifts, err = s.db.Drifts(ctx)
	return o, err
}
