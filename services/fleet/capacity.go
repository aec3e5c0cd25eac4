package fleet

import (
	"context"
	"time"

	"berth/db"
)

// What capacity is made of, as the database has it.
type (
	// Cell is the cards of a model in a zone.
	Cell = db.Cell
	// CapacityFilter narrows capacity.
	CapacityFilter = db.CapacityFilter
	// Point is capacity in a stretch of time.
	Point = db.Point
)

// Sizes are the machines that fragmentation is told for, by their GPUs.
var Sizes = []int{1, 2, 4, 8}

// Room is how many machines of each of Sizes could still start in a zone with
// GPUs of a model: all GPUs of a machine sit in one host.
type Room struct {
	Zone, Model string
	Machines    []int // for each of Sizes
}

// Capacity is what there is, what could still start, and what there was.
type Capacity struct {
	Cells []Cell
	Rooms []Room
	Trend []Point // oldest first
}

// Range is how far back a trend goes.
type Range struct {
	Name    string
	Length  time.Duration
	Stretch time.Duration // that each point is the average of
}

// Ranges are what a trend can show.
var Ranges = []Range{
	{"1h", time.Hour, time.Minute}, {"24h", 24 * time.Hour, 15 * time.Minute}, {"7d", 7 * 24 * time.Hour, 2 * time.Hour},
	{"30d", 30 * 24 * time.Hour, 8 * time.Hour},
}

// Capacity gives capacity with its trend over a range.
func (s *Service) Capacity(ctx context.Context, f CapacityFilter, r Range) (Capacity, error) {
	var c Capacity
	var err error
	if c.Cells, err = s.db.Capacity(ctx, f); err != nil {
		return c, err
	}
	fragments, err := s.db.Fragments(ctx, f)
	if err != nil {
		return c, err
	}
	c.Rooms = rooms(fragments)
	c.Trend, err = s.db.Trend(ctx, f, s.now().Add(-r.Length), r.Stretch)
	return c, err
}

func rooms(fragments []db.Fragment) []Room {
	var all []Room
	for _, f := range fragments {
		if n := len(all); n == 0 || all[n-1].Zone != f.Zone || all[n-1].Model != f.Model {
			all = append(all, Room{Zone: f.Zone, Model: f.Model, Machines: make([]int, len(Sizes))})
		}
		for i, size := range Sizes {
			all[len(all)-1].Machines[i] += f.Hosts * (f.Free / size)
		}
	}
	return all
}

// How long samples are kept one a minute, and one an hour.
const (
	fineSamples = 2 * 24 * time.Hour
	oldSamples  = 400 * 24 * time.Hour
)

// Sample notes the present capacity for the trend, once a minute however often
// and by however many it is called, and thins what is old.
func (s *Service) Sample(ctx context.Context) error {
	at := s.now().UTC().Truncate(time.Minute)
	cells, err := s.db.Capacity(ctx, CapacityFilter{})
	if err != nil {
		return err
	}
	if err := s.db.Sample(ctx, at, cells); err != nil {
		return err
	}
	return s.db.ThinSamples(ctx, at.Add(-fineSamples), at.Add(-oldSamples))
}
