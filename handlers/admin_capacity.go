package handlers

import (
	"context"
	"net/http"
	"time"

	"github.com/a-h/templ"

	"berth/services/fleet"
	"berth/web/admin/capacity"
	"berth/web/urls"
)

// capacityReader answers how full the fleet is.
type capacityReader interface {
	Capacity(ctx context.Context, f fleet.CapacityFilter, r fleet.Range) (fleet.Capacity, error)
}

// capacityPages show how full the fleet is.
type capacityPages struct {
	site     *site
	capacity capacityReader
	places   rangeReader
}

func (s *site) capacity() capacityPages {
	return capacityPages{site: s, capacity: s.Fleet, places: s.Compute}
}

func (h capacityPages) page(r *request) error { return h.show(r, capacity.View) }

func (h capacityPages) fragment(r *request) error { return h.show(r, capacity.Fragment) }

// rangeOf finds a range by its name; the second of the list for any other.
func rangeOf(name string) fleet.Range {
	for _, r := range fleet.Ranges {
		if r.Name == name {
			return r
		}
	}
	return fleet.Ranges[1]
}

func (h capacityPages) show(r *request, view func(capacity.Page) templ.Component) error {
	q := fleetQuery(r.QueryParams())
	q = urls.ListQuery{Region: q.Region, Zone: q.Zone, Model: q.Model}
	span := rangeOf(r.QueryParam("range"))
	c, err := h.capacity.Capacity(r.ctx(), fleet.CapacityFilter{Region: q.Region, Zone: q.Zone, Model: q.Model}, span)
	if err != nil {
		return err
	}
	p := capacity.Page{Query: q, Range: span.Name, Sizes: fleet.Sizes, Trend: trendOf(c.Trend, h.site.Now(), span)}
	for _, x := range fleet.Ranges {
		p.Ranges = append(p.Ranges, x.Name)
	}
	for _, x := range c.Cells {
		p.Cells = append(p.Cells, cellOf(x))
	}
	for _, x := range c.Rooms {
		p.Rooms = append(p.Rooms, capacity.Room(x))
	}
	if p.Regions, p.Zones, p.Models, err = r.places(h.places, q); err != nil {
		return err
	}
	if p.Shell, err = r.shell(); err != nil {
		return err
	}
	return r.render(http.StatusOK, view(p))
}

func trendOf(points []fleet.Point, until time.Time, span fleet.Range) capacity.Trend {
	t := capacity.Trend{Since: until.Add(-span.Length), Until: until}
	for _, x := range points {
		t.Points = append(t.Points, capacity.Point(x))
	}
	return t
}

func cellOf(x fleet.Cell) capacity.Cell {
	c := capacity.Cell{Zone: x.Zone, Model: x.Model, Free: x.Free, Held: x.Held, Unavailable: x.Unavailable, Total: x.Total}
	for _, why := range []capacity.Reason{
		{Key: "missing", State: "missing", Count: x.Missing}, {Key: "quarantined", State: "quarantined", Count: x.Quarantined},
		{Key: "disabled", State: "disabled", Count: x.Disabled}, {Key: "needs_review", State: "needs_review", Count: x.NeedsReview},
		{Key: "cleaning", State: "cleaning", Count: x.Cleaning}, {Key: "draining", State: "draining", Count: x.Draining},
		{Key: "maintenance", State: "maintenance", Count: x.Maintenance}, {Key: "silent", State: "silent", Count: x.Silent},
		{Key: "not-ready", State: "not-ready", Count: x.NotReady},
	} {
		if why.Count > 0 {
			c.Reasons = append(c.Reasons, why)
		}
	}
	return c
}
