package handlers

import (
	"context"
	"net/http"
	"slices"
	"strings"

	"github.com/a-h/templ"

	"berth/services"
	"berth/services/compute"
	"berth/services/fleet"
	"berth/web/admin/hosts"
	"berth/web/urls"
)

// hostReader answers what hosts there are.
type hostReader interface {
	Hosts(ctx context.Context, f fleet.HostFilter) (fleet.HostPage, error)
	Host(ctx context.Context, id services.HostID) (fleet.HostDetail, error)
	AgentVersions(ctx context.Context) ([]string, error)
}

// hostWriter changes what work hosts take.
type hostWriter interface {
	SetModes(ctx context.Context, a services.Actor, ids []services.HostID, in fleet.NewMode) error
}

// hostPages show hosts, and change what work they take.
type hostPages struct {
	site   *site
	hosts  hostReader
	modes  hostWriter
	places rangeReader
}

func (s *site) hosts() hostPages {
	return hostPages{site: s, hosts: s.Fleet, modes: s.Fleet, places: s.Compute}
}

func (h hostPages) list(r *request) error { return h.showList(r, hosts.ListView) }

func (h hostPages) listFragment(r *request) error { return h.showList(r, hosts.ListFragment) }

func (h hostPages) showList(r *request, view func(hosts.List) templ.Component) error {
	l, err := h.buildList(r, hostQuery(fleetQuery(r.QueryParams())))
	if err != nil {
		return err
	}
	return r.render(http.StatusOK, view(l))
}

func hostQuery(q urls.ListQuery) urls.ListQuery {
	q.Account, q.Host, q.Actor, q.Object, q.From, q.Until = "", "", "", "", "", ""
	if !slices.Contains(hosts.States, q.State) {
		q.State = ""
	}
	q.After = string(after[services.HostID](q.After))
	return q
}

func (h hostPages) buildList(r *request, q urls.ListQuery) (hosts.List, error) {
	var l hosts.List
	var err error
	if l.Shell, l.Key, err = r.page(); err != nil {
		return l, err
	}
	page, err := h.hosts.Hosts(r.ctx(), fleet.HostFilter{
		Text: q.Text, Region: q.Region, Zone: q.Zone, Model: q.Model, Version: q.Version, State: q.State, Sort: q.Sort,
		After: services.HostID(q.After), Limit: pageRows,
	})
	if err != nil {
		return l, err
	}
	if len(page.Hosts) == 0 && q.After != "" { // its rows have gone
		q.After = ""
		return h.buildList(r, q)
	}
	l.Listing = listing(urls.AdminHosts, q, len(page.Hosts), page.Counts.Of(q.State), string(page.Next), "name")
	l.Count, l.Rows = page.Counts.Of, h.rows(page.Hosts)
	if l.Regions, l.Zones, l.Models, err = r.places(h.places, q); err != nil {
		return l, err
	}
	l.Versions, err = h.hosts.AgentVersions(r.ctx())
	return l, err
}

func (h hostPages) rows(all []fleet.HostRow) []hosts.Row {
	rows := make([]hosts.Row, 0, len(all))
	for _, x := range all {
		rows = append(rows, hosts.Row{
			ID: x.ID, Name: x.Name, Zone: x.Zone, Generation: x.Generation, VCores: x.VCores, MemoryMiB: int(x.MemoryMiB), Mode: x.Mode,
			ModeReason: x.ModeReason, Ready: x.Ready, Vouched: x.ConfirmedUntil.After(h.site.Now()), Seen: x.ReportedAt, Version: x.Version,
			Cards: x.Cards, Free: x.Free, Held: x.Held, Machines: x.VMs,
		})
	}
	return rows
}

func (h hostPages) page(r *request) error { return h.showPage(r, hosts.View) }

func (h hostPages) fragment(r *request) error { return h.showPage(r, hosts.Fragment) }

func (h hostPages) showPage(r *request, view func(hosts.Page) templ.Component) error {
	id, err := pathID[services.HostID](r)
	if err != nil {
		return err
	}
	p, err := h.buildPage(r, id)
	if err != nil {
		return err
	}
	p.Table = r.QueryParam("topology") == "table"
	return r.render(http.StatusOK, view(p))
}

func (h hostPages) buildPage(r *request, id services.HostID) (hosts.Page, error) {
	d, err := h.hosts.Host(r.ctx(), id)
	if err != nil {
		return hosts.Page{}, err
	}
	p := hosts.Page{Host: h.host(d), Cards: hostCards(d.Cards), Machines: machinesOf(d.Fates)}
	for _, f := range d.Findings {
		p.Checks = append(p.Checks, hosts.Check{Code: f.Code, OK: f.OK, Warning: f.Warning, Detail: f.Detail, Fix: f.Fix})
	}
	for _, n := range d.NUMA {
		p.Nodes = append(p.Nodes, hosts.Node{ID: n.ID, Socket: n.Socket, VCores: n.VCores, MemoryMiB: int(n.MemoryMiB)})
	}
	if p.Events, err = audited(d.Events); err != nil {
		return p, err
	}
	p.Shell, p.Key, err = r.page()
	return p, err
}

