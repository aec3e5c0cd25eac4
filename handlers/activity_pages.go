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
	p, err := h.build(r, activityQuery(r.QueryParams()))
	if err != nil {
		return err
	}
	return r.render(http.StatusOK, view(p))
}

func (h activityPages) build(r *request, q urls.ActivityQuery) (pages.Page, error) {
	p := pages.Page{Query: q}
	var err error
	if p.Shell, err = r.shell(); err != nil {
		return p, err
	}
	if p.About, err = h.about(r, q); err != nil {
		return p, err
	}
	found, err := h.events.List(r.ctx(), activity.Filter{
		Account: r.account(), GPU: services.GPUID(q.GPU), VM: services.VMID(q.VM), Family: q.Kind, Before: q.Before, Limit: pageRows,
	})
	if err != nil {
		return p, err
	}
	if len(found.Events) == 0 && q.Before > 0 { // nothing is older
		q.Before = 0
		return h.build(r, q)
	}
	p.Next = found.Next
	p.Events, err = happenings(found.Events)
	return p, err
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
