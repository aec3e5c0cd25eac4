package db

import (
	"context"
	"time"
)

// Cell is the cards of a model in a zone: Free, Held and Unavailable are Total.
type Cell struct {
	Zone        string `db:"zone_id"`
	Region      string `db:"region_id"`
	Model       string `db:"model_id"` // empty: unknown to the catalogue
	Free        int    `db:"free"`
	Held        int    `db:"held"`
	Unavailable int    `db:"unavailable"`
	Total       int    `db:"total"`

	// Why cards are unavailable; each counts for the first that applies.
	Missing     int `db:"missing"`
	Quarantined int `db:"quarantined"`
	Disabled    int `db:"disabled"`
	NeedsReview int `db:"needs_review"`
	Cleaning    int `db:"cleaning"`
	Draining    int `db:"draining"`    // their host is
	Maintenance int `db:"maintenance"` // likewise
	Silent      int `db:"silent"`      // likewise
	NotReady    int `db:"not_ready"`   // likewise
}

// CapacityFilter narrows capacity.
type CapacityFilter struct{ Region, Zone, Model string }

func (f CapacityFilter) where(zone, model string) *conditions {
	w := &conditions{}
	w.addIf(f.Region != "", zone+" in (select id from zones where region_id = ?)", f.Region)
	w.addIf(f.Zone != "", zone+" = ?", f.Zone)
	w.addIf(f.Model != "", "coalesce("+model+", '') = ?", f.Model)
	return w
}

// Capacity counts all cards but retired ones by zone and model.
func (s Store) Capacity(ctx context.Context, f CapacityFilter) ([]Cell, error) {
	w := f.where("c.zone_id", "c.model_id")
	w.addRaw("c.status <> 'retired'")
	var cells []Cell
	err := s.all(ctx, &cells, "count capacity", `
		select n.*, z.region_id from (
			select c.zone_id, coalesce(c.model_id, '') as model_id, count(*) as total,
			       count(*) filter (where`+offeredCount+`) as free, count(*) filter (where c.held) as held,
			       count(*) filter (where not c.held and not (`+offeredCount+`)) as unavailable,
			       count(*) filter (where not c.held and c.status = 'missing') as missing,
			       count(*) filter (where not c.held and c.status = 'quarantined') as quarantined,
			       count(*) filter (where not c.held and c.status = 'disabled') as disabled,
			       count(*) filter (where not c.held and c.status = 'needs_review') as needs_review,
			       count(*) filter (where not c.held and c.status = 'cleaning') as cleaning,
			       count(*) filter (where not c.held and c.status = 'ready' and h.mode = 'draining') as draining,
			       count(*) filter (where not c.held and c.status = 'ready' and h.mode = 'maintenance') as maintenance,
			       count(*) filter (where not c.held and c.status = 'ready' and h.mode = 'accepting' and `+silent+`) as silent,
			       count(*) filter (where not c.held and c.status = 'ready' and h.mode = 'accepting' and not (`+silent+`) and not h.ready) as not_ready
			from cards c join hosts h on h.id = c.host_id`+w.sql()+`
			group by 1, 2) n join zones z on z.id = n.zone_id order by z.region_id, n.zone_id, n.model_id`, w.args...)
	return cells, err
}

// Fragment counts hosts of a zone that have a number of free cards of a model.
type Fragment struct {
	Zone  string `db:"zone_id"`
	Model string `db:"model_id"`
	Free  int    `db:"free"` // on each of the hosts
	Hosts int    `db:"hosts"`
}

// Fragments counts hosts by how many free cards of a model they have.
func (s Store) Fragments(ctx context.Context, f CapacityFilter) ([]Fragment, error) {
	w := f.where("c.zone_id", "c.model_id")
	w.addRaw(offeredCount)
	var all []Fragment
	err := s.all(ctx, &all, "count free cards of hosts", `
		select zone_id, model_id, free, count(*) as hosts from (
			select c.zone_id, coalesce(c.model_id, '') as model_id, c.host_id, count(*) as free
			from cards c join hosts h on h.id = c.host_id`+w.sql()+` group by 1, 2, 3) n
		group by 1, 2, 3 order by 1, 2, 3`, w.args...)
	return all, err
}

// Sample notes what capacity is, once for a moment, whoever does it.
func (s Store) Sample(ctx context.Context, at time.Time, cells []Cell) error {
	for _, c := range cells {
		if _, err := s.exec(ctx, "note capacity", `
			insert into capacity_samples (at, zone_id, model_id, free, held, unavailable) values ($1, $2, $3, $4, $5, $6)
			on conflict do nothing`, at, c.Zone, c.Model, c.Free, c.Held, c.Unavailable); err != nil {
			return err
		}
	}
	return nil
}

// ThinSamples keeps one sample an hour of those before fine, and none before gone.
func (s Store) ThinSamples(ctx context.Context, fine, gone time.Time) error {
	_, err := s.exec(ctx, "thin capacity samples", `
		delete from capacity_samples where at < $2 or at < $1 and date_trunc('hour', at) <> at`, fine, gone)
	return err
}

// Point is capacity in a stretch of time: the averages of its samples.
type Point struct {
	At          time.Time `db:"at"` // the stretch's beginning
	Free        float64   `db:"free"`
	Held        float64   `db:"held"`
	Unavailable float64   `db:"unavailable"`
}

// Trend gives capacity since a moment in stretches of a length; stretches
// without a sample are left out.
func (s Store) Trend(ctx context.Context, f CapacityFilter, since time.Time, stretch time.Duration) ([]Point, error) {
	w := f.where("x.zone_id", "x.model_id")
	w.add("x.at >= ?", since)
	w.args = append(w.args, stretch.Seconds())
	var points []Point
	err := s.all(ctx, &points, "read capacity samples", `
		select to_timestamp(floor(extract(epoch from at) / `+w.last()+`) * `+w.last()+`) as at,
		       avg(free) as free, avg(held) as held, avg(unavailable) as unavailable
		from (select x.at, sum(x.free) as free, sum(x.held) as held, sum(x.unavailable) as unavailable
		      from capacity_samples x`+w.sql()+` group by x.at) n group by 1 order by 1`, w.args...)
	return points, err
}
