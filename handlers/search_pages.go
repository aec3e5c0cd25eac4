package handlers

import (
	"context"
	"net/http"
	"strings"

	"berth/services"
	"berth/services/catalog"
	"berth/services/compute"
	"berth/web/search"
	"berth/web/urls"
)

// finder answers what an account has that matches a text.
type finder interface {
	ListGPUs(ctx context.Context, f compute.GPUFilter) (compute.GPUPage, error)
	ListVMs(ctx context.Context, f compute.VMFilter) (compute.VMPage, error)
	Models(ctx context.Context) ([]catalog.Model, error)
}

// searchPages find things by name and id.
type searchPages struct{ finder finder }

func (s *site) search() searchPages { return searchPages{s.Compute} }

// foundRows bounds each list of what was found.
const foundRows = 20

// page leads straight to the object where the text is an identifier.
func (h searchPages) page(r *request) error {
	text := strings.TrimSpace(r.QueryParam("q"))
	if id, err := services.ParseID[services.GPUID](text); err == nil {
		return r.seeOther(urls.GPU(id))
	}
	if id, err := services.ParseID[services.VMID](text); err == nil {
		return r.seeOther(urls.VM(id))
	}
	p := search.Page{}
	var err error
	if p.Shell, err = r.shell(); err != nil {
		return err
	}
	p.Search = text
	if text != "" {
		if err := h.find(r, &p, text); err != nil {
			return err
		}
	}
	return r.render(http.StatusOK, search.View(p))
}

func (h searchPages) find(r *request, p *search.Page, text string) error {
	gpus, err := h.finder.ListGPUs(r.ctx(), compute.GPUFilter{Account: r.account(), Query: text, Sort: "name", Limit: foundRows})
	if err != nil {
		return err
	}
	for _, g := range gpus.GPUs {
		p.GPUs = append(p.GPUs, search.GPU{ID: g.ID, Name: g.Name, Model: g.Model, Zone: g.Zone, State: g.State})
	}
	vms, err := h.finder.ListVMs(r.ctx(), compute.VMFilter{Account: r.account(), Query: text, Sort: "name", Limit: foundRows})
	if err != nil {
		return err
	}
	for _, v := range vms.VMs {
		p.Machines = append(p.Machines, search.Machine{ID: v.VM.ID, Name: v.VM.Name, Type: v.VM.Type, Zone: v.VM.Zone, Power: v.VM.Power})
	}
	p.More = gpus.Next != "" || vms.Next != ""
	models, err := h.finder.Models(r.ctx())
	for _, m := range models {
		if strings.Contains(m.ID, strings.ToLower(text)) {
			p.Models = append(p.Models, search.Model{ID: m.ID, Memory: m.Memory, Architecture: m.Architecture})
		}
	}
	return err
}
