package db

import (
	"context"
	"time"

	"berth/services"
)

// GPU is what an account holds.
type GPU struct {
	ID                 services.GPUID     `db:"id"`
	Account            services.AccountID `db:"account_id"`
	Kind               services.GPUKind   `db:"kind"`
	Name               string             `db:"name"`
	Model              string             `db:"model_id"`
	Region             string             `db:"region_id"`
	Zone               string             `db:"zone_id"`
	Generation         string             `db:"generation"` // empty: any
	Card               services.CardID    `db:"card_id"`
	State              services.GPUState  `db:"state"` // empty: released, or built in
	VM                 services.VMID      `db:"vm_id"` // empty: none
	VMName             string             `db:"vm_name"`
	DeleteOnVMDeletion bool               `db:"delete_on_vm_deletion"`
	StateSince         time.Time          `db:"state_since"`
	PlannedRun         int64              `db:"planned_run"` // the VM's last start that was seen when the change was planned
	Revision           int64              `db:"revision"`
	CreatedAt          time.Time          `db:"created_at"`
	ReleasedAt         *time.Time         `db:"released_at"`

	// Of its card.
	Host       services.HostID `db:"host_id"`
	CardKey    string          `db:"card_key"`
	PCIAddress string          `db:"pci_address"`
	NUMANode   *int            `db:"numa_node"`
}

// Released reports whether the GPU has left its account.
func (g GPU) Released() bool { return g.ReleasedAt != nil }

const gpuColumns = `
	g.id, g.account_id, g.kind, g.name, g.model_id, g.region_id, g.zone_id, g.generation, g.card_id,
	coalesce(g.state, '') as state, coalesce(g.vm_id, '') as vm_id, coalesce(v.name, '') as vm_name,
	g.delete_on_vm_deletion, g.state_since, g.planned_run, g.revision, g.created_at, g.released_at,
	c.host_id, c.key as card_key, c.pci_address, c.numa_node`

const gpuTables = ` from gpus g join cards c on c.id = g.card_id left join vms v on v.id = g.vm_id `

// AccountGPU finds a GPU of an account, also a released one. Another account's
// is not found.
func (s Store) AccountGPU(ctx context.Context, account services.AccountID, id services.GPUID) (GPU, error) {
	var g GPU
	ok, err := s.found(ctx, &g, "find GPU", `select`+gpuColumns+gpuTables+`where g.id = $1 and g.account_id = $2`, id, account)
	if err == nil && !ok {
		err = services.NotFound("gpu", string(id))
	}
	return g, err
}

// LockGPU finds a flexible GPU of an account, also a released one, and keeps
// others from changing it.
func (t *Tx) LockGPU(ctx context.Context, account services.AccountID, id services.GPUID) (GPU, error) {
	err := t.hold(ctx, "lock GPU", `select from gpus where id = $1 for update`, string(id))
	if err != nil {
		return GPU{}, err
	}
	g, err := t.AccountGPU(ctx, account, id)
	if err == nil && g.Kind != services.GPUFlexible {
		err = services.NotFound("gpu", string(id))
	}
	return g, err
}

// LockAnyGPU finds a GPU of any account and kind, and keeps others from changing it.
func (t *Tx) LockAnyGPU(ctx context.Context, id services.GPUID) (GPU, error) {
	if err := t.hold(ctx, "lock GPU", `select from gpus where id = $1 for update`, string(id)); err != nil {
		return GPU{}, err
	}
	var g GPU
	ok, err := t.found(ctx, &g, "read locked GPU", `select`+gpuColumns+gpuTables+`where g.id = $1`, id)
	if err == nil && !ok {
		err = services.NotFound("gpu", string(id))
	}
	return g, err
}

// LockVMOf locks the VM of a GPU and gives it; empty where it is on none.
func (t *Tx) LockVMOf(ctx context.Context, id services.GPUID) (services.VMID, error) {
	var vm services.VMID
	_, err := t.found(ctx, &vm, "lock VM of GPU", `
		select id from vms where id = (select vm_id from gpus where id = $1) for no key update`, id)
	return vm, err
}

// VMGPUs lists the open GPUs of a VM, oldest first.
func (s Store) VMGPUs(ctx context.Context, vm services.VMID) ([]GPU, error) {
	var gpus []GPU
	err := s.all(ctx, &gpus, "list GPUs of VM", `select`+gpuColumns+gpuTables+`
		where g.vm_id = $1 and g.released_at is null order by g.created_at, g.id`, vm)
	return gpus, err
}

// InsertGPU adds an open GPU on a card that TakeCard locked.
func (t *Tx) InsertGPU(ctx context.Context, g GPU) error {
	_, err := t.exec(ctx, "insert GPU", `
		insert into gpus (id, account_id, kind, name, model_id, region_id, zone_id, generation, card_id, state, vm_id,
		                  delete_on_vm_deletion, state_since, revision, created_at)
		values ($1, $2, $3, $4, $5, $6, $7, $8, $9, nullif($10, ''), nullif($11, ''), $12, $13, $14, $13)`,
		g.ID, g.Account, g.Kind, g.Name, g.Model, g.Region, g.Zone, g.Generation, g.Card, string(g.State), string(g.VM),
		g.DeleteOnVMDeletion, g.StateSince, g.Revision)
	return err
}

