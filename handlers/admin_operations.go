package handlers

import (
	"context"
	"net/http"
	"slices"

	"github.com/a-h/templ"

	"berth/services"
	"berth/services/compute"
	"berth/web/admin/operations"
	"berth/web/urls"
)

// fleetOperations are the operations of all accounts.
type fleetOperations interface {
	Operations(ctx context.Context, f compute.OperationFilter) (compute.OperationPage, error)
	OperatorRetry(ctx context.Context, a services.Actor, id services.OperationID) error
	OperatorCancel(ctx context.Context, a services.Actor, id services.OperationID) error
}

// operationPages show operators what is under way, and act on it.
type operationPages struct {
	site       *site
	operations fleetOperations
	places     rangeReader
}

func (s *site) operationPages() operationPages {
	return operationPages{site: s, operations: s.Compute, places: s.Compute}
}

func (h operationPages) list(r *request) error { return h.show(r, operations.View) }

func (h operationPages) fragment(r *request) error { return h.show(r, operations.Fragment) }

func (h operationPages) show(r *request, view func(operations.List) templ.Component) error {
	l, err := h.build(r, operationQuery(fleetQuery(r.QueryParams())))
	if err != nil {
		return err
	}
	return r.render(http.StatusOK, view(l))
}

func operationQuery(q urls.ListQuery) urls.ListQuery {
	q = urls.ListQuery{Text: q.Text, Zone: q.Zone, State: q.State, Account: q.Account, Sort: q.Sort, After: string(after[services.OperationID](q.After))}
	if !slices.Contains(operations.States, q.State) {
		q.State = ""
	}
	return q
}

func (h operationPages) build(r *request, q urls.ListQuery) (operations.List, error) {
	var l operations.List
	var err error
	if l.Shell, l.Key, err = r.page(); err != nil {
		return l, err
	}
	page, err := h.operations.Operations(r.ctx(), compute.OperationFilter{
		Text: q.Text, Account: services.AccountID(q.Account), Zone: q.Zone, State: q.State, Sort: q.Sort,
		After: services.OperationID(q.After), Limit: pageRows,
	})
	if err != nil {
		return l, err
	}
	if len(page.Operations) == 0 && q.After != "" { // its rows have gone
		q.After = ""
		return h.build(r, q)
	}
	l.Count = countOperations(page.Counts)
	l.Listing = listing(urls.AdminOperations, q, len(page.Operations), l.Count(q.State), string(page.Next), "-created")
	for _, op := range page.Operations {
		l.Rows = append(l.Rows, h.row(op))
	}
	if l.Owner = q.Account; q.Account != "" && len(l.Rows) > 0 {
		l.Owner = l.Rows[0].AccountName
	}
	_, l.Zones, _, err = r.places(h.places, q)
	return l, err
}

func countOperations(counts map[services.OperationState]int) func(string) int {
	return func(state string) int {
		switch state {
		case "":
			n := 0
			for _, c := range counts {
				n += c
			}
			return n
		case "open":
			return counts[services.OpRunning] + counts[services.OpStuck]
		}
		return counts[services.OperationState(state)]
	}
}

func (h operationPages) row(op compute.OperationRow) operations.Row {
	row := operations.Row{
		Progress: *h.site.progress(&op.Operation), Account: op.Account, AccountName: op.AccountName, Host: op.Host, HostName: op.HostName,
		Zone: op.Zone, Power: op.Power,
	}
	if p, ok, err := compute.Problem(compute.VM{ID: op.VM, Problem: op.Problem}); err == nil && ok && op.Open() {
		row.Problem = p.Message
	}
	return row
}

func (h operationPages) retry(r *request) error { return h.act(r, h.operations.OperatorRetry) }

func (h operationPages) cancel(r *request) error { return h.act(r, h.operations.OperatorCancel) }

func (h operationPages) act(r *request, do func(context.Context, services.Actor, services.OperationID) error) error {
	id, err := pathID[services.OperationID](r)
	if err != nil {
		return err
	}
	q := operationQuery(fleetQuery(r.referred(urls.AdminOperations)))
	err = do(r.ctx(), r.actor(), id)
	return r.answer(err, q.On(urls.AdminOperations), func(status int, broken []services.Violation) error {
		l, err := h.build(r, q)
		if err != nil {
			return err
		}
		l.Broken = broken
		return r.render(status, operations.View(l))
	})
}
