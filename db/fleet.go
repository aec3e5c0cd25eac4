package db

import (
	"context"
	"time"

	"berth/services"
)

// Agent is the program that serves some hosts.
type Agent struct {
	ID              services.AgentID `db:"id"`
	Zone            string           `db:"zone_id"`
	CertificateHash []byte           `db:"certificate_hash"`
	FormerHash      []byte           `db:"former_hash"` // nil: none
	ExpiresAt       time.Time        `db:"expires_at"`
	RevokedAt       *time.Time       `db:"revoked_at"`
	Version         string           `db:"version"`
	Driver          string           `db:"driver"`
	Epoch           int64            `db:"epoch"`
	Sequence        int64            `db:"sequence"`
	ReportedAt      *time.Time       `db:"reported_at"`
	DesiredRevision int64            `db:"desired_revision"`
	ReachedRevision int64            `db:"reached_revision"`
	CreatedAt       time.Time        `db:"created_at"`
}

const agentColumns = `id, zone_id, certificate_hash, former_hash, expires_at, revoked_at, version, driver, epoch, sequence, reported_at,
	desired_revision, reached_revision, created_at`

// Agent finds an agent.
func (s Store) Agent(ctx context.Context, id services.AgentID) (a Agent, ok bool, err error) {
	ok, err = s.found(ctx, &a, "find agent", `select `+agentColumns+` from agents where id = $1`, id)
	return a, ok, err
}

// Agents lists all agents, oldest first.
func (s Store) Agents(ctx context.Context) ([]Agent, error) {
	var agents []Agent
	err := s.all(ctx, &agents, "list agents", `select `+agentColumns+` from agents order by created_at, id`)
	return agents, err
}

// InsertAgent adds an agent that has just enrolled.
func (t *Tx) InsertAgent(ctx context.Context, a Agent) error {
	_, err := t.exec(ctx, "insert agent", `
		insert into agents (id, zone_id, certificate_hash, expires_at, version, driver, created_at)
		values ($1, $2, $3, $4, $5, $6, $7)`, a.ID, a.Zone, a.CertificateHash, a.ExpiresAt, a.Version, a.Driver, a.CreatedAt)
	return err
}

// SetAgentCertificate makes a new certificate the agent's, beside a former one
// (nil: none); false where the agent was revoked.
func (t *Tx) SetAgentCertificate(ctx context.Context, id services.AgentID, former, hash []byte, expires time.Time) (bool, error) {
	n, err := t.exec(ctx, "set certificate of agent", `
		update agents set former_hash = $2, certificate_hash = $3, expires_at = $4 where id = $1 and revoked_at is null`, id, former, hash, expires)
	return n == 1, err
}

// InsertToken adds a token that one agent may enrol with.
func (s Store) InsertToken(ctx context.Context, hash []byte, zone, by string, now, expires time.Time) error {
	_, err := s.exec(ctx, "insert enrolment token", `
		insert into enrolment_tokens (token_hash, zone_id, created_by, created_at, expires_at) values ($1, $2, $3, $4, $5)`,
		hash, zone, by, now, expires)
	return err
}

// Token is an enrolment token.
type Token struct {
	Zone      string           `db:"zone_id"`
	ExpiresAt time.Time        `db:"expires_at"`
	RevokedAt *time.Time       `db:"revoked_at"` // nil: it counts
	Agent     services.AgentID `db:"agent_id"`   // who used it; empty: nobody
}

// TokenRow is a token of the list; its secret is known to nobody but who made it.
type TokenRow struct {
	ID        int64     `db:"id"`
	Zone      string    `db:"zone_id"`
	CreatedBy string    `db:"created_by"`
	CreatedAt time.Time `db:"created_at"`
	ExpiresAt time.Time `db:"expires_at"`
}

// OpenTokens lists the tokens that may still be used, newest first.
func (s Store) OpenTokens(ctx context.Context, now time.Time) ([]TokenRow, error) {
	var tokens []TokenRow
	err := s.all(ctx, &tokens, "list open tokens", `
		select id, zone_id, created_by, created_at, expires_at from enrolment_tokens
		where agent_id is null and revoked_at is null and expires_at > $1 order by id desc limit 100`, now)
	return tokens, err
}

// RevokeToken makes an open token useless and gives its zone; false where it is
// not open.
func (t *Tx) RevokeToken(ctx context.Context, id int64, now time.Time) (zone string, ok bool, err error) {
	ok, err = t.found(ctx, &zone, "revoke token", `
		update enrolment_tokens set revoked_at = $2
		where id = $1 and agent_id is null and revoked_at is null and expires_at > $2 returning zone_id`, id, now)
	return zone, ok, err
}

// RevokeAgent shuts an agent out; false where it was already.
func (t *Tx) RevokeAgent(ctx context.Context, id services.AgentID, now time.Time) (bool, error) {
	n, err := t.exec(ctx, "revoke agent", `update agents set revoked_at = $2 where id = $1 and revoked_at is null`, id, now)
	return n == 1, err
}

// AgentFilter narrows and pages the list of agents, oldest first.
type AgentFilter struct {
	Text  string // part of the id
	Zone  string
	State string // "active", "revoked", "expired"; empty: all
	After services.AgentID
	Limit int
}

