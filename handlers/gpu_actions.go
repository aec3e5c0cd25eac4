package handlers

import (
	"context"
	"slices"

	"berth/services"
	"berth/services/compute"
	"berth/web/gpus"
	"berth/web/urls"
)

// gpuWriter changes GPUs. A repeat under the same key changes nothing.
type gpuWriter interface {
	Allocate(ctx context.Context, a services.Actor, in compute.Allocation) (services.GPUID, error)
	Release(ctx context.Context, a services.Actor, id services.GPUID, key string) error
	Rename(ctx context.Context, a services.Actor, id services.GPUID, to, key string) error
	SetDeleteOnVMDeletion(ctx context.Context, a services.Actor, id services.GPUID, on bool, key string) error
}

// attacher plans which VM has which GPUs. A repeat under the same key changes
// nothing.
type attacher interface {
	Attach(ctx context.Context, a services.Actor, vm services.VMID, gpus []services.GPUID, key string) error
	Detach(ctx context.Context, a services.Actor, id services.GPUID, key string) error
}

// bulkWriter changes several GPUs, each by its own rules.
type bulkWriter interface {
	DetachAll(ctx context.Context, a services.Actor, ids []services.GPUID, key string) error
	ReleaseAll(ctx context.Context, a services.Actor, ids []services.GPUID, key string) error
}

// gpuActions change GPUs. A refused one shows the page that it came from, with
// the reasons and what was chosen.
type gpuActions struct {
	pages    gpuPages
	gpus     gpuWriter
	attached attacher
	bulks    bulkWriter
}

func (s *site) gpuActions() gpuActions {
	return gpuActions{pages: s.gpus(), gpus: s.Compute, attached: s.Compute, bulks: s.Compute}
}

func (h gpuActions) allocate(r *request) error {
	f, err := r.form()
	if err != nil {
		return err
	}
	v := newGPUValues(f)
	id, err := h.tryAllocate(r, f, v)
	if status, broken, ok := refusal(err); ok {
		n, err := h.pages.buildForm(r, v)
		if err != nil {
			return err
		}
		n.Broken = broken
		keepChosen(&n)
		return r.render(status, gpus.NewView(n))
	}
	if err != nil {
		return err
	}
	return r.seeOther(urls.GPU(id))
}

func (h gpuActions) tryAllocate(r *request, f form, v gpus.NewValues) (services.GPUID, error) {
	if _, err := f.flag("delete_on_vm_deletion"); err != nil {
		return "", err
	}
	return h.gpus.Allocate(r.ctx(), r.actor(), compute.Allocation{
		Model: v.Model, Zone: v.Zone, Name: v.Name, Generation: v.Generation, DeleteOnVMDeletion: v.DeleteOnVMDeletion, Key: f.key(),
	})
}

func (h gpuActions) attach(r *request) error {
	return h.change(r, func(id services.GPUID, f form) error {
		vm, err := f.vm()
		if err != nil {
			return err
		}
		return h.attached.Attach(r.ctx(), r.actor(), vm, []services.GPUID{id}, f.key())
	})
}

func (h gpuActions) detach(r *request) error {
	return h.change(r, func(id services.GPUID, f form) error {
		return h.attached.Detach(r.ctx(), r.actor(), id, f.key())
	})
}

func (h gpuActions) release(r *request) error {
	return h.change(r, func(id services.GPUID, f form) error {
		return h.gpus.Release(r.ctx(), r.actor(), id, f.key())
	})
}

func (h gpuActions) rename(r *request) error {
	return h.change(r, func(id services.GPUID, f form) error {
		return h.gpus.Rename(r.ctx(), r.actor(), id, f.Get("name"), f.key())
	})
}

func (h gpuActions) onDeletion(r *request) error {
	return h.change(r, func(id services.GPUID, f form) error {
		on, err := f.flag("delete_on_vm_deletion")
		if err != nil {
			return err
		}
		return h.gpus.SetDeleteOnVMDeletion(r.ctx(), r.actor(), id, on, f.key())
	})
}

// change does something to the path's GPU and leads to its page, or back to the
// one that the form names; a refusal shows on its page.
func (h gpuActions) change(r *request, do func(services.GPUID, form) error) error {
	id, err := pathID[services.GPUID](r)
	if err != nil {
		return err
	}
	f, err := r.form()
	if err != nil {
		return err
	}
	err = do(id, f)
	if status, broken, ok := refusal(err); ok {
		p, err := h.pages.buildPage(r, id)
		if err != nil {
			return err
		}
		p.Broken = broken
		if p.Attach != nil {
			p.Attach.Chosen = after[services.VMID](f.text("vm"))
		}
		return r.render(status, gpus.View(p))
	}
	if err != nil {
		return err
	}
	return r.seeOther(f.back(urls.GPU(id)))
}

// bulk acts on the ticked GPUs of the list.
func (h gpuActions) bulk(r *request) error {
	f, err := r.form()
	if err != nil {
		return err
	}
	to, err := h.tryBulk(r, f)
	status, broken, ok := refusal(err)
	if !ok && err != nil {
		return err
	}
	if !ok {
		return r.seeOther(to)
	}
	l, err := h.pages.buildList(r, listQuery(r))
	if err != nil {
		return err
	}
	l.Broken, l.Chosen = broken, after[services.VMID](f.text("vm"))
	for i := range l.Rows {
		l.Rows[i].Ticked = slices.Contains(f.Values["gpu"], string(l.Rows[i].ID))
	}
	return r.render(status, gpus.ListView(l))
}

// tryBulk gives the page to go on to.
func (h gpuActions) tryBulk(r *request, f form) (to string, err error) {
	ids, err := f.gpus()
	if err != nil {
		return "", err
	}
	to = urls.GPUs(listQuery(r))
	switch action := f.text("action"); action {
	case "attach":
		vm, err := f.vm()
		if err != nil {
			return "", err
		}
		return urls.VM(vm), h.attached.Attach(r.ctx(), r.actor(), vm, ids, f.key())
	case "detach":
		return to, h.bulks.DetachAll(r.ctx(), r.actor(), ids, f.key())
	case "release":
		return to, h.bulks.ReleaseAll(r.ctx(), r.actor(), ids, f.key())
	default:
		return "", services.Invalid("action", services.CodeInvalidValue, map[string]any{"Value": action, "Allowed": "attach, detach, release"})
	}
}

// listQuery is how the user looks at the list: the query of the page that the
// request was sent from.
func listQuery(r *request) urls.GPUQuery { return gpuQuery(r.referred(urls.GPUs(urls.GPUQuery{}))) }
