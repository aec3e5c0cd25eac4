package db

import (
	"context"
	"time"

	"berth/services"
)

// Account is a tenant.
type Account struct {
	ID              services.AccountID `db:"id"`
	Name            string             `db:"name"`
	CreatedAt       time.Time          `db:"created_at"`
	SuspendedAt     *time.Time         `db:"suspended_at"` // nil: its members may write
	SuspendedReason string             `db:"suspended_reason"`
}

// AccountRow is an account of a list, with what it has.
type AccountRow struct {
	Account
	GPUs    int `db:"gpus"`
	VMs     int `db:"vms"`
	Members int `db:"members"`
}

// AccountFilter narrows and pages the list of accounts.
type AccountFilter struct {
	Text  string // part of name or id
	State string // "active", "suspended"; empty: all
	Sort  string // of accountSorts
	After services.AccountID
	Limit int
}

// accountSorts are the orders of the list of accounts; by name without one.
var accountSorts = sorts{
	"":        {by: []string{"lower(a.name)"}},
	"name":    {by: []string{"lower(a.name)"}},
	"created": {by: []string{"a.created_at"}},
}

func (f AccountFilter) where() *conditions {
	w := &conditions{}
	w.addIf(f.Text != "", "lower(a.name || ' ' || a.id) like lower(?)", contains(f.Text))
	switch f.State {
	case "active":
		w.addRaw("a.suspended_at is null")
	case "suspended":
		w.addRaw("a.suspended_at is not null")
	}
	return w
}

const accountColumns = `a.id, a.name, a.created_at, a.suspended_at, a.suspended_reason`

const accountCounts = `,
	(select count(*) from gpus g where g.account_id = a.id and g.released_at is null) as gpus,
	(select count(*) from vms v where v.account_id = a.id and v.deleted_at is null) as vms,
	(select count(*) from members m where m.account_id = a.id) as members`

// ListAccounts gives one page, by name unless sorted otherwise.
func (s Store) ListAccounts(ctx context.Context, f AccountFilter) ([]AccountRow, error) {
	w := f.where()
	order := w.page("a", "accounts a", accountSorts.find(f.Sort), string(f.After))
	var rows []AccountRow
	err := s.all(ctx, &rows, "list accounts", `select `+accountColumns+accountCounts+` from accounts a`+w.sql()+order+w.limit(f.Limit), w.args...)
	return rows, err
}

// AccountTotals counts accounts.
type AccountTotals struct {
	All       int `db:"all"`
	Suspended int `db:"suspended"`
}

// CountAccounts counts the filter's accounts; paging and State are not looked at.
func (s Store) CountAccounts(ctx context.Context, f AccountFilter) (AccountTotals, error) {
	f.State = ""
	w := f.where()
	var c AccountTotals
	err := s.one(ctx, &c, "count accounts", `
		select count(*) as all, count(*) filter (where a.suspended_at is not null) as suspended from accounts a`+w.sql(), w.args...)
	return c, err
}

// AccountRow finds an account.
func (s Store) AccountRow(ctx context.Context, id services.AccountID) (AccountRow, error) {
	var a AccountRow
	ok, err := s.found(ctx, &a, "find account", `select `+accountColumns+accountCounts+` from accounts a where a.id = $1`, id)
	if err == nil && !ok {
		err = services.NotFound("account", string(id))
	}
	return a, err
}

// SetSuspended suspends an account (nil: ends it). It reports false where the
// account is so already.
func (t *Tx) SetSuspended(ctx context.Context, id services.AccountID, at *time.Time, reason string) (bool, error) {
	n, err := t.exec(ctx, "suspend account", `
		update accounts set suspended_at = $2, suspended_reason = $3
		where id = $1 and (suspended_at is null) = (cast($2 as timestamptz) is not null)`, id, at, reason)
	return n == 1, err
}

// Member is somebody who belongs to an account.
type Member struct {
	User  services.UserID `db:"user_id"`
	Email string          `db:"email"`
	Role  services.Role   `db:"role"`
}

// Members lists an account's members by address.
func (s Store) Members(ctx context.Context, account services.AccountID) ([]Member, error) {
	var m []Member
	err := s.all(ctx, &m, "list members", `
		select m.user_id, u.email, m.role from members m join users u on u.id = m.user_id where m.account_id = $1 order by lower(u.email)`, account)
	return m, err
}

// RemoveMember ends a membership; false where there was none.
func (t *Tx) RemoveMember(ctx context.Context, account services.AccountID, user services.UserID) (bool, error) {
	n, err := t.exec(ctx, "remove member", `delete from members where account_id = $1 and user_id = $2`, account, user)
	return n == 1, err
}

// Quota is a limit of an account in a region, with what is used of it.
type Quota struct {
	Account     services.AccountID `db:"account_id"`
	AccountName string             `db:"account_name"`
	Region      string             `db:"region_id"`
	Item        string             `db:"item"`    // a model, or one of services.Resources
	Max         *int               `db:"max"`     // nil: unlimited
	Used        int                `db:"used"`    // memory in GiB
	Pending     int                `db:"pending"` // of what is used: still on their way in or out
}

