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
	"berth/web/urls"
	"berth/web/vms"
)

// vmReader answers what an account's VMs are. What is another account's is not
// found.
type vmReader interface {
	ListVMs(ctx context.Context, f compute.VMFilter) (compute.VMPage, error)
	VM(ctx context.Context, account services.AccountID, id services.VMID) (compute.VMDetail, error)
	GPUChoices(ctx context.Context, account services.AccountID, id services.VMID) ([]compute.GPUChoice, error)
}

// placeReader answers what VMs are made from, and where.
type placeReader interface {
	Zones(ctx context.Context) ([]compute.Zone, error)
	Images(ctx context.Context) ([]catalog.Image, error)
	Models(ctx context.Context) ([]catalog.Model, error)
}

// vmPages show VMs.
type vmPages struct {
	site   *site
	vms    vmReader
	places placeReader
}

func (s *site) vms() vmPages { return vmPages{site: s, vms: s.Compute, places: s.Compute} }

func (h vmPages) list(r *request) error { return h.showList(r, vms.ListView) }

func (h vmPages) listFragment(r *request) error { return h.showList(r, vms.ListFragment) }

func vmQuery(q url.Values) urls.VMQuery {
	out := urls.VMQuery{
		Power: q.Get("power"), Zone: q.Get("zone"), Text: strings.TrimSpace(q.Get("q")), Sort: order(q.Get("sort")),
		After: after[services.VMID](q.Get("after")),
	}
	if !services.Power(out.Power).Valid() {
		out.Power = ""
	}
	return out
}

func (h vmPages) showList(r *request, view func(vms.List) templ.Component) error {
	l, err := h.buildList(r, vmQuery(r.QueryParams()))
	if err != nil {
		return err
	}
	return r.render(http.StatusOK, view(l))
}

// buildList makes the list of the account's VMs in the region looked at.
func (h vmPages) buildList(r *request, q urls.VMQuery) (vms.List, error) {
	l := vms.List{Query: q}
	var err error
	if l.Shell, err = r.shell(); err != nil {
		return l, err
	}
	page, err := h.vms.ListVMs(r.ctx(), compute.VMFilter{
		Account: r.account(), Query: q.Text, Region: l.Region, Zone: q.Zone, Power: services.Power(q.Power), Sort: q.Sort,
		After: q.After, Limit: pageRows,
	})
	if err != nil {
		return l, err
	}
	if len(page.VMs) == 0 && q.After != "" { // its rows have gone
		q.After = ""
		return h.buildList(r, q)
	}
	zones, err := h.places.Zones(r.ctx())
	l.Rows, l.Next, l.Zones = vmRows(page.VMs), page.Next, zonesIn(zones, l.Region)
	for _, c := range page.Counts {
		l.Counts = append(l.Counts, vms.PowerCount{Power: c.Power, Count: c.Count})
	}
	return l, err
}

func vmRows(items []compute.VMListItem) []vms.Row {
	rows := make([]vms.Row, 0, len(items))
	for _, item := range items {
		v := item.VM
		row := vms.Row{
			ID: v.ID, Name: v.Name, Type: v.Type, VCores: v.VCores, MemoryMiB: v.MemoryMiB, Zone: v.Zone, Power: v.Power,
			Wanted: v.DesiredPower, CreatedAt: v.CreatedAt,
		}
		for _, g := range item.GPUs {
			row.GPUs = append(row.GPUs, vms.Group{Model: g.Model, Kind: g.Kind, State: g.State, Count: g.Count})
		}
		rows = append(rows, row)
	}
	return rows
}

func (h vmPages) page(r *request) error { return h.showPage(r, vms.View) }

func (h vmPages) fragment(r *request) error { return h.showPage(r, vms.Fragment) }

func (h vmPages) showPage(r *request, view func(vms.Page) templ.Component) error {
	id, err := pathID[services.VMID](r)
	if err != nil {
		return err
	}
	p, err := h.buildPage(r, id)
	if err != nil {
		return err
	}
	return r.render(http.StatusOK, view(p))
}

