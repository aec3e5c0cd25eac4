package handlers

import (
	"context"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/a-h/templ"

	"berth/services"
	"berth/services/fleet"
	"berth/web/admin/agents"
	"berth/web/urls"
)

// agentKeeper are what is known of agents, and how they are let in and shut out.
type agentKeeper interface {
	Agents(ctx context.Context, f fleet.AgentFilter) (fleet.Agents, error)
	IssueToken(ctx context.Context, a services.Actor, zone string, life time.Duration) (string, error)
	RevokeToken(ctx context.Context, a services.Actor, id string) error
	RevokeAgent(ctx context.Context, a services.Actor, id services.AgentID) error
}

// agentPages show agents to operators.
type agentPages struct {
	site   *site
	agents agentKeeper
	places rangeReader
}

func (s *site) agentPages() agentPages {
	return agentPages{site: s, agents: s.Fleet, places: s.Compute}
}

func (h agentPages) list(r *request) error { return h.show(r, agents.View) }

func (h agentPages) fragment(r *request) error { return h.show(r, agents.Fragment) }

func (h agentPages) show(r *request, view func(agents.Page) templ.Component) error {
	p, err := h.build(r, agentQuery(fleetQuery(r.QueryParams())))
	if err != nil {
		return err
	}
	return r.render(http.StatusOK, view(p))
}

func agentQuery(q urls.ListQuery) urls.ListQuery {
	q = urls.ListQuery{Text: q.Text, Zone: q.Zone, State: q.State, After: string(after[services.AgentID](q.After))}
	if !slices.Contains(agents.States, q.State) {
		q.State = ""
	}
	return q
}

func (h agentPages) build(r *request, q urls.ListQuery) (agents.Page, error) {
	p := agents.Page{Console: h.site.AgentURL}
	var err error
	if p.Shell, p.Key, err = r.page(); err != nil {
		return p, err
	}
	found, err := h.agents.Agents(r.ctx(), fleet.AgentFilter{
		Text: q.Text, Zone: q.Zone, State: q.State, After: services.AgentID(q.After), Limit: pageRows,
	})
	if err != nil {
		return p, err
	}
	if len(found.Agents) == 0 && q.After != "" { // its rows have gone
		q.After = ""
		return h.build(r, q)
	}
	p.Listing = listing(urls.AdminAgents, q, len(found.Agents), found.Total, string(found.Next), "")
	p.Rows = agentRows(found.Agents)
	for _, t := range found.Tokens {
		p.Tokens = append(p.Tokens, agents.Token{
			ID: strconv.FormatInt(t.ID, 10), Zone: t.Zone, By: t.CreatedBy, MadeAt: t.CreatedAt, ExpiresAt: t.ExpiresAt,
		})
	}
	for _, d := range found.Drifts {
		p.Drifts = append(p.Drifts, drift(d))
	}
	_, p.Zones, _, err = r.places(h.places, urls.ListQuery{})
	return p, err
}

func agentRows(all []fleet.AgentRow) []agents.Row {
	rows := make([]agents.Row, 0, len(all))
	for _, a := range all {
		rows = append(rows, agents.Row{
			ID: a.ID, Zone: a.Zone, Version: a.Version, Driver: a.Driver, Hosts: a.Hosts, Drifts: a.Drifts, Seen: orZero(a.ReportedAt),
			Behind: int(a.DesiredRevision - a.ReachedRevision), ExpiresAt: a.ExpiresAt, RevokedAt: orZero(a.RevokedAt),
		})
	}
	return rows
}

// defaultLife is how long a token is valid where the form does not say.
const defaultLife = time.Hour

// makeToken shows a new token once, on the page that it was asked from: it is
// in no address and no log.
func (h agentPages) makeToken(r *request) error {
	f, err := r.form()
	if err != nil {
		return err
	}
	asked := agents.Asked{Zone: f.text("zone"), Life: f.text("life")}
	life, err := lifeOf(asked.Life)
	secret := ""
	if err == nil {
		secret, err = h.agents.IssueToken(r.ctx(), r.actor(), asked.Zone, life)
	}
	status, broken, ok := refusal(err)
	if err != nil && !ok {
		return err
	}
	p, err := h.build(r, urls.ListQuery{})
	if err != nil {
		return err
	}
	if p.Broken, p.Asked = broken, asked; ok {
		return r.render(status, agents.View(p))
	}
	p.Made = agents.Made{Secret: secret, Zone: asked.Zone, Life: life}
	return r.render(http.StatusOK, agents.View(p))
}

func lifeOf(text string) (time.Duration, error) {
	if text == "" {
		return defaultLife, nil
	}
	life, err := time.ParseDuration(text)
	if err != nil {
		return 0, services.NoneOf("life", text, "1h", "24h", "168h")
	}
	return life, nil
}

func (h agentPages) revokeToken(r *request) error {
	if err := h.agents.RevokeToken(r.ctx(), r.actor(), r.Param("id")); err != nil {
		return err
	}
	return r.seeOther(urls.AdminAgents)
}

func (h agentPages) revoke(r *request) error {
	id, err := pathID[services.AgentID](r)
	if err != nil {
		return err
	}
	if err := h.agents.RevokeAgent(r.ctx(), r.actor(), id); err != nil {
		return err
	}
	return r.seeOther(urls.AdminAgents)
}