// Move is one change of a GPU's state together with its event.
type Move struct {
	GPU  services.GPUID
	From []services.GPUState
	To   services.GPUState // empty: released
	VM   services.VMID     // the VM from now on; empty: none
	Event
}

// MoveGPU changes a GPU's state and writes the event of it, in one statement.
// It reports false, and changes nothing, where the GPU is in none of From.
func (t *Tx) MoveGPU(ctx context.Context, m Move) (bool, error) {
	data, err := m.data()
	if err != nil {
		return false, err
	}
	from := textArray(m.From)
	n, err := t.exec(ctx, "move GPU", `
		with old as (
			select id, state, vm_id from gpus where id = $1 and state = any($2) and released_at is null for update
		), moved as (
			update gpus g set state = nullif($3, ''), vm_id = nullif($4, ''), state_since = $5,
			       planned_run = coalesce((select seen_run from vms where id = $4), 0),
			       released_at = case when $3 = '' then cast($5 as timestamptz) end
			from old where g.id = old.id
			returning g.id, g.account_id, g.card_id, old.state as from_state, coalesce(g.vm_id, old.vm_id) as vm_id
		)
		insert into events (at, kind, account_id, actor, gpu_id, vm_id, card_id, host_id, from_state, to_state, data, request_id, address)
		select $5, $6, account_id, $7, id, vm_id, card_id, (select host_id from cards where id = card_id), from_state,
		       coalesce(nullif($3, ''), 'released'), $8, $9, $10 from moved`,
		m.GPU, from, string(m.To), string(m.VM), m.At, m.Kind, m.Actor, data, m.RequestID, m.Address)
	return n == 1, err
}

// ReleaseBuiltIn ends the built-in GPUs of a VM and gives their cards.
func (t *Tx) ReleaseBuiltIn(ctx context.Context, vm services.VMID, now time.Time) ([]services.CardID, error) {
	var cards []services.CardID
	err := t.all(ctx, &cards, "release built-in GPUs", `
		update gpus set released_at = $2 where vm_id = $1 and kind = 'built-in' and released_at is null returning card_id`, vm, now)
	return cards, err
}

// SetGPURevision notes the desired revision that carries the GPU's place.
func (t *Tx) SetGPURevision(ctx context.Context, id services.GPUID, revision int64) error {
	_, err := t.exec(ctx, "set GPU revision", `update gpus set revision = $2 where id = $1`, id, revision)
	return err
}

// RenameGPU changes the name of an open GPU.
func (t *Tx) RenameGPU(ctx context.Context, id services.GPUID, name string) error {
	_, err := t.exec(ctx, "rename GPU", `update gpus set name = $2 where id = $1`, id, name)
	return err
}

// SetDeleteOnVMDeletion changes what becomes of a GPU with its VM.
func (t *Tx) SetDeleteOnVMDeletion(ctx context.Context, id services.GPUID, on bool) error {
	_, err := t.exec(ctx, "set behaviour of GPU", `update gpus set delete_on_vm_deletion = $2 where id = $1`, id, on)
	return err
}

// Repoint moves an allocated or attaching GPU to another card, which must be free.
func (t *Tx) Repoint(ctx context.Context, id services.GPUID, card services.CardID) error {
	_, err := t.exec(ctx, "move GPU to card", `update gpus set card_id = $2 where id = $1`, id, card)
	return err
}

// Exchange swaps the cards of two GPUs. It reports false, and changes nothing,
// where the partner is no longer allocated on the card it was seen on, or is
// being changed by somebody else.
func (t *Tx) Exchange(ctx context.Context, mine GPU, partner services.GPUID, card services.CardID) (bool, error) {
	var id services.GPUID
	ok, err := t.found(ctx, &id, "lock GPU to exchange with", `
		select id from gpus where id = $1 and card_id = $2 and state = 'allocated' and released_at is null
		for update skip locked`, partner, card)
	if err != nil || !ok {
		return false, err
	}
	if _, err := t.exec(ctx, "defer card exchange", `set constraints gpus_one_card deferred`); err != nil {
		return false, err
	}
	if _, err := t.exec(ctx, "exchange cards", `
		update gpus set card_id = case id when $1 then $4 else $3 end where id in ($1, $2)`,
		mine.ID, partner, mine.Card, card); err != nil {
		return false, err
	}
	_, err = t.exec(ctx, "check card exchange", `set constraints gpus_one_card immediate`)
	return err == nil, err
}

// GPUFilter narrows and pages a list of an account's open flexible GPUs.
type GPUFilter struct {
	Account services.AccountID
	Query   string // part of name or id
	Region  string
	Zone    string
	Model   string
	States  []services.GPUState
	Sort    string // of gpuSorts
	After   services.GPUID
	Limit   int
}

