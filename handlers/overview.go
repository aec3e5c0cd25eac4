package handlers

import (
	"context"
	"net/http"

	"github.com/a-h/templ"

	"berth/services"
	"berth/services/compute"
	"berth/web/layout"
	"berth/web/overview"
	"berth/web/urls"
)

// overviewReader answers what an account's start page shows, in a region
// (empty: all).
type overviewReader interface {
	Overview(ctx context.Context, account services.AccountID, region string) (compute.Overview, error)
}

// overviewPages show what needs somebody now.
type overviewPages struct {
	site    *site
	compute overviewReader
}

func (s *site) overview() overviewPages { return overviewPages{site: s, compute: s.Compute} }

// page leads operators who are members of no account to the fleet.
func (h overviewPages) page(r *request) error {
	if r.account() == "" && r.session.Admin {
		return r.seeOther(urls.Admin)
	}
	return h.show(r, overview.View)
}

func (h overviewPages) fragment(r *request) error { return h.show(r, overview.Fragment) }

func (h overviewPages) show(r *request, view func(overview.Page) templ.Component) error {
	var p overview.Page
	var err error
	if p.Shell, p.Key, err = r.page(); err != nil {
		return err
	}
	o, err := h.compute.Overview(r.ctx(), r.account(), p.Region)
	if err != nil {
		return err
	}
	if p.Events, err = happenings(o.Events); err != nil {
		return err
	}
	p.Waiting, p.Models = h.waiting(o.Waiting), modelUses(o, p.Region)
	h.addIdle(&p, o)
	for _, op := range o.Operations {
		p.Operations = append(p.Operations, *h.site.progress(&op))
	}
	for _, c := range o.VMs {
		p.Machines = append(p.Machines, overview.PowerCount{Power: c.Power, Count: c.Count})
	}
	return r.render(http.StatusOK, view(p))
}

func (h overviewPages) waiting(all []compute.WaitingGPU) []overview.Waiting {
	rows := make([]overview.Waiting, 0, len(all))
	for _, w := range all {
		overdue := !w.Pending.Deadline.IsZero() && h.site.Now().After(w.Pending.Deadline)
		rows = append(rows, overview.Waiting{
			ID: w.GPU.ID, Name: w.GPU.Name, Model: w.GPU.Model, State: w.GPU.State, VM: w.VM.ID, VMName: w.VM.Name,
			Power: w.VM.Power, PowerSince: w.VM.PowerSince, OnHost: w.Pending.Wait == compute.WaitHost, Overdue: overdue,
			HostSilent: w.Pending.HostSilent, Since: w.Pending.Since,
		})
	}
	return rows
}

func (h overviewPages) addIdle(p *overview.Page, o compute.Overview) {
	for _, g := range o.Idle {
		p.Idle = append(p.Idle, overview.Idle{ID: g.ID, Name: g.Name, Model: g.Model, Zone: g.Zone, Since: g.StateSince})
	}
	held := 0
	for _, c := range o.Counts {
		if c.State == services.GPUAllocated {
			held += c.Count
		}
	}
	p.IdleMore = max(0, held-len(p.Idle))
}

// modelUses joins quotas and states, leaving out quotas of which nothing is
// used.
func modelUses(o compute.Overview, region string) []overview.ModelUse {
	var uses []overview.ModelUse
	for _, q := range o.Quotas {
		if region != "" && q.Region != region || q.Used == 0 {
			continue
		}
		u := overview.ModelUse{Model: q.Model, Region: q.Region, Used: q.Used, Max: q.Max}
		for _, c := range o.Counts {
			if c.Model == q.Model && c.Region == q.Region {
				addState(&u, c.State, c.Count)
			}
		}
		uses = append(uses, u)
	}
	return uses
}

func addState(u *overview.ModelUse, state services.GPUState, n int) {
	switch state {
	case services.GPUAllocated:
		u.Allocated += n
	case services.GPUAttaching:
		u.Attaching += n
	case services.GPUAttached:
		u.Attached += n
	case services.GPUDetaching:
		u.Detaching += n
	}
}

// nav is the sidebar's list, with fresh counts.
func (s *site) nav(r *request) error {
	shell, err := r.shell()
	if err != nil {
		return err
	}
	if err := r.count(&shell); err != nil {
		return err
	}
	return r.render(http.StatusOK, layout.Nav(shell, layout.Section(r.QueryParam("section"))))
}