// buildPage makes a VM's page.
func (h vmPages) buildPage(r *request, id services.VMID) (vms.Page, error) {
	d, err := h.vms.VM(r.ctx(), r.account(), id)
	if err != nil {
		return vms.Page{}, err
	}
	p := vms.Page{GPUs: vmGPUs(d.GPUs), Operation: h.site.progress(d.Operation), Pending: vmPending(d.Pending), Limits: vmLimits(d.Offer)}
	if p.Shell, p.Key, err = r.page(); err != nil {
		return p, err
	}
	if p.Events, err = happenings(d.Events); err != nil {
		return p, err
	}
	if p.VM, err = h.machine(r.ctx(), d.VM); err != nil {
		return p, err
	}
	if p.Driver, err = h.driver(r.ctx(), d.GPUs); err != nil || p.VM.Deleted() || p.VM.Inference || !p.CanWrite() {
		return p, err
	}
	p.Attach, err = h.picker(r, id)
	return p, err
}

func (h vmPages) machine(ctx context.Context, v compute.VM) (vms.Machine, error) {
	m := vms.Machine{
		ID: v.ID, Name: v.Name, Type: v.Type, VCores: v.VCores, MemoryMiB: v.MemoryMiB, Generation: v.Generation,
		Performance: v.Performance, Tenancy: v.Tenancy, Inference: v.Inference, Zone: v.Zone, Region: v.Region, Storage: v.Storage,
		Image: v.Image, SSHKey: v.SSHKey, UserData: v.UserData, Power: v.Power, PowerSince: v.PowerSince, Wanted: v.DesiredPower, Resumes: v.Resume,
		CreatedAt: v.CreatedAt,
	}
	if v.DeletedAt != nil {
		m.DeletedAt = *v.DeletedAt
	}
	images, err := h.places.Images(ctx)
	if i := slices.IndexFunc(images, func(im catalog.Image) bool { return im.ID == v.Image }); i >= 0 {
		m.Image = images[i].Name
	}
	return m, err
}

func vmGPUs(all []compute.GPU) []vms.GPU {
	var out []vms.GPU
	for _, g := range all {
		out = append(out, vms.GPU{
			ID: g.ID, Name: g.Name, Model: g.Model, Kind: g.Kind, State: g.State, Since: g.StateSince, DeleteOnVMDeletion: g.DeleteOnVMDeletion,
		})
	}
	return out
}

func vmPending(p compute.Pending) *vms.Pending {
	if p.Wait == compute.WaitNone {
		return nil
	}
	out := &vms.Pending{
		OnHost: p.Wait == compute.WaitHost, Since: p.Since, Deadline: p.Deadline, HostSilent: p.HostSilent, HostSeen: p.HostSeen,
	}
	if p.Problem != nil {
		out.Problem = &vms.Problem{
			Message: p.Problem.Message, Holder: p.Problem.Holder, PID: p.Problem.PID, Since: p.Problem.Since, Final: p.Problem.Final,
		}
	}
	return out
}

func vmLimits(o catalog.Offer) *vms.Limits {
	if o.Model == "" {
		return nil
	}
	return &vms.Limits{Model: o.Model, Region: o.Region, MaxVCores: o.MaxVCores, MaxMemoryMiB: o.MaxMemoryMiB, Generations: o.Generations}
}

func (h vmPages) driver(ctx context.Context, all []compute.GPU) (*vms.Driver, error) {
	if len(all) == 0 {
		return nil, nil
	}
	models, err := h.places.Models(ctx)
	m := modelOf(models, all[0].Model)
	return &vms.Driver{Model: all[0].Model, Branch: m.DriverBranch}, err
}

func (h vmPages) picker(r *request, id services.VMID) (*vms.Attach, error) {
	choices, err := h.vms.GPUChoices(r.ctx(), r.account(), id)
	a := &vms.Attach{}
	for _, c := range choices {
		a.GPUs = append(a.GPUs, vms.Choice{ID: c.GPU.ID, Name: c.GPU.Name, Model: c.GPU.Model, Zone: c.GPU.Zone, Reasons: c.Broken})
	}
	return a, err
}
