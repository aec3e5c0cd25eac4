package handlers

import (
	"context"
	"net/http"
	"strings"

	"berth/services"
	"berth/services/catalog"
	"berth/services/compute"
	"berth/services/fleet"
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
type searchPages struct {
	finder finder
	fleet  fleetFinder
}

func (s *site) search() searchPages { return searchPages{finder: s.Compute, fleet: s.Fleet} }

// foundRows bounds each list of what was found.
const foundRows = 20

// page leads straight to the object where the text is an identifier, or a
// card's serial.
func (h searchPages) page(r *request) error {
	text := strings.TrimSpace(r.QueryParam("q"))
	if to, err := h.straight(r, text); err != nil || to != "" {
		if err != nil {
			return err
		}
		return r.seeOther(to)
	}
	shell, err := r.shell()
	if err != nil {
		return err
	}
	p := search.Page{Shell: shell}
	if text != "" {
		if p, err = h.found(r, text, foundRows); err != nil {
			return err
		}
		p.Shell = shell
	}
	p.Search = text
	if r.session.Admin && text != "" {
		hits, err := h.fleet.Search(r.ctx(), text, foundRows)
		if err != nil {
			return err
		}
		p.Fleet = fleetHits(hits)
	}
	return r.render(http.StatusOK, search.View(p))
}

// straight is the page of the one object that a text names; empty: none. An
// operator is led to an object of theirs first.
func (h searchPages) straight(r *request, text string) (string, error) {
	gpu, notGPU := services.ParseID[services.GPUID](text)
	vm, notVM := services.ParseID[services.VMID](text)
	if r.session.Admin {
		hits, err := h.fleet.Search(r.ctx(), text, foundRows)
		if err != nil {
			return "", err
		}
		if hit, ok := fleet.Exact(text, hits); ok && (hit.Account == "" || hit.Account != r.account()) {
			return hitURL(hit), nil
		}
	}
	switch {
	case notGPU == nil:
		return urls.GPU(gpu), nil
	case notVM == nil:
		return urls.VM(vm), nil
	}
	return "", nil
}

func fleetHits(hits []fleet.Hit) []search.Group {
	var groups []search.Group
	for _, g := range fleetGroups(hits) {
		group := search.Group{Key: g.Key}
		for _, i := range g.Items {
			group.Hits = append(group.Hits, search.Hit{Icon: i.Icon, ID: i.ID, Name: i.Name, Detail: i.Detail, URL: i.URL})
		}
		groups = append(groups, group)
	}
	return groups
}

// found is what the account looked at has that matches a text, at most limit of
// each kind.
func (h searchPages) found(r *request, text string, limit int) (search.Page, error) {
	var p search.Page
	gpus, err := h.finder.ListGPUs(r.ctx(), compute.GPUFilter{Account: r.account(), Query: text, Sort: "name", Limit: limit})
	if err != nil {
		return p, err
	}
	for _, g := range gpus.GPUs {
		p.GPUs = append(p.GPUs, search.GPU{ID: g.ID, Name: g.Name, Model: g.Model, Zone: g.Zone, State: g.State})
	}
	vms, err := h.finder.ListVMs(r.ctx(), compute.VMFilter{Account: r.account(), Query: text, Sort: "name", Limit: limit})
	if err != nil {
		return p, err
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
	return p, err
}