func (h hostPages) host(d fleet.HostDetail) hosts.Host {
	x := d.Host
	return hosts.Host{
		ID: x.ID, Name: x.Name, Zone: x.Zone, Generation: x.Generation, VCores: x.VCores, MemoryMiB: int(x.MemoryMiB), Kernel: x.Kernel,
		Mode: x.Mode, Reason: x.ModeReason, Since: x.ModeSince, By: x.ModeActor, Ready: x.Ready,
		Vouched: x.ConfirmedUntil.After(h.site.Now()), Seen: x.ReportedAt, AddedAt: x.CreatedAt,
		Agent: d.Agent.ID, Version: d.Agent.Version, Driver: d.Agent.Driver, Behind: int(d.Agent.DesiredRevision - d.Agent.ReachedRevision),
		ExpiresAt: d.Agent.ExpiresAt, Revoked: d.Agent.RevokedAt != nil,
	}
}

func hostCards(all []fleet.CardRow) []hosts.Card {
	cards := make([]hosts.Card, 0, len(all))
	for _, c := range all {
		cards = append(cards, hosts.Card{
			ID: c.ID, Model: c.Model, PCIAddress: c.PCIAddress, IOMMUGroup: c.IOMMUGroup, NUMANode: c.NUMANode, Driver: c.Driver,
			Functions: functionsOf(c), Parents: c.Parents, Status: c.Status, Reason: c.ConditionReason, GPU: c.GPU, GPUName: c.GPUName,
			State: c.GPUState, Account: c.Account, AccountName: c.AccountName, VMName: c.VMName,
		})
	}
	return cards
}

// functionsOf counts a card's functions by their addresses in the stored list.
func functionsOf(c fleet.CardRow) int { return strings.Count(string(c.Functions), `"address"`) }

func machinesOf(fates []compute.Fate) []hosts.Machine {
	all := make([]hosts.Machine, 0, len(fates))
	for _, f := range fates {
		all = append(all, hosts.Machine{
			ID: f.VM.ID, Name: f.VM.Name, Account: f.VM.Account, Owner: f.Owner, Type: f.VM.Type, VCores: f.VM.VCores, MemoryMiB: f.VM.MemoryMiB,
			Power: f.VM.Power, Running: f.Running, GPUs: f.GPUs, Moves: f.Moves, NoRoom: f.MayLater, Resumes: f.VM.Resume,
		})
	}
	return all
}

func newMode(f form) fleet.NewMode {
	confirm, err := f.flag("confirm")
	return fleet.NewMode{
		Mode: services.HostMode(f.text("mode")), Reason: f.Get("reason"),
		Confirm: err == nil && confirm,
	}
}

// setMode changes what work a host takes. A refusal shows the page again, with
// what was asked.
func (h hostPages) setMode(r *request) error {
	id, err := pathID[services.HostID](r)
	if err != nil {
		return err
	}
	f, err := r.form()
	if err != nil {
		return err
	}
	in := newMode(f)
	err = h.modes.SetModes(r.ctx(), r.actor(), []services.HostID{id}, in)
	return r.answer(err, urls.Host(id), func(status int, broken []services.Violation) error {
		p, err := h.buildPage(r, id)
		if err != nil {
			return err
		}
		p.Broken, p.Asked = broken, hosts.Asked{Mode: in.Mode, Reason: in.Reason, Confirm: in.Confirm}
		return r.render(status, hosts.View(p))
	})
}

// bulk changes what work several hosts take, all or none.
func (h hostPages) bulk(r *request) error {
	f, err := r.form()
	if err != nil {
		return err
	}
	ids, err := formIDs[services.HostID](f, "host")
	in := newMode(f)
	if err == nil {
		err = h.modes.SetModes(r.ctx(), r.actor(), slices.Clone(ids), in)
	}
	q := hostQuery(fleetQuery(r.referred(urls.AdminHosts)))
	return r.answer(err, q.On(urls.AdminHosts), func(status int, broken []services.Violation) error {
		l, err := h.buildList(r, q)
		if err != nil {
			return err
		}
		l.Broken, l.Reason = broken, in.Reason
		for i := range l.Rows {
			l.Rows[i].Ticked = slices.Contains(ids, l.Rows[i].ID)
		}
		return r.render(status, hosts.ListView(l))
	})
}
