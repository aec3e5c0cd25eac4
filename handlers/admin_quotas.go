package handlers

import (
	"context"
	"net/http"
	"strings"

	"github.com/a-h/templ"

	"berth/services"
	"berth/services/tenancy"
	"berth/web/admin/accounts"
	"berth/web/quotas"
	"berth/web/urls"
)

// quotaBooks are what accounts may have and have.
type quotaBooks interface {
	Quotas(ctx context.Context, f tenancy.QuotaFilter) (tenancy.QuotaPage, error)
	ChangeQuota(ctx context.Context, a services.Actor, in tenancy.NewQuota) error
}

func (h accountPages) quotaList(r *request) error { return h.showQuotas(r, accounts.QuotasView) }

func (h accountPages) quotaFragment(r *request) error {
	return h.showQuotas(r, accounts.QuotasFragment)
}

func (h accountPages) showQuotas(r *request, view func(accounts.Quotas) templ.Component) error {
	l, err := h.buildQuotas(r, quotaQuery(fleetQuery(r.QueryParams())))
	if err != nil {
		return err
	}
	return r.render(http.StatusOK, view(l))
}

func quotaQuery(q urls.ListQuery) urls.ListQuery {
	return urls.ListQuery{Text: q.Text, Region: q.Region, Model: q.Model, Account: q.Account, After: q.After}
}

func (h accountPages) buildQuotas(r *request, q urls.ListQuery) (accounts.Quotas, error) {
	var l accounts.Quotas
	var err error
	if l.Shell, err = r.shell(); err != nil {
		return l, err
	}
	page, err := h.quotas.Quotas(r.ctx(), tenancy.QuotaFilter{
		Account: services.AccountID(q.Account), Text: q.Text, Region: q.Region, Item: q.Model, After: q.After, Limit: pageRows,
	})
	if err != nil {
		return l, err
	}
	if len(page.Quotas) == 0 && q.After != "" { // its rows have gone
		q.After = ""
		return h.buildQuotas(r, q)
	}
	l.Listing = listing(urls.AdminQuotas, q, len(page.Quotas), page.Total, page.Next, "")
	l.Rows = quotaRows(page.Quotas)
	l.Setting = accounts.Setting{Account: q.Account, Region: q.Region, Item: q.Model, Regions: page.Regions, Models: page.Models, Back: q.On(urls.AdminQuotas)}
	if len(l.Rows) == 1 && q.Account != "" && q.Region != "" && q.Model != "" { // the one that is to be changed
		l.Setting.Limit = l.Rows[0].Value()
	}
	return l, nil
}

func quotaRows(all []tenancy.Quota) []quotas.Quota {
	rows := make([]quotas.Quota, 0, len(all))
	for _, q := range all {
		rows = append(rows, quotas.Quota{
			Account: q.Account, AccountName: q.AccountName, Region: q.Region, Item: q.Item, Max: q.Max, Used: q.Used, Pending: q.Pending,
		})
	}
	return rows
}

// setQuota sets a quota. A refusal shows the form again on the page that it
// came from.
func (h accountPages) setQuota(r *request) error {
	f, err := r.form()
	if err != nil {
		return err
	}
	in := tenancy.NewQuota{Account: f.text("account"), Region: f.text("region"), Item: f.text("model"), Limit: f.text("limit")}
	if in.Item == "" {
		in.Item = f.text("resource")
	}
	back := f.back(urls.AdminQuotas)
	err = h.quotas.ChangeQuota(r.ctx(), r.actor(), in)
	return r.answer(err, back, func(status int, broken []services.Violation) error {
		asked := func(s accounts.Setting) accounts.Setting {
			s.Account, s.Region, s.Item, s.Limit, s.Broken, s.Back = in.Account, in.Region, in.Item, in.Limit, broken, back
			return s
		}
		if id, of := strings.CutPrefix(back, urls.AdminAccounts+"/"); of {
			p, err := h.buildPage(r, services.AccountID(id))
			if err == nil {
				p.Setting, p.Broken = asked(p.Setting), broken
				return r.render(status, accounts.View(p))
			}
		}
		l, err := h.buildQuotas(r, quotaQuery(fleetQuery(r.referred(urls.AdminQuotas))))
		if err != nil {
			return err
		}
		l.Setting, l.Broken = asked(l.Setting), broken
		return r.render(status, accounts.QuotasView(l))
	})
}

// limitReader answers what an account may have and has.
type limitReader interface {
	Limits(ctx context.Context, account services.AccountID, region string) ([]tenancy.Quota, error)
}

// limitPages show an account its own quotas.
type limitPages struct{ limits limitReader }

func (s *site) limits() limitPages { return limitPages{s.Tenancy} }

func (h limitPages) page(r *request) error { return h.show(r, quotas.View) }

func (h limitPages) fragment(r *request) error { return h.show(r, quotas.Fragment) }

func (h limitPages) show(r *request, view func(quotas.Page) templ.Component) error {
	shell, err := r.shell()
	if err != nil {
		return err
	}
	all, err := h.limits.Limits(r.ctx(), r.account(), shell.Region)
	if err != nil {
		return err
	}
	return r.render(http.StatusOK, view(quotas.Page{Shell: shell, Rows: quotaRows(all)}))
}