// QuotaFilter narrows the list of quotas.
type QuotaFilter struct {
	Account services.AccountID // empty: every account
	Text    string             // part of an account's name or id
	Region  string
	Item    string
	After   string // "account region item" of the last row
	Limit   int
}

// quotas joins what was set for models and for everything else.
const quotas = `
	(select q.account_id, q.region_id, q.model_id as item, q.max from quotas q
	 union all select l.account_id, l.region_id, l.resource, l.max from limits l) q`

func (f QuotaFilter) where() *conditions {
	w := &conditions{}
	w.addIf(f.Account != "", "q.account_id = ?", f.Account)
	w.addIf(f.Region != "", "q.region_id = ?", f.Region)
	w.addIf(f.Item != "", "q.item = ?", f.Item)
	w.addIf(f.Text != "", "q.account_id in (select id from accounts where lower(name || ' ' || id) like lower(?))", contains(f.Text))
	return w
}

// What counts for an account (q.account_id) in a region.
const (
	itsMachines = ` from vms v join zones z on z.id = v.zone_id
	               where v.account_id = q.account_id and z.region_id = q.region_id and v.deleted_at is null`
	itsGPUs = ` from gpus g
	           where g.account_id = q.account_id and g.region_id = q.region_id and g.model_id = q.item and g.released_at is null`
	beingMade = ` and v.power = 'pending'`
)

// used counts what an account has of an item, each in the unit of its limit.
const used = `
	case q.item
	when 'vms' then (select count(*)` + itsMachines + `)
	when 'vcores' then (select coalesce(sum(v.vcores), 0)` + itsMachines + `)
	when 'memory' then (select coalesce(ceil(sum(v.memory_mib) / 1024.0), 0)` + itsMachines + `)
	when 'clusters' then 0
	else (select count(*)` + itsGPUs + `)
	end as used,
	case q.item
	when 'vms' then (select count(*)` + itsMachines + beingMade + `)
	when 'vcores' then (select coalesce(sum(v.vcores), 0)` + itsMachines + beingMade + `)
	when 'memory' then (select coalesce(ceil(sum(v.memory_mib) / 1024.0), 0)` + itsMachines + beingMade + `)
	when 'clusters' then 0
	else (select count(*)` + itsGPUs + ` and g.state in ('attaching', 'detaching'))
	end as pending`

// ListQuotas gives one page of quotas by account, region and item.
func (s Store) ListQuotas(ctx context.Context, f QuotaFilter) ([]Quota, error) {
	w := f.where()
	w.addIf(f.After != "", "q.account_id || ' ' || q.region_id || ' ' || q.item > ?", f.After)
	var rows []Quota
	err := s.all(ctx, &rows, "list quotas", `
		select q.account_id, a.name as account_name, q.region_id, q.item, q.max,`+used+`
		from (select q.* from`+quotas+w.sql()+`
		      order by q.account_id || ' ' || q.region_id || ' ' || q.item`+w.limit(f.Limit)+`) q
		join accounts a on a.id = q.account_id
		order by q.account_id || ' ' || q.region_id || ' ' || q.item`, w.args...)
	return rows, err
}

// CountQuotas counts the filter's quotas; paging is not looked at.
func (s Store) CountQuotas(ctx context.Context, f QuotaFilter) (int, error) {
	w := f.where()
	var n int
	err := s.one(ctx, &n, "count quotas", `select count(*) from`+quotas+w.sql(), w.args...)
	return n, err
}

// Quota gives what an account has of an item in a region against its limit.
// Without a row GPUs are none, everything else is unlimited.
func (s Store) Quota(ctx context.Context, account services.AccountID, region, item string) (Quota, error) {
	var q Quota
	err := s.one(ctx, &q, "find quota", `
		select q.account_id, q.region_id, q.item, q.max,`+used+`
		from (select cast($1 as text) as account_id, cast($2 as text) as region_id, cast($3 as text) as item,
		             case when cast($3 as text) in ('vcores', 'memory', 'vms', 'clusters')
		             then (select max from limits where account_id = $1 and region_id = $2 and resource = $3)
		             when exists (select 1 from quotas where account_id = $1 and region_id = $2 and model_id = $3)
		             then (select max from quotas where account_id = $1 and region_id = $2 and model_id = $3) else 0 end as max) q`,
		account, region, item)
	return q, err
}

// SetLimit sets what an account may have of a resource in a region; nil: unlimited.
func (t *Tx) SetLimit(ctx context.Context, account services.AccountID, region, resource string, limit *int) error {
	_, err := t.exec(ctx, "set limit", `
		insert into limits (account_id, region_id, resource, max) values ($1, $2, $3, $4)
		on conflict (account_id, region_id, resource) do update set max = excluded.max`, account, region, resource, limit)
	return err
}
