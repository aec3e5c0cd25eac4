package db

import (
	"context"
	"time"

	"berth/services"
)

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
	NUMA           JSON              `db:"numa"`
	Ready          bool              `db:"ready"`   // no readiness check failed
	Version        string            `db:"version"` // of its agent
	ModeSince      time.Time         `db:"mode_since"`
	ModeActor      string            `db:"mode_actor"` // who set the mode; empty: nobody yet
	SilentSince    *time.Time        `db:"silent_since"`
}

const hostColumns = `
	h.id, h.agent_id, h.zone_id, h.name, h.generation, h.vcores, h.memory_mib, h.kernel, h.findings, h.mode, h.mode_reason,
	h.reported_at, h.confirmed_until, h.created_at, h.numa, h.ready, h.version, h.mode_since, h.mode_actor, h.silent_since`

// AgentHosts lists the hosts of an agent by name.
func (s Store) AgentHosts(ctx context.Context, agent services.AgentID) ([]Host, error) {
	var hosts []Host
	err := s.all(ctx, &hosts, "list hosts of agent", `select`+hostColumns+` from hosts h where h.agent_id = $1 order by h.name`, agent)
	return hosts, err
}

// Host finds a host.
func (s Store) Host(ctx context.Context, id services.HostID) (Host, error) {
	var h Host
	ok, err := s.found(ctx, &h, "find host", `select`+hostColumns+` from hosts h where h.id = $1`, id)
	if err == nil && !ok {
		err = services.NotFound("host", string(id))
	}
	return h, err
}

// LockHost finds a host and keeps others from changing it.
func (t *Tx) LockHost(ctx context.Context, id services.HostID) (Host, error) {
	if err := t.hold(ctx, "lock host", `select from hosts where id = $1 for no key update`, string(id)); err != nil {
		return Host{}, err
	}
	return t.Host(ctx, id)
}

// SetHostMode changes what work a host takes, and why.
func (t *Tx) SetHostMode(ctx context.Context, h Host) error {
	_, err := t.exec(ctx, "set mode of host", `
		update hosts set mode = $2, mode_reason = $3, mode_since = $4, mode_actor = $5 where id = $1`,
		h.ID, h.Mode, h.ModeReason, h.ModeSince, h.ModeActor)
	return err
}

// SaveHost adds a host of an agent, or writes what a report says of a known
// one; it gives the host's id. Mode and a longer confirmation stay.
func (t *Tx) SaveHost(ctx context.Context, h Host) (services.HostID, error) {
	var id services.HostID
	err := t.one(ctx, &id, "save host", `
		insert into hosts (id, agent_id, zone_id, name, generation, vcores, memory_mib, kernel, findings, reported_at, confirmed_until,
		                   numa, ready, version, created_at, mode_since)
		values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $10, $10)
		on conflict (agent_id, name) do update set generation = excluded.generation, vcores = excluded.vcores,
			memory_mib = excluded.memory_mib, kernel = excluded.kernel, findings = excluded.findings, reported_at = excluded.reported_at,
			confirmed_until = greatest(hosts.confirmed_until, excluded.confirmed_until),
			numa = excluded.numa, ready = excluded.ready, version = excluded.version,
			silent_since = case when excluded.confirmed_until > excluded.reported_at then null else hosts.silent_since end
		returning id`,
		h.ID, h.Agent, h.Zone, h.Name, h.Generation, h.VCores, h.MemoryMiB, h.Kernel, h.Findings, h.ReportedAt, h.ConfirmedUntil,
		h.NUMA, h.Ready, h.Version)
	return id, err
}

// FallSilent notes which hosts no report vouches for any more, some at a time.
func (t *Tx) FallSilent(ctx context.Context) ([]Host, error) {
	var hosts []Host
	err := t.all(ctx, &hosts, "note silent hosts", `
		update hosts h set silent_since = h.confirmed_until
		where h.id in (
			select id from hosts where silent_since is null and confirmed_until <= now()
			order by confirmed_until limit 100 for no key update skip locked)
		returning`+hostColumns)
	return hosts, err
}

// HostFilter narrows and pages the list of hosts.
type HostFilter struct {
	Text    string // part of name or id
	Region  string
	Zone    string
	Model   string // of one of its cards
	Version string // of its agent
	State   string // a mode, "not-ready" or "silent"; empty: all
	Sort    string // of hostSorts
	After   services.HostID
	Limit   int
}

