package handlers

import (
	"context"
	"net/http"

	"github.com/a-h/templ"

	"berth/services/fleet"
	"berth/web/admin"
	"berth/web/components"
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
	p, err := h.build(r)
	if err != nil {
		return err
	}
	return r.render(http.StatusOK, view(p))
}

func (h adminPages) build(r *request) (admin.Page, error) {
	o, err := h.fleet.Overview(r.ctx())
	if err != nil {
		return admin.Page{}, err
	}
	p := admin.Page{
		Hosts: o.Hosts.All, Accepting: o.Hosts.Accepting, Draining: o.Hosts.Draining, Maintenance: o.Hosts.Maintenance,
		Silent: o.Hosts.Silent, NotReady: o.Hosts.NotReady,
		Cards: o.Cards.All, Free: o.Cards.Free, Held: o.Cards.Held, Unavailable: o.Cards.Unavailable,
		MoreDrifts: o.MoreDrifts,
		Agents:     admin.Agents{All: o.Agents.All, Expiring: o.Agents.Expiring, Expired: o.Agents.Expired},
		Away:       h.away(o.Away), Out: outCards(o.Out),
		Trend: trendOf(o.Trend, h.site.Now(), fleet.Ranges[fleet.OverviewRange]),
	}
	for _, d := range o.Drifts {
		p.Drifts = append(p.Drifts, drift(d))
	}
	for _, i := range o.Inventory {
		p.Pools = append(p.Pools, admin.Pool{Zone: i.Zone, Model: i.Model, Free: i.Free, Held: i.Held, Unavailable: i.Unavailable, Total: i.Total})
	}
	for _, op := range o.Operations {
		p.Operations = append(p.Operations, admin.Stuck{Progress: *h.site.progress(&op.Operation), Account: op.AccountName, Host: op.Host, HostName: op.HostName})
	}
	if p.Events, err = audited(o.Events); err != nil {
		return p, err
	}
	p.Shell, err = r.shell()
	return p, err
}

func drift(d fleet.Drift) components.Drift {
	return components.Drift{Kind: d.Kind, Subject: d.Subject, Detail: d.Detail, Agent: d.Agent, Since: d.FirstSeen}
}

func (h adminPages) away(all []fleet.HostRow) []admin.Away {
	rows := make([]admin.Away, 0, len(all))
	for _, x := range all {
		rows = append(rows, admin.Away{
			ID: x.ID, Name: x.Name, Zone: x.Zone, Seen: x.ReportedAt, Silent: !x.ConfirmedUntil.After(h.site.Now()), Held: x.Held, Machines: x.VMs,
		})
	}
	return rows
}

func outCards(all []fleet.CardRow) []admin.Out {
	rows := make([]admin.Out, 0, len(all))
	for _, c := range all {
		rows = append(rows, admin.Out{
			ID: c.ID, Model: c.Model, HostName: c.HostName, Address: c.PCIAddress, Status: c.Status, Reason: c.ConditionReason, Since: c.ConditionSince,
		})
	}
	return rows
}
