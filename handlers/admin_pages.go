package handlers

import (
	"context"
	"net/http"

	"github.com/a-h/templ"

	"berth/services/fleet"
	"berth/web/admin"
)

// fleetReader answers how the fleet stands.
type fleetReader interface {
	Overview(ctx context.Context) (fleet.Overview, error)
}

// adminPages show the fleet to operators.
type adminPages struct {
	site  *site
	fleet fleetReader
}

func (s *site) admin() adminPages { return adminPages{site: s, fleet: s.Fleet} }

func (h adminPages) page(r *request) error { return h.show(r, admin.View) }

func (h adminPages) fragment(r *request) error { return h.show(r, admin.Fragment) }

func (h adminPages) show(r *request, view func(admin.Page) templ.Component) error {
	shell, err := r.shell()
	if err != nil {
		return err
	}
	o, err := h.fleet.Overview(r.ctx())
	if err != nil {
		return err
	}
	p := admin.Page{Shell: shell}
	for _, d := range o.Drifts {
		p.Drifts = append(p.Drifts, admin.Drift{Kind: d.Kind, Subject: d.Subject, Detail: d.Detail, Agent: d.Agent, Since: d.FirstSeen})
	}
	for _, i := range o.Inventory {
		p.Pools = append(p.Pools, admin.Pool{Zone: i.Zone, Model: i.Model, Free: i.Free, Held: i.Held, Unavailable: i.Unavailable, Total: i.Total})
	}
	h.addPrograms(&p, o)
	return r.render(http.StatusOK, view(p))
}

func (h adminPages) addPrograms(p *admin.Page, o fleet.Overview) {
	for _, x := range o.Hosts {
		p.Hosts = append(p.Hosts, admin.Host{
			ID: x.ID, Name: x.Name, Zone: x.Zone, Generation: x.Generation, VCores: x.VCores, MemoryMiB: int(x.MemoryMiB),
			Mode: x.Mode, Seen: x.ReportedAt, Vouched: x.ConfirmedUntil.After(h.site.Now()),
		})
	}
	for _, a := range o.Agents {
		row := admin.Agent{
			ID: a.ID, Zone: a.Zone, Version: a.Version, Driver: a.Driver, Behind: a.DesiredRevision - a.ReachedRevision,
			ExpiresAt: a.ExpiresAt, Revoked: a.RevokedAt != nil,
		}
		if a.ReportedAt != nil {
			row.Seen = *a.ReportedAt
		}
		p.Agents = append(p.Agents, row)
	}
}
