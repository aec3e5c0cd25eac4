package handlers

import (
	"context"
	"net/http"
	"slices"
	"time"

	"github.com/a-h/templ"

	"berth/services"
	"berth/services/fleet"
	"berth/web/admin/cards"
	"berth/web/urls"
)

// cardReader answers what cards there are.
type cardReader interface {
	Cards(ctx context.Context, f fleet.CardFilter) (fleet.CardPage, error)
	Card(ctx context.Context, id services.CardID) (fleet.CardDetail, error)
}

// cardWriter changes what operators decide of cards.
type cardWriter interface {
	SetCondition(ctx context.Context, a services.Actor, id services.CardID, in fleet.NewCondition) error
	SetConditions(ctx context.Context, a services.Actor, ids []services.CardID, in fleet.NewCondition) error
}

// cardPages show cards, and act on them.
type cardPages struct {
	site   *site
	cards  cardReader
	writer cardWriter
	places rangeReader
}

func (s *site) cards() cardPages {
	return cardPages{site: s, cards: s.Fleet, writer: s.Fleet, places: s.Compute}
}

func (h cardPages) list(r *request) error { return h.showList(r, cards.ListView) }

func (h cardPages) listFragment(r *request) error { return h.showList(r, cards.ListFragment) }

func (h cardPages) showList(r *request, view func(cards.List) templ.Component) error {
	l, err := h.buildList(r, cardQuery(fleetQuery(r.QueryParams())))
	if err != nil {
		return err
	}
	return r.render(http.StatusOK, view(l))
}

func cardQuery(q urls.ListQuery) urls.ListQuery {
	q.Version, q.Actor, q.Object, q.From, q.Until = "", "", "", "", ""
	if !slices.Contains(cards.States, q.State) {
		q.State = ""
	}
	q.After = string(after[services.CardID](q.After))
	return q
}

func (h cardPages) buildList(r *request, q urls.ListQuery) (cards.List, error) {
	var l cards.List
	var err error
	if l.Shell, l.Key, err = r.page(); err != nil {
		return l, err
	}
	page, err := h.cards.Cards(r.ctx(), fleet.CardFilter{
		Text: q.Text, Region: q.Region, Zone: q.Zone, Model: q.Model, Host: services.HostID(q.Host), Account: services.AccountID(q.Account),
		State: q.State, Sort: q.Sort, After: services.CardID(q.After), Limit: pageRows,
	})
	if err != nil {
		return l, err
	}
	if len(page.Cards) == 0 && q.After != "" { // its rows have gone
		q.After = ""
		return h.buildList(r, q)
	}
	l.Listing = listing(urls.AdminCards, q, len(page.Cards), page.Counts.Of(q.State), string(page.Next), "-created")
	l.Count = page.Counts.Of
	for _, c := range page.Cards {
		l.Rows = append(l.Rows, h.row(c))
	}
	h.nameFilters(&l)
	l.Regions, l.Zones, l.Models, err = r.places(h.places, q)
	return l, err
}

// nameFilters names the host and the account that the query asks for.
func (h cardPages) nameFilters(l *cards.List) {
	if l.HostName = l.Query.Host; len(l.Rows) > 0 && l.Query.Host != "" {
		l.HostName = l.Rows[0].HostName
	}
	if l.Owner = l.Query.Account; len(l.Rows) > 0 && l.Query.Account != "" {
		l.Owner = l.Rows[0].AccountName
	}
}

func (h cardPages) row(c fleet.CardRow) cards.Row {
	withheld := h.withheld(c)
	idle := c.GPU == "" && c.Status == services.CardReady
	r := cards.Row{
		ID: c.ID, Model: c.Model, Vendor: c.VendorID + ":" + c.DeviceID, Serial: c.Serial, Host: c.Host, HostName: c.HostName, Zone: c.Zone,
		PCIAddress: c.PCIAddress, IOMMUGroup: c.IOMMUGroup, NUMANode: c.NUMANode, Driver: c.Driver, Status: c.Status, Reason: c.ConditionReason,
		Offered: idle && withheld == "", GPU: c.GPU, GPUName: c.GPUName, State: c.GPUState, Account: c.Account, AccountName: c.AccountName,
		VMName: c.VMName, Seen: c.LastSeenAt,
	}
	if idle {
		r.Withheld = withheld
	}
	if c.MissingSince == nil && c.HostUntil.After(h.site.Now()) {
		r.Seen = c.HostSeen // a report that says nothing new of a card leaves its row alone
	}
	return r
}

