package handlers

import (
	"context"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/a-h/templ"

	"berth/services"
	"berth/services/catalog"
	"berth/services/compute"
	"berth/web/urls"
	"berth/web/vms"
)

// vmMaker makes VMs and changes their type.
type vmMaker interface {
	CreateVM(ctx context.Context, a services.Actor, in compute.NewVM) (services.VMID, error)
	Resize(ctx context.Context, a services.Actor, id services.VMID, in compute.Resizing) error
	CheckResize(ctx context.Context, account services.AccountID, id services.VMID, name string, performance catalog.Performance) (compute.ResizeCheck, error)
}

// vmForms are the forms that make a VM, and that give it another type. They
// answer while they are filled in.
type vmForms struct {
	pages   vmPages
	maker   vmMaker
	catalog catalogReader
}

func (s *site) vmForms() vmForms {
	return vmForms{pages: s.vms(), maker: s.Compute, catalog: s.Compute}
}

func (h vmForms) create(r *request) error { return h.showCreate(r, vms.NewView) }

func (h vmForms) createFragment(r *request) error { return h.showCreate(r, vms.NewFragment) }

func (h vmForms) showCreate(r *request, view func(vms.New) templ.Component) error {
	n, err := h.buildCreate(r, form{r.QueryParams()})
	if err != nil {
		return err
	}
	return r.render(http.StatusOK, view(n))
}

// make makes the VM that the form asks for.
func (h vmForms) make(r *request) error {
	f, err := r.form()
	if err != nil {
		return err
	}
	t := vms.ReadType(f.Get, nil, "")
	id, err := h.maker.CreateVM(r.ctx(), r.actor(), compute.NewVM{
		Name: f.Get("name"), Zone: f.text("zone"), Type: t.Name(), Performance: t.Performance, Tenancy: catalog.Tenancy(f.text("tenancy")),
		Image: f.text("image"), SSHKey: f.Get("ssh_key"), UserData: f.Get("user_data"), Key: f.key(),
	})
	if status, broken, ok := refusal(err); ok {
		n, err := h.buildCreate(r, f)
		if err != nil {
			return err
		}
		n.Broken = broken
		return r.render(status, vms.NewView(n))
	}
	if err != nil {
		return err
	}
	return r.seeOther(urls.VM(id))
}

// buildCreate makes the form with what is filled in so far, and what such a VM
// would take.
func (h vmForms) buildCreate(r *request, f form) (vms.New, error) {
	var n vms.New
	var err error
	if n.Shell, n.Key, err = r.page(); err != nil {
		return n, err
	}
	c, err := h.catalog.Catalogue(r.ctx())
	if err != nil {
		return n, err
	}
	uses, err := h.catalog.QuotaUses(r.ctx(), r.account())
	if err != nil {
		return n, err
	}
	n.Values = vms.NewValues{
		Name: f.Get("name"), Zone: f.text("zone"), Type: vms.ReadType(f.Get, c.Types, vms.Starting(generations(c, ""))), Tenancy: catalog.Tenancy(f.text("tenancy")),
		Image: f.text("image"), SSHKey: f.Get("ssh_key"), UserData: f.Get("user_data"),
	}
	for _, z := range c.Zones {
		if n.Region == "" || z.Region == n.Region {
			n.Zones = append(n.Zones, vms.ZoneChoice{ID: z.ID, Region: z.Region, Storage: z.Storage})
		}
	}
	for _, im := range c.Images {
		n.Images = append(n.Images, vms.Image{ID: im.ID, Name: im.Name})
	}
	a := allocating{Catalogue: c, uses: uses}
	n.Types, n.Generations = a.types(n.Values.Zone), generations(c, "")
	if t, err := c.Types.Resolve(n.Values.Type.Name(), n.Values.Type.Performance); err == nil {
		n.Becomes, n.Takes = &t, a.takes(t, n.Values)
	}
	return n, nil
}

// types lists the named types; those whose built-in GPUs can't be had in the
// zone say why.
func (a allocating) types(zone string) []vms.NamedType {
	z, chosen := a.zone(zone)
	named := make([]vms.NamedType, 0, len(a.Types))
	for _, t := range a.Types {
		n := vms.NamedType{Type: t}
		if chosen && t.Inference() {
			n.Reasons = a.againstBuiltIn(t, z)
		}
		named = append(named, n)
	}
	return named
}

// againstBuiltIn lists what stands against a type with GPUs built in. Free cards
// are only known of models that are offered by themselves as well.
func (a allocating) againstBuiltIn(t catalog.VMType, z compute.Zone) []services.Violation {
	var broken []services.Violation
	if q := quotaOf(a.uses, z.Region, t.GPUModel); q.Max != nil && q.Used+t.GPUCount > *q.Max {
		broken = append(broken, services.Violation{Code: services.CodeQuotaExceeded, Args: map[string]any{
			"Model": t.GPUModel, "Region": z.Region, "Used": q.Used, "Max": *q.Max, "Wanted": t.GPUCount,
		}})
	}
	for _, f := range a.Availability {
		if f.Model == t.GPUModel && f.Zone == z.ID && f.Free < t.GPUCount {
			broken = append(broken, services.Violation{Code: services.CodeNoCapacity, Args: map[string]any{"Model": t.GPUModel, "Zone": z.ID}})
		}
	}
	return broken
}

// takes tells for each model of the zone's region whether a VM takes its GPUs. A
// type that leaves the CPU generation open gets a host of one that suits.
func (a allocating) takes(t catalog.VMType, v vms.NewValues) []vms.Taking {
	z, ok := a.zone(v.Zone)
	if !ok {
		return nil
	}
	tenancy := v.Tenancy
	if tenancy == "" {
		tenancy = catalog.TenancyDefault
	}
	var takes []vms.Taking
	for _, o := range a.Offers {
		if o.Region == z.Region {
			m := modelOf(a.Models, o.Model)
			takes = append(takes, vms.Taking{Model: o.Model, Memory: m.Memory, Broken: o.Check(t.Spec(o.Oldest(), tenancy))})
		}
	}
	return takes
}

// generations lists the CPU generations that the catalogue and a VM know, oldest
// first.
func generations(c compute.Catalogue, own string) []string {
	known := []string{}
	if own != "" {
		known = append(known, own)
	}
	for _, o := range c.Offers {
		known = append(known, o.Generations...)
	}
	slices.SortFunc(known, func(a, b string) int { return age(a) - age(b) })
	return slices.Compact(known)
}

// age is a generation's number: 7 of "v7".
func age(generation string) int {
	n, _ := strconv.Atoi(strings.TrimPrefix(generation, "v"))
	return n
}
