package handlers

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/a-h/templ"

	"berth/services"
	"berth/services/catalog"
	"berth/services/compute"
	"berth/web/gpus"
	"berth/web/urls"
)

// gpuReader answers what an account's GPUs are. What is another account's is
// not found.
type gpuReader interface {
	ListGPUs(ctx context.Context, f compute.GPUFilter) (compute.GPUPage, error)
	GPU(ctx context.Context, account services.AccountID, id services.GPUID) (compute.GPUDetail, error)
	VMChoices(ctx context.Context, account services.AccountID, id services.GPUID) ([]compute.VMChoice, error)
	ListVMs(ctx context.Context, f compute.VMFilter) (compute.VMPage, error)
}

// catalogReader answers what can be had.
type catalogReader interface {
	Catalogue(ctx context.Context) (compute.Catalogue, error)
	Zones(ctx context.Context) ([]compute.Zone, error)
	Models(ctx context.Context) ([]catalog.Model, error)
	QuotaUses(ctx context.Context, account services.AccountID) ([]compute.QuotaUse, error)
}

// gpuPages show GPUs.
type gpuPages struct {
	site    *site
	gpus    gpuReader
	catalog catalogReader
}

func (s *site) gpus() gpuPages { return gpuPages{site: s, gpus: s.Compute, catalog: s.Compute} }

func (h gpuPages) list(r *request) error { return h.showList(r, gpus.ListView) }

func (h gpuPages) listFragment(r *request) error { return h.showList(r, gpus.ListFragment) }

func (h gpuPages) showList(r *request, view func(gpus.List) templ.Component) error {
	l, err := h.buildList(r, gpuQuery(r.QueryParams()))
	if err != nil {
		return err
	}
	return r.render(http.StatusOK, view(l))
}

func (h gpuPages) page(r *request) error { return h.showPage(r, gpus.View) }

func (h gpuPages) fragment(r *request) error { return h.showPage(r, gpus.Fragment) }

func (h gpuPages) showPage(r *request, view func(gpus.Page) templ.Component) error {
	id, err := pathID[services.GPUID](r)
	if err != nil {
		return err
	}
	p, err := h.buildPage(r, id)
	if err != nil {
		return err
	}
	return r.render(http.StatusOK, view(p))
}

func gpuQuery(q url.Values) urls.GPUQuery {
	out := urls.GPUQuery{
		State: q.Get("state"), Model: q.Get("model"), Zone: q.Get("zone"), Text: strings.TrimSpace(q.Get("q")), Sort: order(q.Get("sort")),
		After: after[services.GPUID](q.Get("after")),
	}
	if gpus.StateFilter(out.State) == nil {
		out.State = ""
	}
	return out
}

// buildList makes the list of the account's GPUs in the region looked at.
func (h gpuPages) buildList(r *request, q urls.GPUQuery) (gpus.List, error) {
	l := gpus.List{Query: q}
	var err error
	if l.Shell, l.Key, err = r.page(); err != nil {
		return l, err
	}
	page, err := h.gpus.ListGPUs(r.ctx(), compute.GPUFilter{
		Account: r.account(), Query: q.Text, Region: l.Region, Zone: q.Zone, Model: q.Model, States: gpus.StateFilter(q.State),
		Sort: q.Sort, After: q.After, Limit: pageRows,
	})
	if err != nil {
		return l, err
	}
	if len(page.GPUs) == 0 && q.After != "" { // its rows have gone
		q.After = ""
		return h.buildList(r, q)
	}
	l.Rows, l.Next, l.Counts = gpuRows(page.GPUs), page.Next, gpuCounts(page.Counts)
	if err := h.addFilters(r, &l); err != nil || !l.CanWrite() {
		return l, err
	}
	l.Machines, err = h.machines(r, l.Region)
	return l, err
}

func (h gpuPages) addFilters(r *request, l *gpus.List) error {
	zones, err := h.catalog.Zones(r.ctx())
	if err != nil {
		return err
	}
	uses, err := h.catalog.QuotaUses(r.ctx(), r.account())
	if err != nil {
		return err
	}
	l.Zones, l.Quotas = zonesIn(zones, l.Region), quotasIn(uses, l.Region)
	for _, q := range l.Quotas {
		if !slices.Contains(l.Models, q.Model) {
			l.Models = append(l.Models, q.Model)
		}
	}
	slices.Sort(l.Models)
	return nil
}

// pickerRows bounds how many VMs a picker lists.
const pickerRows = 200

