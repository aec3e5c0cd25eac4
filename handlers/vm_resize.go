package handlers

import (
	"net/http"

	"github.com/a-h/templ"

	"berth/services"
	"berth/services/catalog"
	"berth/services/compute"
	"berth/web/urls"
	"berth/web/vms"
)

func (h vmForms) resize(r *request) error { return h.showResize(r, vms.ResizeView) }

func (h vmForms) resizeFragment(r *request) error { return h.showResize(r, vms.ResizeFragment) }

func (h vmForms) showResize(r *request, view func(vms.Resize) templ.Component) error {
	id, err := pathID[services.VMID](r)
	if err != nil {
		return err
	}
	p, err := h.buildResize(r, id, form{r.QueryParams()})
	if err != nil {
		return err
	}
	return r.render(http.StatusOK, view(p))
}

// convert gives the VM the type that the form asks for.
func (h vmForms) convert(r *request) error {
	id, err := pathID[services.VMID](r)
	if err != nil {
		return err
	}
	f, err := r.form()
	if err != nil {
		return err
	}
	err = h.tryConvert(r, id, f)
	if status, broken, ok := refusal(err); ok {
		p, err := h.buildResize(r, id, f)
		if err != nil {
			return err
		}
		p.Broken = broken
		return r.render(status, vms.ResizeView(p))
	}
	if err != nil {
		return err
	}
	return r.seeOther(urls.VM(id))
}

func (h vmForms) tryConvert(r *request, id services.VMID, f form) error {
	restart, err := f.flag("restart")
	if err != nil {
		return err
	}
	t := vms.ReadType(f.Get, nil, "")
	return h.maker.Resize(r.ctx(), r.actor(), id, compute.Resizing{Type: t.Name(), Performance: t.Performance, Restart: restart, Key: f.key()})
}

// buildResize makes the form with what the filled-in type would meet.
func (h vmForms) buildResize(r *request, id services.VMID, f form) (vms.Resize, error) {
	d, err := h.pages.vms.VM(r.ctx(), r.account(), id)
	if err != nil {
		return vms.Resize{}, err
	}
	p := vms.Resize{Limits: vmLimits(d.Offer)}
	if p.Shell, p.Key, err = r.page(); err != nil {
		return p, err
	}
	if p.VM, err = h.pages.machine(r.ctx(), d.VM); err != nil {
		return p, err
	}
	if d.Operation != nil && d.Operation.Open() {
		p.Busy = h.pages.site.progress(d.Operation)
	}
	c, err := h.catalog.Catalogue(r.ctx())
	if err != nil {
		return p, err
	}
	p.Type, p.Types, p.Generations = vms.ReadType(f.Get, c.Types, d.VM.Type), resizeTypes(c.Types, d), generations(c, d.VM.Generation)
	return p, h.answer(r, id, c.Types, &p)
}

// answer fills in what the type would meet.
func (h vmForms) answer(r *request, id services.VMID, types catalog.Types, p *vms.Resize) error {
	check, err := h.maker.CheckResize(r.ctx(), r.account(), id, p.Type.Name(), p.Type.Performance)
	if err != nil {
		return err
	}
	if t, err := types.Resolve(p.Type.Name(), p.Type.Performance); err == nil {
		p.Becomes = &t
	}
	p.Against, p.Largest = check.Broken, check.Largest
	for _, fit := range check.Fits {
		p.Fits = append(p.Fits, vms.Fit{ID: fit.GPU.ID, Name: fit.GPU.Name, State: fit.GPU.State, Broken: fit.Broken})
	}
	return nil
}

// resizeTypes lists the named types with what stands against each for a VM and
// its GPUs.
func resizeTypes(types catalog.Types, d compute.VMDetail) []vms.NamedType {
	named := make([]vms.NamedType, 0, len(types))
	for _, t := range types {
		n := vms.NamedType{Type: t}
		if d.Offer.Model != "" {
			n.Reasons = d.Offer.Check(t.Spec(d.VM.Generation, d.VM.Tenancy))
		} else if (t.Inference() || d.VM.Inference) && t.Name != d.VM.Type {
			n.Reasons = []services.Violation{{Code: services.CodeInferenceType, Field: "type", Args: map[string]any{"VM": d.VM.Name, "Type": t.Name}}}
		}
		named = append(named, n)
	}
	return named
}