// withheld says why a host gives none of its cards out; empty: it does.
func (h cardPages) withheld(c fleet.CardRow) string {
	switch {
	case c.HostMode != services.HostAccepting:
		return string(c.HostMode)
	case !c.HostUntil.After(h.site.Now()):
		return "silent"
	case !c.HostReady:
		return "not-ready"
	}
	return ""
}

func (h cardPages) page(r *request) error { return h.showPage(r, cards.View) }

func (h cardPages) fragment(r *request) error { return h.showPage(r, cards.Fragment) }

func (h cardPages) showPage(r *request, view func(cards.Page) templ.Component) error {
	id, err := pathID[services.CardID](r)
	if err != nil {
		return err
	}
	p, err := h.buildPage(r, id)
	if err != nil {
		return err
	}
	return r.render(http.StatusOK, view(p))
}

func (h cardPages) buildPage(r *request, id services.CardID) (cards.Page, error) {
	d, err := h.cards.Card(r.ctx(), id)
	if err != nil {
		return cards.Page{}, err
	}
	p := cards.Page{Card: h.card(d)}
	for _, c := range d.Choices {
		p.Choices = append(p.Choices, cards.Choice{Action: c.Action, Impact: string(c.Impact), VMs: c.VMs})
	}
	for _, o := range d.Holdings {
		p.Holdings = append(p.Holdings, cards.Holding{
			GPU: o.GPU, GPUName: o.GPUName, Account: o.Account, AccountName: o.AccountName, From: o.BeganAt, Until: orZero(o.EndedAt),
		})
	}
	if p.Events, err = audited(d.Events); err != nil {
		return p, err
	}
	p.Shell, p.Key, err = r.page()
	return p, err
}

func orZero(t *time.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return *t
}

func (h cardPages) card(d fleet.CardDetail) cards.Card {
	c := d.Card
	out := cards.Card{
		Row: h.row(c), UUID: c.UUID, SubsystemID: c.SubsystemID, VBIOS: c.VBIOS, Firmware: c.Firmware, Parents: c.Parents,
		Since: c.ConditionSince, By: c.ConditionActor, Preparing: c.Undo != "", MissingSince: orZero(c.MissingSince), FoundAt: c.CreatedAt,
		Dirty: string(c.UsedBy), VM: c.VM, Power: c.VMPower, Deadline: orZero(d.Deadline),
	}
	for _, f := range d.Functions {
		out.Functions = append(out.Functions, cards.Function{Address: f.Address, Class: f.Class, Driver: f.Driver})
	}
	if p := d.Problem; p != nil {
		out.Problem = &cards.Problem{Code: p.Code, Message: p.Message, Holder: p.Holder, PID: p.PID, Since: p.Since, Final: p.Final}
	}
	return out
}

func newCondition(f form) fleet.NewCondition {
	return fleet.NewCondition{Action: services.CardAction(f.text("action")), Reason: f.Get("reason"), Confirm: f.text("confirm")}
}

// setCondition acts on a card. A refusal shows the page again, with what was asked.
func (h cardPages) setCondition(r *request) error {
	id, err := pathID[services.CardID](r)
	if err != nil {
		return err
	}
	f, err := r.form()
	if err != nil {
		return err
	}
	in := newCondition(f)
	err = h.writer.SetCondition(r.ctx(), r.actor(), id, in)
	return r.answer(err, urls.Card(id), func(status int, broken []services.Violation) error {
		p, err := h.buildPage(r, id)
		if err != nil {
			return err
		}
		p.Broken, p.Asked = broken, cards.Asked{Action: in.Action, Reason: in.Reason, Confirm: in.Confirm}
		return r.render(status, cards.View(p))
	})
}

// bulk acts on several cards.
func (h cardPages) bulk(r *request) error {
	f, err := r.form()
	if err != nil {
		return err
	}
	ids, err := formIDs[services.CardID](f, "card")
	in := newCondition(f)
	if err == nil {
		err = h.writer.SetConditions(r.ctx(), r.actor(), ids, in)
	}
	q := cardQuery(fleetQuery(r.referred(urls.AdminCards)))
	return r.answer(err, q.On(urls.AdminCards), func(status int, broken []services.Violation) error {
		l, err := h.buildList(r, q)
		if err != nil {
			return err
		}
		l.Broken, l.Reason = broken, in.Reason
		for i := range l.Rows {
			l.Rows[i].Ticked = slices.Contains(ids, l.Rows[i].ID)
		}
		return r.render(status, cards.ListView(l))
	})
}
