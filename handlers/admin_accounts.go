package handlers

import (
	"context"
	"net/http"
	"slices"

	"github.com/a-h/templ"

	"berth/services"
	"berth/services/tenancy"
	"berth/web/admin/accounts"
	"berth/web/urls"
)

// accountBooks are what is known of accounts, and what operators decide of them.
type accountBooks interface {
	ListAccounts(ctx context.Context, f tenancy.AccountFilter) (tenancy.AccountPage, error)
	Account(ctx context.Context, id services.AccountID) (tenancy.AccountDetail, error)
	OpenAccount(ctx context.Context, a services.Actor, name, ownerEmail string) (services.AccountID, error)
	Suspend(ctx context.Context, a services.Actor, id services.AccountID, reason string) error
	Unsuspend(ctx context.Context, a services.Actor, id services.AccountID) error
	SetMember(ctx context.Context, a services.Actor, id services.AccountID, email string, role services.Role) error
}

// accountPages show accounts to operators.
type accountPages struct {
	site     *site
	accounts accountBooks
	quotas   quotaBooks
	places   rangeReader
}

func (s *site) accountPages() accountPages {
	return accountPages{site: s, accounts: s.Tenancy, quotas: s.Tenancy, places: s.Compute}
}

func (h accountPages) list(r *request) error { return h.showList(r, accounts.ListView) }

func (h accountPages) listFragment(r *request) error { return h.showList(r, accounts.ListFragment) }

func (h accountPages) showList(r *request, view func(accounts.List) templ.Component) error {
	l, err := h.buildList(r, accountQuery(fleetQuery(r.QueryParams())))
	if err != nil {
		return err
	}
	return r.render(http.StatusOK, view(l))
}

func accountQuery(q urls.ListQuery) urls.ListQuery {
	q = urls.ListQuery{Text: q.Text, State: q.State, Sort: q.Sort, After: string(after[services.AccountID](q.After))}
	if !slices.Contains(accounts.States, q.State) {
		q.State = ""
	}
	return q
}

func (h accountPages) buildList(r *request, q urls.ListQuery) (accounts.List, error) {
	var l accounts.List
	var err error
	if l.Shell, l.Key, err = r.page(); err != nil {
		return l, err
	}
	page, err := h.accounts.ListAccounts(r.ctx(), tenancy.AccountFilter{
		Text: q.Text, State: q.State, Sort: q.Sort, After: services.AccountID(q.After), Limit: pageRows,
	})
	if err != nil {
		return l, err
	}
	if len(page.Accounts) == 0 && q.After != "" { // its rows have gone
		q.After = ""
		return h.buildList(r, q)
	}
	l.Count = func(state string) int {
		return map[string]int{"": page.Totals.All, "suspended": page.Totals.Suspended, "active": page.Totals.All - page.Totals.Suspended}[state]
	}
	l.Listing = listing(urls.AdminAccounts, q, len(page.Accounts), l.Count(q.State), string(page.Next), "name")
	for _, a := range page.Accounts {
		l.Rows = append(l.Rows, accountRow(a))
	}
	return l, nil
}

func accountRow(a tenancy.AccountRow) accounts.Row {
	return accounts.Row{
		ID: a.ID, Name: a.Name, GPUs: a.GPUs, Machines: a.VMs, Members: a.Members, OpenedAt: a.CreatedAt,
		Suspended: a.SuspendedAt != nil, Reason: a.SuspendedReason,
	}
}

// open adds an account and leads to its page.
func (h accountPages) open(r *request) error {
	f, err := r.form()
	if err != nil {
		return err
	}
	asked := accounts.Opening{Name: f.Get("name"), Email: f.text("email")}
	id, err := h.accounts.OpenAccount(r.ctx(), r.actor(), asked.Name, asked.Email)
	return r.answer(err, urls.AdminAccount(id), func(status int, broken []services.Violation) error {
		l, err := h.buildList(r, accountQuery(fleetQuery(r.referred(urls.AdminAccounts))))
		if err != nil {
			return err
		}
		l.Broken, l.Asked = broken, asked
		return r.render(status, accounts.ListView(l))
	})
}

func (h accountPages) page(r *request) error { return h.showPage(r, accounts.View) }

func (h accountPages) fragment(r *request) error { return h.showPage(r, accounts.Fragment) }

func (h accountPages) showPage(r *request, view func(accounts.Page) templ.Component) error {
	id, err := pathID[services.AccountID](r)
	if err != nil {
		return err
	}
	p, err := h.buildPage(r, id)
	if err != nil {
		return err
	}
	return r.render(http.StatusOK, view(p))
}

func (h accountPages) buildPage(r *request, id services.AccountID) (accounts.Page, error) {
	d, err := h.accounts.Account(r.ctx(), id)
	if err != nil {
		return accounts.Page{}, err
	}
	p := accounts.Page{Account: accountRow(d.Account), SuspendedSince: orZero(d.Account.SuspendedAt), Quotas: quotaRows(d.Quotas)}
	for _, m := range d.Members {
		p.Members = append(p.Members, accounts.Member{Email: m.Email, Role: m.Role})
	}
	if p.Events, err = audited(d.Events); err != nil {
		return p, err
	}
	p.Setting = accounts.Setting{Account: string(id), Back: urls.AdminAccount(id)}
	if p.Setting.Regions, _, p.Setting.Models, err = r.places(h.places, urls.ListQuery{}); err != nil {
		return p, err
	}
	p.Shell, p.Key, err = r.page()
	return p, err
}

// setState suspends an account, or ends that.
func (h accountPages) setState(r *request) error {
	return h.change(r, func(id services.AccountID, f form) (accounts.Asked, error) {
		asked := accounts.Asked{Form: "suspend", Reason: f.Get("reason")}
		switch action := f.text("action"); action {
		case "suspend":
			return asked, h.accounts.Suspend(r.ctx(), r.actor(), id, asked.Reason)
		case "resume":
			return asked, h.accounts.Unsuspend(r.ctx(), r.actor(), id)
		default:
			return asked, services.NoneOf("action", action, "suspend", "resume")
		}
	})
}

// setMember gives somebody a role; the empty one ends the membership.
func (h accountPages) setMember(r *request) error {
	return h.change(r, func(id services.AccountID, f form) (accounts.Asked, error) {
		asked := accounts.Asked{Form: "member", Email: f.text("email"), Role: f.text("role")}
		return asked, h.accounts.SetMember(r.ctx(), r.actor(), id, asked.Email, services.Role(asked.Role))
	})
}

// change does something with an account. A refusal shows its page again, with
// what was asked.
func (h accountPages) change(r *request, do func(services.AccountID, form) (accounts.Asked, error)) error {
	id, err := pathID[services.AccountID](r)
	if err != nil {
		return err
	}
	f, err := r.form()
	if err != nil {
		return err
	}
	asked, err := do(id, f)
	return r.answer(err, urls.AdminAccount(id), func(status int, broken []services.Violation) error {
		p, err := h.buildPage(r, id)
		if err != nil {
			return err
		}
		p.Broken, p.Asked = broken, asked
		return r.render(status, accounts.View(p))
	})
}
