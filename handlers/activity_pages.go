package handlers

import (
	"context"
	"net/http"
	"net/url"
	"strconv"

	"github.com/a-h/templ"

	"berth/services"
	"berth/services/activity"
	"berth/services/compute"
	pages "berth/web/activity"
	"berth/web/urls"
)

// eventReader answers what happened in an account.
type eventReader interface {
	List(ctx context.Context, f activity.Filter) (activity.Page, error)
}

// objectReader finds the object that a list is narrowed to; another account's
// is not found.
type objectReader interface {
	GPU(ctx context.Context, account services.AccountID, id services.GPUID) (compute.GPUDetail, error)
	VM(ctx context.Context, account services.AccountID, id services.VMID) (compute.VMDetail, error)
}

// activityPages show what happened.
type activityPages struct {
	events  eventReader
	objects objectReader
}

func (s *site) activity() activityPages { return activityPages{events: s.Activity, objects: s.Compute} }

func (h activityPages) page(r *request) error { return h.show(r, pages.View) }

func (h activityPages) fragment(r *request) error { return h.show(r, pages.Fragment) }

func activityQuery(q url.Values) urls.ActivityQuery {
	out := urls.ActivityQuery{Kind: q.Get("kind"), GPU: q.Get("gpu"), VM: q.Get("vm")}
	if out.Kind != "gpu" && out.Kind != "vm" {
		out.Kind = ""
	}
	if before, err := strconv.ParseInt(q.Get("before"), 10, 64); err == nil && before > 0 {
		out.Before = before
	}
	return out
}

func (h activityPages) show(r *request, view func(pages.Page) templ.Component) error {
	p := pages.Page{Query: activityQuery(r.QueryParams())}
	var err error
	if p.Shell, err = r.shell(); err != nil {
		return err
	}
	if p.About, err = h.about(r, p.Query); err != nil {
		return err
	}
	found, err := h.events.List(r.ctx(), activity.Filter{
		Account: r.account(), GPU: services.GPUID(p.Query.GPU), VM: services.VMID(p.Query.VM), Family: p.Query.Kind,
		Before: p.Query.Before, Limit: pageRows,
	})
	if err != nil {
		return err
	}
	p.Next = found.Next
	if p.Events, err = happenings(found.Events); err != nil {
		return err
	}
	return r.render(http.StatusOK, view(p))
}

// about is the name of the object that the query asks for.
func (h activityPages) about(r *request, q urls.ActivityQuery) (string, error) {
	switch {
	case q.GPU != "":
		id, err := services.ParseID[services.GPUID](q.GPU)
		if err != nil {
			return "", err
		}
		d, err := h.objects.GPU(r.ctx(), r.account(), id)
		return d.GPU.Name, err
	case q.VM != "":
		id, err := services.ParseID[services.VMID](q.VM)
		if err != nil {
			return "", err
		}
		d, err := h.objects.VM(r.ctx(), r.account(), id)
		return d.VM.Name, err
	}
	return "", nil
}