func (f AgentFilter) where() *conditions {
	w := &conditions{}
	w.addIf(f.Text != "", "a.id like lower(?)", contains(f.Text))
	w.addIf(f.Zone != "", "a.zone_id = ?", f.Zone)
	switch f.State {
	case "active":
		w.addRaw("a.revoked_at is null")
	case "revoked":
		w.addRaw("a.revoked_at is not null")
	case "expired":
		w.addRaw("a.revoked_at is null and a.expires_at <= now()")
	}
	return w
}

// AgentRow is an agent of the list.
type AgentRow struct {
	Agent
	Hosts  int `db:"hosts"`
	Drifts int `db:"drifts"`
}

// ListAgents gives one page, oldest first.
func (s Store) ListAgents(ctx context.Context, f AgentFilter) ([]AgentRow, error) {
	w := f.where()
	order := w.page("a", "agents a", sorting{by: []string{"a.created_at"}}, string(f.After))
	var rows []AgentRow
	err := s.all(ctx, &rows, "list agents", `
		select `+agentColumns+`, (select count(*) from hosts h where h.agent_id = a.id) as hosts,
		       (select count(*) from drifts d where d.agent_id = a.id) as drifts from agents a`+w.sql()+order+w.limit(f.Limit), w.args...)
	return rows, err
}

// CountAgents counts the filter's agents; paging is not looked at.
func (s Store) CountAgents(ctx context.Context, f AgentFilter) (int, error) {
	w := f.where()
	var n int
	err := s.one(ctx, &n, "count agents", `select count(*) from agents a`+w.sql(), w.args...)
	return n, err
}

// LockToken finds a token and keeps others from using it.
func (t *Tx) LockToken(ctx context.Context, hash []byte) (k Token, ok bool, err error) {
	ok, err = t.found(ctx, &k, "find enrolment token", `
		select zone_id, expires_at, revoked_at, coalesce(agent_id, '') as agent_id from enrolment_tokens where token_hash = $1 for update`, hash)
	return k, ok, err
}

// UseToken notes who used a token.
func (t *Tx) UseToken(ctx context.Context, hash []byte, agent services.AgentID) error {
	_, err := t.exec(ctx, "use enrolment token", `update enrolment_tokens set agent_id = $2 where token_hash = $1`, hash, agent)
	return err
}

// AcceptReport takes a report if it is newer than the last one; false otherwise.
func (t *Tx) AcceptReport(ctx context.Context, a Agent) (bool, error) {
	n, err := t.exec(ctx, "accept report", `
		update agents set epoch = $2, sequence = $3, reported_at = $4, reached_revision = greatest(reached_revision, $5), version = $6, driver = $7
		where id = $1 and revoked_at is null and (epoch, sequence) < ($2, $3)`,
		a.ID, a.Epoch, a.Sequence, a.ReportedAt, a.ReachedRevision, a.Version, a.Driver)
	return n == 1, err
}

// Newest reports whether (epoch, sequence) is still the last report taken of an agent.
func (s Store) Newest(ctx context.Context, id services.AgentID, epoch, sequence int64) (bool, error) {
	var newest bool
	err := s.one(ctx, &newest, "look for newer report", `select exists (
		select 1 from agents where id = $1 and epoch = $2 and sequence = $3)`, id, epoch, sequence)
	return newest, err
}

// Bump raises the desired revision of a host's agent, wakes it when the
// transaction commits, and gives the new revision.
func (t *Tx) Bump(ctx context.Context, host services.HostID) (int64, error) {
	var revision int64
	err := t.one(ctx, &revision, "raise desired revision", `
		with raised as (
			update agents set desired_revision = desired_revision + 1
			where id = (select agent_id from hosts where id = $1) returning id, desired_revision
		), told as (select pg_notify('berth_desired', id) from raised)
		select desired_revision from raised, told`, host)
	return revision, err
}

// Drift is a difference between reality and the books.
type Drift struct {
	Agent     services.AgentID `db:"agent_id"`
	Kind      string           `db:"kind"`
	Subject   string           `db:"subject"`
	Detail    string           `db:"detail"`
	FirstSeen time.Time        `db:"first_seen"`
	LastSeen  time.Time        `db:"last_seen"`
}

// Drifts lists what differs, newest first.
func (s Store) Drifts(ctx context.Context) ([]Drift, error) {
	var drifts []Drift
	err := s.all(ctx, &drifts, "list drifts", `
		select agent_id, kind, subject, detail, first_seen, last_seen from drifts order by first_seen desc, kind, subject`)
	return drifts, err
}

// SetDrifts replaces an agent's drifts by what its newest full report showed;
// those that last keep their first sight.
func (t *Tx) SetDrifts(ctx context.Context, agent services.AgentID, drifts []Drift, now time.Time) error {
	for _, d := range drifts {
		if err := t.AddDrift(ctx, d); err != nil {
			return err
		}
	}
	_, err := t.exec(ctx, "clear drifts", `delete from drifts where agent_id = $1 and last_seen < $2`, agent, now)
	return err
}

// AddDrift notes a difference.
func (s Store) AddDrift(ctx context.Context, d Drift) error {
	_, err := s.exec(ctx, "note drift", `
		insert into drifts (agent_id, kind, subject, detail, first_seen, last_seen) values ($1, $2, $3, $4, $5, $5)
		on conflict (agent_id, kind, subject) do update set detail = excluded.detail, last_seen = excluded.last_seen`,
		d.Agent, d.Kind, d.Subject, d.Detail, d.LastSeen)
	return err
}
