package handlers

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"berth/services"
	"berth/services/compute"
	"berth/services/fleet"
	"berth/web/components"
	"berth/web/urls"
)

// fleetQuery reads what narrows, sorts and pages a list of the operator's.
func fleetQuery(q url.Values) urls.ListQuery {
	text := func(name string) string { return strings.TrimSpace(q.Get(name)) }
	return urls.ListQuery{
		Text: text("q"), Region: text("region"), Zone: text("zone"), Model: text("model"), State: text("state"), Account: text("account"),
		Version: text("version"), Host: text("host"), Actor: text("actor"), Object: text("object"), From: text("from"), Until: text("until"),
		Sort: order(q.Get("sort")), After: text("after"),
	}
}

// rangeReader answers what lists can be narrowed to.
type rangeReader interface {
	Zones(ctx context.Context) ([]compute.Zone, error)
	ModelNames(ctx context.Context) ([]string, error)
}

// places are what a list can be narrowed to; zones are those of its region.
func (r *request) places(from rangeReader, q urls.ListQuery) (regions, zones, models []string, err error) {
	all, err := from.Zones(r.ctx())
	if err != nil {
		return nil, nil, nil, err
	}
	for _, z := range all {
		if !slices.Contains(regions, z.Region) {
			regions = append(regions, z.Region)
		}
	}
	models, err = from.ModelNames(r.ctx())
	return regions, zonesIn(all, q.Region), models, err
}

// listing is a list as far as its query and its rows tell.
func listing(path string, q urls.ListQuery, shown, total int, next, column string) components.Listing {
	return components.Listing{Path: path, Query: q, Shown: shown, Total: total, Next: next, Column: column}
}

// audited make events of all accounts ready to be shown.
func audited(events []fleet.Event) ([]components.Happening, error) {
	all := make([]components.Happening, 0, len(events))
	for _, e := range events {
		h := components.Happening{
			ID: e.ID, At: e.At, Kind: e.Kind, Actor: e.Actor, GPU: e.GPU, GPUName: e.GPUName, VM: e.VM, VMName: e.VMName,
			From: e.From, To: e.To, RequestID: e.RequestID, Account: e.Account, AccountName: e.AccountName, Card: e.Card,
			Host: e.Host, HostName: e.HostName, Address: e.Address,
		}
		if err := json.Unmarshal(e.Data, &h.Args); err != nil {
			return nil, fmt.Errorf("decode data of event %d: %w", e.ID, err)
		}
		all = append(all, h)
	}
	return all, nil
}

// formIDs reads the fields of several objects; none at all is required.
func formIDs[T services.ID](f form, field string) ([]T, error) {
	ids := make([]T, 0, len(f.Values[field]))
	for _, text := range f.Values[field] {
		id, err := services.ParseID[T](strings.TrimSpace(text))
		if err != nil {
			return nil, err
		}
		ids = append(ids, id)
	}
	if len(ids) == 0 {
		return nil, services.Invalid(field, services.CodeRequired, nil)
	}
	return ids, nil
}

// referred is the query of the list that a form was sent from; empty where it
// was sent from elsewhere.
func (r *request) referred(path string) url.Values {
	u, err := url.Parse(r.here())
	if err != nil || u.Path != path {
		return url.Values{}
	}
	return u.Query()
}
