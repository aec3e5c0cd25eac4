package handlers

import (
	"context"

	"berth/services"
	"berth/web/urls"
	"berth/web/vms"
)

// vmWriter changes VMs. A repeat under the same key changes nothing.
type vmWriter interface {
	Power(ctx context.Context, a services.Actor, id services.VMID, action services.PowerAction, key string) error
	DeleteVM(ctx context.Context, a services.Actor, id services.VMID, key string) error
}

// operationWriter ends or repeats operations, and gives the VM that they are
// about, also where it refuses.
type operationWriter interface {
	Retry(ctx context.Context, a services.Actor, id services.OperationID) (services.VMID, error)
	Cancel(ctx context.Context, a services.Actor, id services.OperationID) (services.VMID, error)
}

// vmActions change VMs. A refused one shows the VM's page with the reasons.
type vmActions struct {
	pages      vmPages
	vms        vmWriter
	attached   attacher
	operations operationWriter
}

func (s *site) vmActions() vmActions {
	return vmActions{pages: s.vms(), vms: s.Compute, attached: s.Compute, operations: s.Compute}
}

func (h vmActions) power(r *request) error {
	return h.change(r, func(id services.VMID, f form) error {
		if f.text("action") == "" {
			return services.Invalid("action", services.CodeRequired, nil)
		}
		return h.vms.Power(r.ctx(), r.actor(), id, services.PowerAction(f.text("action")), f.key())
	})
}

func (h vmActions) attach(r *request) error {
	return h.change(r, func(id services.VMID, f form) error {
		ids, err := f.gpus()
		if err != nil {
			return err
		}
		return h.attached.Attach(r.ctx(), r.actor(), id, ids, f.key())
	})
}

func (h vmActions) remove(r *request) error {
	return h.change(r, func(id services.VMID, f form) error {
		return h.vms.DeleteVM(r.ctx(), r.actor(), id, f.key())
	})
}

// change does something to the path's VM and leads to its page, or shows there
// why not.
func (h vmActions) change(r *request, do func(services.VMID, form) error) error {
	id, err := pathID[services.VMID](r)
	if err != nil {
		return err
	}
	f, err := r.form()
	if err != nil {
		return err
	}
	return h.conclude(r, id, f, do(id, f))
}

func (h vmActions) conclude(r *request, id services.VMID, f form, err error) error {
	status, broken, ok := refusal(err)
	switch {
	case err == nil:
		return r.seeOther(urls.VM(id))
	case !ok:
		return err
	}
	p, err := h.pages.buildPage(r, id)
	if err != nil {
		return err
	}
	p.Broken = broken
	if p.Attach != nil {
		p.Attach.Chosen, _ = f.gpus() // none, where the form was another
	}
	return r.render(status, vms.View(p))
}

func (h vmActions) retry(r *request) error { return h.operate(r, h.operations.Retry) }

func (h vmActions) cancel(r *request) error { return h.operate(r, h.operations.Cancel) }

func (h vmActions) operate(r *request, do func(context.Context, services.Actor, services.OperationID) (services.VMID, error)) error {
	id, err := pathID[services.OperationID](r)
	if err != nil {
		return err
	}
	f, err := r.form()
	if err != nil {
		return err
	}
	vm, err := do(r.ctx(), r.actor(), id)
	return h.conclude(r, vm, f, err)
}
