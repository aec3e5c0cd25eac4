package fleet

import (
	"context"
	"strconv"
	"time"

	"berth/db"
	"berth/services"
)

// AgentRow is an agent of the list, with how many hosts it serves.
type AgentRow = db.AgentRow

// Token is an enrolment token without its secret.
type Token = db.TokenRow

// Agents is everything about the programs on the hosts.
type Agents struct {
	Agents []AgentRow // oldest first
	Next   services.AgentID
	Total  int
	Tokens []Token // that may still be used, newest first
	Drifts []db.Drift
}

// AgentFilter narrows and pages the list of agents.
type AgentFilter = db.AgentFilter

// Agents gives a page of agents with the open tokens and all drifts.
func (s *Service) Agents(ctx context.Context, f AgentFilter) (Agents, error) {
	var p Agents
	var err error
	if p.Total, err = s.db.CountAgents(ctx, f); err != nil {
		return p, err
	}
	limit := f.Limit
	f.Limit++
	if p.Agents, err = s.db.ListAgents(ctx, f); err != nil {
		return p, err
	}
	if limit > 0 && len(p.Agents) > limit {
		p.Agents, p.Next = p.Agents[:limit], p.Agents[limit-1].ID
	}
	if p.Tokens, err = s.db.OpenTokens(ctx, s.now()); err != nil {
		return p, err
	}
	p.Drifts, err = s.db.Drifts(ctx)
	return p, err
}

// AgentCounts tells how many agents need somebody.
type AgentCounts struct {
	All, Expiring, Expired, Revoked, Behind int
}

// expiresSoon is when a certificate should have been renewed by its agent.
const expiresSoon = agentLife / 6

func (c *AgentCounts) add(a db.Agent, now time.Time) {
	c.All++
	switch {
	case a.RevokedAt != nil:
		c.Revoked++
		return
	case a.ExpiresAt.Before(now):
		c.Expired++
	case a.ExpiresAt.Before(now.Add(expiresSoon)):
		c.Expiring++
	}
	if a.DesiredRevision > a.ReachedRevision {
		c.Behind++
	}
}

// Lives that an enrolment token may have.
const (
	shortestToken = time.Minute
	longestToken  = 30 * 24 * time.Hour
)

// IssueToken is NewToken for an operator on a page: it is kept in the log.
// Refusals (invalid): invalid-value in zone or life.
func (s *Service) IssueToken(ctx context.Context, a services.Actor, zone string, life time.Duration) (string, error) {
	if life < shortestToken || life > longestToken {
		return "", services.Invalid("life", services.CodeInvalidValue, map[string]any{"Value": life.String(), "Allowed": "1m ... 720h"})
	}
	secret, hash, err := s.drawToken(ctx, zone)
	if err != nil {
		return "", err
	}
	return secret, s.db.Tx(ctx, func(tx *db.Tx) error {
		now := s.now()
		if err := tx.InsertToken(ctx, hash, zone, a.Email, now, now.Add(life)); err != nil {
			return err
		}
		return tx.InsertEvent(ctx, s.event(a, "agent.token-made", map[string]any{"Zone": zone, "Life": life.String()}), db.Subject{})
	})
}

// RevokeToken makes a token useless that nobody has used yet; one that is used,
// expired or revoked stays as it is.
func (s *Service) RevokeToken(ctx context.Context, a services.Actor, id string) error {
	n, err := strconv.ParseInt(id, 10, 64)
	if err != nil {
		return services.NotFound("token", id)
	}
	return s.db.Tx(ctx, func(tx *db.Tx) error {
		zone, ok, err := tx.RevokeToken(ctx, n, s.now())
		if err != nil || !ok {
			return err
		}
		return tx.InsertEvent(ctx, s.event(a, "agent.token-revoked", map[string]any{"Zone": zone}), db.Subject{})
	})
}

// RevokeAgent shuts an agent out for good: its certificate is worth nothing any
// more. Its hosts and what they hold stay in the books, and are not offered.
func (s *Service) RevokeAgent(ctx context.Context, a services.Actor, id services.AgentID) error {
	return s.db.Tx(ctx, func(tx *db.Tx) error {
		_, known, err := tx.Agent(ctx, id)
		if err != nil {
			return err
		}
		if !known {
			return services.NotFound("agent", string(id))
		}
		revoked, err := tx.RevokeAgent(ctx, id, s.now())
		if err != nil || !revoked {
			return err
		}
		return tx.InsertEvent(ctx, s.event(a, "agent.revoked", map[string]any{"Agent": string(id)}), db.Subject{})
	})
}