// machines lists the VMs that take flexible GPUs.
func (h gpuPages) machines(r *request, region string) ([]gpus.Choice, error) {
	page, err := h.gpus.ListVMs(r.ctx(), compute.VMFilter{Account: r.account(), Region: region, Sort: "name", Limit: pickerRows})
	var choices []gpus.Choice
	for _, item := range page.VMs {
		if v := item.VM; !v.Inference {
			choices = append(choices, gpus.Choice{ID: v.ID, Name: v.Name, Type: v.Type, Power: v.Power})
		}
	}
	return choices, err
}

func gpuRows(all []compute.GPU) []gpus.Row {
	rows := make([]gpus.Row, 0, len(all))
	for _, g := range all {
		rows = append(rows, gpus.Row{
			ID: g.ID, Name: g.Name, Model: g.Model, Generation: g.Generation, State: g.State, Zone: g.Zone,
			VM: g.VM, VMName: g.VMName, AllocatedAt: g.CreatedAt,
		})
	}
	return rows
}

func gpuCounts(counts []compute.GPUCount) gpus.Counts {
	var c gpus.Counts
	for _, n := range counts {
		switch n.State {
		case services.GPUAllocated:
			c.Allocated += n.Count
		case services.GPUAttaching:
			c.Attaching += n.Count
		case services.GPUAttached:
			c.Attached += n.Count
		case services.GPUDetaching:
			c.Detaching += n.Count
		}
	}
	return c
}

// buildPage makes a GPU's page.
func (h gpuPages) buildPage(r *request, id services.GPUID) (gpus.Page, error) {
	d, err := h.gpus.GPU(r.ctx(), r.account(), id)
	if err != nil {
		return gpus.Page{}, err
	}
	p := gpus.Page{Limits: limitsOf(d.Offer), Machine: h.machine(d), Pending: pendingOf(d.Pending)}
	if p.Shell, p.Key, err = r.page(); err != nil {
		return p, err
	}
	if p.Events, err = happenings(d.Events); err != nil {
		return p, err
	}
	if p.GPU, err = h.gpu(r.ctx(), d.GPU); err != nil || d.GPU.Released() {
		return p, err
	}
	uses, err := h.catalog.QuotaUses(r.ctx(), r.account())
	if err != nil {
		return p, err
	}
	p.Quota = quotaOf(uses, d.GPU.Region, d.GPU.Model)
	if d.GPU.State == services.GPUAllocated && p.CanWrite() {
		p.Attach, err = h.picker(r, id)
	}
	return p, err
}

func (h gpuPages) gpu(ctx context.Context, g compute.GPU) (gpus.GPU, error) {
	models, err := h.catalog.Models(ctx)
	m := modelOf(models, g.Model)
	out := gpus.GPU{
		ID: g.ID, Name: g.Name, Kind: g.Kind, Model: g.Model, Memory: m.Memory, Generation: g.Generation, Zone: g.Zone, Region: g.Region,
		State: g.State, Since: g.StateSince, AllocatedAt: g.CreatedAt, DeleteOnVMDeletion: g.DeleteOnVMDeletion, DriverBranch: m.DriverBranch,
	}
	if g.ReleasedAt != nil {
		out.ReleasedAt = *g.ReleasedAt
	}
	return out, err
}

func (h gpuPages) machine(d compute.GPUDetail) *gpus.Machine {
	if d.VM == nil {
		return nil
	}
	m := &gpus.Machine{
		ID: d.VM.ID, Name: d.VM.Name, Power: d.VM.Power, PowerSince: d.VM.PowerSince, Type: d.VM.Type, VCores: d.VM.VCores,
		MemoryMiB: d.VM.MemoryMiB, Generation: d.VM.Generation, Performance: string(d.VM.Performance), Operation: h.site.progress(d.Under),
	}
	for _, o := range d.Peers {
		m.Peers = append(m.Peers, gpus.Peer{ID: o.ID, Name: o.Name, Model: o.Model, State: o.State})
	}
	return m
}

func pendingOf(p compute.Pending) *gpus.Pending {
	if p.Wait == compute.WaitNone {
		return nil
	}
	return &gpus.Pending{
		OnHost: p.Wait == compute.WaitHost, Since: p.Since, Deadline: p.Deadline, HostSilent: p.HostSilent, HostSeen: p.HostSeen,
		Problem: problemOf(p.Problem),
	}
}

func (h gpuPages) picker(r *request, id services.GPUID) (*gpus.Attach, error) {
	choices, err := h.gpus.VMChoices(r.ctx(), r.account(), id)
	a := &gpus.Attach{}
	for _, c := range choices {
		a.Machines = append(a.Machines, gpus.Choice{ID: c.VM.ID, Name: c.VM.Name, Type: c.VM.Type, Power: c.VM.Power, Reasons: c.Broken})
	}
	return a, err
}