// gpuSorts are the orders of a list of GPUs; newest first without one.
var gpuSorts = sorts{
	"":        {by: []string{"g.created_at"}, descending: true},
	"created": {by: []string{"g.created_at"}},
	"name":    {by: []string{"lower(g.name)"}},
	"state":   {by: []string{"g.state"}},
	"model":   {by: []string{"g.model_id"}},
	"zone":    {by: []string{"g.zone_id"}},
}

func (f GPUFilter) where() *conditions {
	w := &conditions{}
	w.add("g.account_id = ?", f.Account)
	w.addRaw("g.released_at is null and g.kind = 'flexible'")
	w.addIf(f.Region != "", "g.region_id = ?", f.Region)
	w.addIf(f.Zone != "", "g.zone_id = ?", f.Zone)
	w.addIf(f.Model != "", "g.model_id = ?", f.Model)
	if len(f.States) > 0 {
		w.add("g.state = any(?)", textArray(f.States))
	}
	if f.Query != "" {
		w.add("lower(g.name || ' ' || g.id) like lower(?)", contains(f.Query))
	}
	return w
}

// ListGPUs gives one page, newest first unless sorted otherwise.
func (s Store) ListGPUs(ctx context.Context, f GPUFilter) ([]GPU, error) {
	w := f.where()
	order := w.page("g", "gpus g", gpuSorts.find(f.Sort), string(f.After))
	var gpus []GPU
	err := s.all(ctx, &gpus, "list GPUs", `select`+gpuColumns+gpuTables+w.sql()+order+w.limit(f.Limit), w.args...)
	return gpus, err
}

// GPUCount counts open flexible GPUs of an account.
type GPUCount struct {
	Region string            `db:"region_id"`
	Model  string            `db:"model_id"`
	State  services.GPUState `db:"state"`
	Count  int               `db:"count"`
}

// CountGPUs counts the filter's GPUs by region, model and state; paging and
// States are not looked at.
func (s Store) CountGPUs(ctx context.Context, f GPUFilter) ([]GPUCount, error) {
	f.States = nil
	w := f.where()
	var counts []GPUCount
	err := s.all(ctx, &counts, "count GPUs", `
		select g.region_id, g.model_id, g.state, count(*) as count from gpus g`+w.sql()+`
		group by g.region_id, g.model_id, g.state order by 1, 2, 3`, w.args...)
	return counts, err
}

// QuotaUse is how many open GPUs an account has of what it may have.
type QuotaUse struct {
	Region  string `db:"region_id"`
	Model   string `db:"model_id"`
	Max     *int   `db:"max"` // nil: unlimited
	Used    int    `db:"used"`
	BuiltIn int    `db:"built_in"` // of those used: come and gone with VMs
}

// Free reports whether one more fits.
func (q QuotaUse) Free() bool { return q.Max == nil || q.Used < *q.Max }

// QuotaUse counts an account's open GPUs of a model in a region, of every kind,
// against its quota. Without a quota the maximum is 0.
func (s Store) QuotaUse(ctx context.Context, account services.AccountID, region, model string) (QuotaUse, error) {
	q := QuotaUse{}
	err := s.one(ctx, &q, "count quota", `
		select $2 as region_id, $3 as model_id,
		       case when exists (select 1 from quotas where account_id = $1 and region_id = $2 and model_id = $3)
		            then (select max from quotas where account_id = $1 and region_id = $2 and model_id = $3) else 0 end as max,
		       (select count(*) from gpus where account_id = $1 and region_id = $2 and model_id = $3 and released_at is null) as used`,
		account, region, model)
	return q, err
}

// QuotaUses lists what an account may have and has.
func (s Store) QuotaUses(ctx context.Context, account services.AccountID) ([]QuotaUse, error) {
	var uses []QuotaUse
	err := s.all(ctx, &uses, "list quotas", `
		select q.region_id, q.model_id, q.max, count(g.id) as used, count(g.id) filter (where g.kind = 'built-in') as built_in
		from quotas q
		left join gpus g on g.account_id = q.account_id and g.region_id = q.region_id and g.model_id = q.model_id and g.released_at is null
		where q.account_id = $1
		group by q.region_id, q.model_id, q.max order by 1, 2`, account)
	return uses, err
}

// LockAccount makes quota checks of one account take turns.
func (t *Tx) LockAccount(ctx context.Context, account services.AccountID) error {
	var id services.AccountID
	return t.one(ctx, &id, "lock account", `select id from accounts where id = $1 for no key update`, account)
}

// GPUsOnVMs lists the open GPUs of several VMs, oldest first.
func (s Store) GPUsOnVMs(ctx context.Context, vms []services.VMID) ([]GPU, error) {
	var gpus []GPU
	err := s.all(ctx, &gpus, "list GPUs of VMs", `select`+gpuColumns+gpuTables+`
		where g.vm_id = any($1) and g.released_at is null order by g.created_at, g.id`, textArray(vms))
	return gpus, err
}
