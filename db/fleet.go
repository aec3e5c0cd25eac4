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
func (s Store) InsertToken(ctx context.Context, hash []byte, zone string, now, expires time.Time) error {
	_, err := s.exec(ctx, "insert enrolment token", `
		insert into enrolment_tokens (token_hash, zone_id, created_at, expires_at) values ($1, $2, $3, $4)`, hash, zone, now, expires)
	return err
}

// Token is an enrolment token.
type Token struct {
	Zone      string           `db:"zone_id"`
	ExpiresAt time.Time        `db:"expires_at"`
	Agent     services.AgentID `db:"agent_id"` // who used it; empty: nobody
}

// LockToken finds a token and keeps others from using it.
func (t *Tx) LockToken(ctx context.Context, hash []byte) (k Token, ok bool, err error) {
	ok, err = t.found(ctx, &k, "find enrolment token", `
		select zone_id, expires_at, coalesce(agent_id, '') as agent_id from enrolment_tokens where token_hash = $1 for update`, hash)
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

// Host is a machine with cards.
type Host struct {
	ID             services.HostID   `db:"id"`
	Agent          services.AgentID  `db:"agent_id"`
	Zone           string            `db:"zone_id"`
	Name           string            `db:"name"`
	Generation     string            `db:"generation"`
	VCores         int               `db:"vcores"`
	MemoryMiB      int64             `db:"memory_mib"`
	Kernel         string            `db:"kernel"`
	Findings       JSON              `db:"findings"`
	Mode           services.HostMode `db:"mode"`
	ModeReason     string            `db:"mode_reason"`
	ReportedAt     time.Time         `db:"reported_at"`
	ConfirmedUntil time.Time         `db:"confirmed_until"`
	CreatedAt      time.Time         `db:"created_at"`
}

const hostColumns = `id, agent_id, zone_id, name, generation, vcores, memory_mib, kernel, findings, mode, mode_reason,
	reported_at, confirmed_until, created_at`

// Hosts lists all hosts by zone and name.
func (s Store) Hosts(ctx context.Context) ([]Host, error) {
	var hosts []Host
	err := s.all(ctx, &hosts, "list hosts", `select `+hostColumns+` from hosts order by zone_id, name`)
	return hosts, err
}

// AgentHosts lists the hosts of an agent by name.
func (s Store) AgentHosts(ctx context.Context, agent services.AgentID) ([]Host, error) {
	var hosts []Host
	err := s.all(ctx, &hosts, "list hosts of agent", `select `+hostColumns+` from hosts where agent_id = $1 order by name`, agent)
	return hosts, err
}

// SaveHost adds a host of an agent, or writes what a report says of a known
// one; it gives the host's id. Mode and a longer confirmation stay.
func (t *Tx) SaveHost(ctx context.Context, h Host) (services.HostID, error) {
	var id services.HostID
	err := t.one(ctx, &id, "save host", `
		insert into hosts (id, agent_id, zone_id, name, generation, vcores, memory_mib, kernel, findings, reported_at, confirmed_until, created_at)
		values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $10)
		on conflict (agent_id, name) do update set generation = excluded.generation, vcores = excluded.vcores,
			memory_mib = excluded.memory_mib, kernel = excluded.kernel, findings = excluded.findings, reported_at = excluded.reported_at,
			confirmed_until = greatest(hosts.confirmed_until, excluded.confirmed_until)
		returning id`,
		h.ID, h.Agent, h.Zone, h.Name, h.Generation, h.VCores, h.MemoryMiB, h.Kernel, h.Findings, h.ReportedAt, h.ConfirmedUntil)
	return id, err
}

// Card is a physical GPU in a host.
type Card struct {
	ID              services.CardID        `db:"id"`
	Identity        string                 `db:"identity"`
	Key             string                 `db:"key"`
	Host            services.HostID        `db:"host_id"`
	Zone            string                 `db:"zone_id"`
	Model           string                 `db:"model_id"` // empty: its PCI ids are unknown
	VendorID        string                 `db:"vendor_id"`
	DeviceID        string                 `db:"device_id"`
	SubsystemID     string                 `db:"subsystem_id"`
	Serial          string                 `db:"serial"`
	UUID            string                 `db:"uuid"`
	PCIAddress      string                 `db:"pci_address"`
	IOMMUGroup      *int                   `db:"iommu_group"`
	NUMANode        *int                   `db:"numa_node"`
	Functions       JSON                   `db:"functions"`
	Condition       services.CardCondition `db:"condition"`
	ConditionReason string                 `db:"condition_reason"`
	MissingSince    *time.Time             `db:"missing_since"`
	LastSeenAt      time.Time              `db:"last_seen_at"`
	CleanOrder      int64                  `db:"clean_order"`
	UsedBy          services.AccountID     `db:"used_by"`
	GPU             services.GPUID         `db:"gpu_id"`
	Agent           services.AgentID       `db:"agent_id"`
}

const cardColumns = `
	c.id, c.identity, c.key, c.host_id, c.zone_id, coalesce(c.model_id, '') as model_id, c.vendor_id, c.device_id, c.subsystem_id,
	c.serial, c.uuid, c.pci_address, c.iommu_group, c.numa_node, c.functions, c.condition, c.condition_reason, c.missing_since,
	c.last_seen_at, c.clean_order, coalesce(c.used_by, '') as used_by, coalesce(c.gpu_id, '') as gpu_id, h.agent_id`

// CardsOf lists the cards of some hosts, and those known elsewhere under one of
// the identities.
func (s Store) CardsOf(ctx context.Context, hosts []services.HostID, identities []string) ([]Card, error) {
	var cards []Card
	err := s.all(ctx, &cards, "list cards of hosts", `
		select`+cardColumns+` from cards c join hosts h on h.id = c.host_id
		where c.host_id = any($1) or c.identity = any($2) order by c.host_id, c.pci_address`, textArray(hosts), textArray(identities))
	return cards, err
}

// ModelOf finds the model that a vendor:device pair stands for.
func (s Store) ModelOf(ctx context.Context, vendor, device string) (model string, ok bool, err error) {
	ok, err = s.found(ctx, &model, "find model of PCI ids", `select model_id from model_pci_ids where pci_id = $1`, vendor+":"+device)
	return model, ok, err
}

// InsertCard adds a card that was seen for the first time.
func (t *Tx) InsertCard(ctx context.Context, c Card) error {
	_, err := t.exec(ctx, "insert card", `
		insert into cards (id, identity, key, host_id, zone_id, model_id, vendor_id, device_id, subsystem_id, serial, uuid, pci_address,
		                   iommu_group, numa_node, functions, condition, condition_reason, clean_order, last_seen_at, created_at)
		values ($1, $2, $3, $4, $5, nullif($6, ''), $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $19)`,
		c.ID, c.Identity, c.Key, c.Host, c.Zone, c.Model, c.VendorID, c.DeviceID, c.SubsystemID, c.Serial, c.UUID, c.PCIAddress,
		c.IOMMUGroup, c.NUMANode, c.Functions, c.Condition, c.ConditionReason, c.CleanOrder, c.LastSeenAt)
	return err
}

// SawCard writes where and how a known card was seen.
func (t *Tx) SawCard(ctx context.Context, c Card) error {
	_, err := t.exec(ctx, "set what was seen of card", `
		update cards set pci_address = $2, iommu_group = $3, numa_node = $4, functions = $5, missing_since = $6, last_seen_at = $7
		where id = $1`, c.ID, c.PCIAddress, c.IOMMUGroup, c.NUMANode, c.Functions, c.MissingSince, c.LastSeenAt)
	return err
}

// Cleaned ends the cleaning order with that number: the card is ready and
// nobody's data is on it. False where a newer order stands or none is open.
func (t *Tx) Cleaned(ctx context.Context, card services.CardID, order int64) (bool, error) {
	n, err := t.exec(ctx, "end cleaning", `
		update cards set used_by = null, condition = case when condition = 'cleaning' then 'ready' else condition end
		where id = $1 and clean_order = $2 and (condition = 'cleaning' or used_by is not null) and gpu_id is null`, card, order)
	return n == 1, err
}

// Quarantine takes a card out of offer because its cleaning order failed.
func (t *Tx) Quarantine(ctx context.Context, card services.CardID, order int64, reason string) (bool, error) {
	n, err := t.exec(ctx, "quarantine card", `
		update cards set condition = 'quarantined', condition_reason = $3
		where id = $1 and clean_order = $2 and condition = 'cleaning'`, card, order, reason)
	return n == 1, err
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