// hostSorts are the orders of the list of hosts; by name without one.
var hostSorts = sorts{
	"":        {by: []string{"lower(h.name)"}},
	"name":    {by: []string{"lower(h.name)"}},
	"zone":    {by: []string{"h.zone_id", "lower(h.name)"}},
	"created": {by: []string{"h.created_at"}},
	"mode":    {by: []string{"h.mode", "lower(h.name)"}},
	"ready":   {by: []string{"h.ready", "lower(h.name)"}},
	"version": {by: []string{"h.version", "lower(h.name)"}},
}

// silent is what makes a host one that no report vouches for.
const silent = `h.confirmed_until <= now()`

func (f HostFilter) where() *conditions {
	w := &conditions{}
	w.addIf(f.Text != "", "lower(h.name || ' ' || h.id) like lower(?)", contains(f.Text))
	w.addIf(f.Region != "", "h.zone_id in (select id from zones where region_id = ?)", f.Region)
	w.addIf(f.Zone != "", "h.zone_id = ?", f.Zone)
	w.addIf(f.Version != "", "h.version = ?", f.Version)
	w.addIf(f.Model == ModelUnknown, "h.id in (select host_id from cards where model_id is null and status <> 'retired')")
	w.addIf(f.Model != "" && f.Model != ModelUnknown, "h.id in (select host_id from cards where model_id = ? and status <> 'retired')", f.Model)
	switch f.State {
	case "":
	case "not-ready":
		w.addRaw("not h.ready")
	case "silent":
		w.addRaw(silent)
	default:
		w.add("h.mode = ?", f.State)
	}
	return w
}

// HostRow is a host of a list, with what stands on it.
type HostRow struct {
	Host
	Cards int `db:"cards"` // without retired ones
	Free  int `db:"free"`
	Held  int `db:"held"`
	VMs   int `db:"vms"`
}

// ListHosts gives one page, by name unless sorted otherwise.
func (s Store) ListHosts(ctx context.Context, f HostFilter) ([]HostRow, error) {
	w := f.where()
	order := w.page("h", "hosts h", hostSorts.find(f.Sort), string(f.After))
	var rows []HostRow
	err := s.all(ctx, &rows, "list hosts", `
		select `+hostColumns+`, n.cards, n.free, n.held,
		       (select count(*) from vms v where v.host_id = h.id and v.deleted_at is null) as vms
		from (select h.* from hosts h`+w.sql()+order+w.limit(f.Limit)+`) h,
		lateral (select count(*) as cards, count(*) filter (where c.gpu_id is not null) as held,
		                count(*) filter (where`+offered+`) as free
		         from cards c where c.host_id = h.id and c.condition <> 'retired') n`+order, w.args...)
	return rows, err
}

// HostCounts counts hosts; one may be not ready or silent in any mode.
type HostCounts struct {
	All         int `db:"all"`
	Accepting   int `db:"accepting"`
	Draining    int `db:"draining"`
	Maintenance int `db:"maintenance"`
	NotReady    int `db:"not_ready"`
	Silent      int `db:"silent"`
}

// Of gives the count of a filter's state.
func (c HostCounts) Of(state string) int {
	return map[string]int{
		"": c.All, string(services.HostAccepting): c.Accepting, string(services.HostDraining): c.Draining,
		string(services.HostMaintenance): c.Maintenance, "not-ready": c.NotReady, "silent": c.Silent,
	}[state]
}

// CountHosts counts the filter's hosts; paging and State are not looked at.
func (s Store) CountHosts(ctx context.Context, f HostFilter) (HostCounts, error) {
	f.State = ""
	w := f.where()
	var c HostCounts
	err := s.one(ctx, &c, "count hosts", `
		select count(*) as all, count(*) filter (where h.mode = 'accepting') as accepting,
		       count(*) filter (where h.mode = 'draining') as draining, count(*) filter (where h.mode = 'maintenance') as maintenance,
		       count(*) filter (where not h.ready) as not_ready, count(*) filter (where `+silent+`) as silent
		from hosts h`+w.sql(), w.args...)
	return c, err
}

// AgentVersions lists the versions of agents in use, the commonest first.
func (s Store) AgentVersions(ctx context.Context) ([]string, error) {
	var versions []string
	err := s.all(ctx, &versions, "list versions of agents", `
		select version from agents where revoked_at is null and version <> '' group by version order by count(*) desc, version limit 50`)
	return versions, err
}
