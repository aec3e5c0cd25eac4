package handlers

import (
	"net/http"

	"github.com/a-h/templ"

	"berth/services"
	"berth/services/catalog"
	"berth/services/compute"
	"berth/web/gpus"
)

func (h gpuPages) form(r *request) error { return h.showForm(r, gpus.NewView) }

func (h gpuPages) formFragment(r *request) error { return h.showForm(r, gpus.NewFragment) }

func (h gpuPages) showForm(r *request, view func(gpus.New) templ.Component) error {
	n, err := h.buildForm(r, newGPUValues(form{r.QueryParams()}))
	if err != nil {
		return err
	}
	return r.render(http.StatusOK, view(n))
}

// newGPUValues reads the form as far as it is filled in.
func newGPUValues(f form) gpus.NewValues {
	goes, _ := f.flag("delete_on_vm_deletion") // what is no answer yet is no
	return gpus.NewValues{
		Model: f.text("model"), Zone: f.text("zone"), Name: f.Get("name"), Generation: f.text("generation"), DeleteOnVMDeletion: goes,
	}
}

// buildForm makes the form that allocates, narrowed by what is filled in.
func (h gpuPages) buildForm(r *request, v gpus.NewValues) (gpus.New, error) {
	n := gpus.New{Values: v}
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
	a := allocating{Catalogue: c, uses: uses}
	region := a.within(n.Region, v)
	n.Models, n.Zones = a.models(region), a.zones(region, v.Model)
	zone, ok := a.zone(v.Zone)
	if !ok {
		return n, nil
	}
	if offer, ok := a.offer(v.Model, zone.Region); ok {
		limits := limitsOf(offer)
		n.Limits, n.Generations, n.Quota = &limits, offer.Generations, quotaOf(uses, zone.Region, v.Model)
	}
	return n, nil
}

// allocating is what decides which GPUs an account can have now.
type allocating struct {
	compute.Catalogue
	uses []compute.QuotaUse
}

func (a allocating) zone(id string) (compute.Zone, bool) {
	for _, z := range a.Zones {
		if z.ID == id {
			return z, true
		}
	}
	return compute.Zone{}, false
}

func (a allocating) offer(model, region string) (catalog.Offer, bool) {
	for _, o := range a.Offers {
		if o.Model == model && o.Region == region {
			return o, true
		}
	}
	return catalog.Offer{}, false
}

// free reports whether a card is free now.
func (a allocating) free(model, zone string) bool {
	for _, f := range a.Availability {
		if f.Model == model && f.Zone == zone {
			return f.Free > 0
		}
	}
	return false
}

// against says why a model can't be had in a zone; nil where it can.
func (a allocating) against(model string, z compute.Zone) *services.Violation {
	if _, ok := a.offer(model, z.Region); !ok {
		return &services.Violation{Code: services.CodeNotOffered, Args: map[string]any{"Model": model, "Zone": z.ID, "Region": z.Region}}
	}
	if q := quotaOf(a.uses, z.Region, model); q.Max != nil && q.Used >= *q.Max {
		return &services.Violation{
			Code: services.CodeQuotaExceeded, Args: map[string]any{"Model": model, "Region": z.Region, "Used": q.Used, "Max": *q.Max, "Wanted": 1},
		}
	}
	if !a.free(model, z.ID) {
		return &services.Violation{Code: services.CodeNoCapacity, Args: map[string]any{"Model": model, "Zone": z.ID}}
	}
	return nil
}

// models lists the models that are offered as flexible GPUs. One that can be
// had in no zone says why. The zone chosen so far has no say: whoever chooses
// another model may choose another zone.
func (a allocating) models(region string) []gpus.ModelChoice {
	var choices []gpus.ModelChoice
	for _, m := range a.Models {
		if because, offered := a.anywhere(m.ID, region); offered {
			choices = append(choices, gpus.ModelChoice{
				ID: m.ID, Architecture: m.Architecture, Memory: m.Memory, UseCases: m.UseCases, Because: because,
			})
		}
	}
	return choices
}

// anywhere looks for a zone of a region (empty: of all) where a model can be
// had; because is what stands against the last one that offers it.
func (a allocating) anywhere(model, region string) (because *services.Violation, offered bool) {
	for _, z := range a.Zones {
		if region != "" && z.Region != region {
			continue
		}
		why := a.against(model, z)
		if why == nil {
			return nil, true
		}
		if why.Code != services.CodeNotOffered {
			because, offered = why, true
		}
	}
	return because, offered
}

// within is the region that the form offers: the one looked at (empty: all), but
// all where a model or a zone was chosen that it lacks, as on the catalogue's pages.
func (a allocating) within(region string, v gpus.NewValues) string {
	if z, ok := a.zone(v.Zone); ok && region != "" && z.Region != region {
		return ""
	}
	_, here := a.anywhere(v.Model, region)
	if _, elsewhere := a.anywhere(v.Model, ""); elsewhere && !here {
		return ""
	}
	return region
}

// zones lists the zones of a region (empty: of all). Before a model is chosen
// all are possible.
func (a allocating) zones(region, model string) []gpus.ZoneChoice {
	var choices []gpus.ZoneChoice
	for _, z := range a.Zones {
		if region != "" && z.Region != region {
			continue
		}
		c := gpus.ZoneChoice{ID: z.ID, Region: z.Region}
		if model != "" {
			c.Because, c.Free = a.against(model, z), a.free(model, z.ID)
		}
		choices = append(choices, c)
	}
	return choices
}

// keepChosen leaves model and zone of a refused form chosen, though they may
// have become impossible: the refusal says why.
func keepChosen(n *gpus.New) {
	for i := range n.Models {
		if n.Models[i].ID == n.Values.Model {
			n.Models[i].Because = nil
		}
	}
	for i := range n.Zones {
		if n.Zones[i].ID == n.Values.Zone {
			n.Zones[i].Because = nil
		}
	}
}
