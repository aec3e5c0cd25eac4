package db

import (
	"context"
	"time"

	"berth/services"
	"berth/services/catalog"
)

// VM is a virtual machine, with what should be and what was seen.
type VM struct {
	ID          services.VMID       `db:"id"`
	Account     services.AccountID  `db:"account_id"`
	Region      string              `db:"region_id"`
	Zone        string              `db:"zone_id"`
	Storage     services.Storage    `db:"storage"`
	Name        string              `db:"name"`
	Type        string              `db:"type"`
	VCores      int                 `db:"vcores"`
	MemoryMiB   int                 `db:"memory_mib"`
	Generation  string              `db:"generation"`
	Performance catalog.Performance `db:"performance"`
	Inference   bool                `db:"inference"`
	Tenancy     catalog.Tenancy     `db:"tenancy"`
	Image       string              `db:"image_id"`
	SSHKey      string              `db:"ssh_key"`
	UserData    string              `db:"user_data"`
	Host        services.HostID     `db:"host_id"`

	DesiredPower services.Power `db:"desired_power"`
	Run          int64          `db:"run"`
	Reboots      int64          `db:"reboots"`
	Revision     int64          `db:"revision"`

	Power       services.Power `db:"power"`
	SeenRun     int64          `db:"seen_run"`
	SeenReboots int64          `db:"seen_reboots"`
	PowerSince  time.Time      `db:"power_since"`
	Problem     *JSON          `db:"problem"`
	CreatedAt   time.Time      `db:"created_at"`
	DeletedAt   *time.Time     `db:"deleted_at"`
	Resume      bool           `db:"resume"` // stopped by its host's maintenance: starts when that ends
	HostName    string         `db:"host_name"`
	HostUntil   time.Time      `db:"host_confirmed_until"`
	HostSeen    time.Time      `db:"host_reported_at"`
}

// Spec is what the compatibility rules look at.
func (v VM) Spec() catalog.Spec {
	return catalog.Spec{
		VCores: v.VCores, MemoryMiB: v.MemoryMiB, Generation: v.Generation,
		Performance: v.Performance, Tenancy: v.Tenancy, Inference: v.Inference,
	}
}

// Starting reports whether a start was ordered that no report has confirmed.
func (v VM) Starting() bool { return v.DesiredPower == services.PowerRunning && v.SeenRun < v.Run }

// Stopped reports whether the VM was seen stopped and nobody has ordered a start.
func (v VM) Stopped() bool { return v.Power == services.PowerStopped && !v.Starting() }

const vmColumns = `
	v.id, v.account_id, z.region_id, v.zone_id, z.storage, v.name, v.type, v.vcores, v.memory_mib, v.generation, v.performance,
	v.inference, v.tenancy, v.image_id, v.ssh_key, v.user_data, v.host_id, v.desired_power, v.run, v.reboots, v.revision,
	v.power, v.seen_run, v.seen_reboots, v.power_since, v.problem, v.created_at, v.deleted_at, v.resume,
	h.name as host_name, h.confirmed_until as host_confirmed_until, h.reported_at as host_reported_at`

const vmTables = ` from vms v join zones z on z.id = v.zone_id join hosts h on h.id = v.host_id `

// AccountVM finds a VM of an account, also a deleted one. Another account's is not found.
func (s Store) AccountVM(ctx context.Context, account services.AccountID, id services.VMID) (VM, error) {
	var v VM
	ok, err := s.found(ctx, &v, "find VM", `select`+vmColumns+vmTables+`where v.id = $1 and v.account_id = $2`, id, account)
	if err == nil && !ok {
		err = services.NotFound("vm", string(id))
	}
	return v, err
}

// LockVM finds a VM that is not deleted and keeps others from changing it. An
// empty account means any.
func (t *Tx) LockVM(ctx context.Context, account services.AccountID, id services.VMID) (VM, error) {
	v, ok, err := t.lockVM(ctx, id)
	if err == nil && (!ok || v.DeletedAt != nil || (account != "" && v.Account != account)) {
		err = services.NotFound("vm", string(id))
	}
	return v, err
}

func (t *Tx) lockVM(ctx context.Context, id services.VMID) (v VM, ok bool, err error) {
	if err := t.hold(ctx, "lock VM", `select from vms where id = $1 for no key update`, string(id)); err != nil {
		return v, false, err
	}
	ok, err = t.found(ctx, &v, "read locked VM", `select`+vmColumns+vmTables+`where v.id = $1`, id)
	return v, ok, err
}

// InsertVM adds a VM that no agent has seen yet.
func (t *Tx) InsertVM(ctx context.Context, v VM) error {
	_, err := t.exec(ctx, "insert VM", `
		insert into vms (id, account_id, zone_id, name, type, vcores, memory_mib, generation, performance, inference, tenancy,
		                 image_id, ssh_key, user_data, host_id, desired_power, run, revision, power_since, created_at)
		values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $19)`,
		v.ID, v.Account, v.Zone, v.Name, v.Type, v.VCores, v.MemoryMiB, v.Generation, v.Performance, v.Inference, v.Tenancy,
		v.Image, v.SSHKey, v.UserData, v.Host, v.DesiredPower, v.Run, v.Revision, v.CreatedAt)
	return err
}

// WantVM writes what should be of a VM: power, run, reboots, type, place.
func (t *Tx) WantVM(ctx context.Context, v VM) error {
	_, err := t.exec(ctx, "set what is wanted of VM", `
		update vms set desired_power = $2, run = $3, reboots = $4, type = $5, vcores = $6, memory_mib = $7, generation = $8,
		       performance = $9, inference = $10, host_id = $11, revision = $12, deleted_at = $13, resume = $14
		where id = $1`,
		v.ID, v.DesiredPower, v.Run, v.Reboots, v.Type, v.VCores, v.MemoryMiB, v.Generation,
		v.Performance, v.Inference, v.Host, v.Revision, v.DeletedAt, v.Resume)
	return err
}

// SawVM writes what a report showed of a VM.
func (t *Tx) SawVM(ctx context.Context, v VM) error {
	_, err := t.exec(ctx, "set what was seen of VM", `
		update vms set power = $2, seen_run = $3, seen_reboots = $4, power_since = $5, problem = $6 where id = $1`,
		v.ID, v.Power, v.SeenRun, v.SeenReboots, v.PowerSince, v.Problem)
	return err
}

// VMFilter narrows and pages a list of an account's VMs.
type VMFilter struct {
	Account services.AccountID
	Query   string // part of name or id
	Region  string
	Zone    string
	Power   services.Power
	Sort    string // of vmSorts
	After   services.VMID
	Limit   int
}

// vmSorts are the orders of a list of VMs; newest first without one.
var vmSorts = sorts{
	"":        {by: []string{"v.created_at"}, descending: true},
	"created": {by: []string{"v.created_at"}},
	"name":    {by: []string{"lower(v.name)"}},
	"power":   {by: []string{"v.power"}},
	"type":    {by: []string{"v.type"}},
	"zone":    {by: []string{"v.zone_id"}},
}

func (f VMFilter) where() *conditions {
	w := &conditions{}
	w.add("v.account_id = ?", f.Account)
	w.addRaw("v.deleted_at is null")
	w.addIf(f.Region != "", "z.region_id = ?", f.Region)
	w.addIf(f.Zone != "", "v.zone_id = ?", f.Zone)
	w.addIf(f.Power != "", "v.power = ?", f.Power)
	if f.Query != "" {
		w.add("lower(v.name || ' ' || v.id) like lower(?)", contains(f.Query))
	}
	return w
}

// ListVMs gives one page, newest first unless sorted otherwise.
func (s Store) ListVMs(ctx context.Context, f VMFilter) ([]VM, error) {
	w := f.where()
	order := w.page("v", "vms v", vmSorts.find(f.Sort), string(f.After))
	var vms []VM
	err := s.all(ctx, &vms, "list VMs", `select`+vmColumns+vmTables+w.sql()+order+w.limit(f.Limit), w.args...)
	return vms, err
}

// VMCount counts VMs by what was seen of their power.
type VMCount struct {
	Power services.Power `db:"power"`
	Count int            `db:"count"`
}

// CountVMs counts the filter's VMs by power; paging and Power are not looked at.
func (s Store) CountVMs(ctx context.Context, f VMFilter) ([]VMCount, error) {
	f.Power = ""
	w := f.where()
	var counts []VMCount
	err := s.all(ctx, &counts, "count VMs", `
		select v.power, count(*) as count from vms v join zones z on z.id = v.zone_id`+w.sql()+` group by v.power order by 1`, w.args...)
	return counts, err
}

// VMGPU is a GPU beside its VM in a list.
type VMGPU struct {
	VM    services.VMID     `db:"vm_id"`
	Kind  services.GPUKind  `db:"kind"`
	Model string            `db:"model_id"`
	State services.GPUState `db:"state"`
	Count int               `db:"count"`
}

// GPUsOfVMs counts the open GPUs of several VMs by kind, model and state.
func (s Store) GPUsOfVMs(ctx context.Context, vms []services.VMID) ([]VMGPU, error) {
	var counts []VMGPU
	err := s.all(ctx, &counts, "count GPUs of VMs", `
		select vm_id, kind, model_id, coalesce(state, '') as state, count(*) as count from gpus
		where vm_id = any($1) and released_at is null group by 1, 2, 3, 4 order by 1, 2, 3, 4`, textArray(vms))
	return counts, err
}

// Evict makes a host's agent confirm that a VM is gone from it.
func (t *Tx) Evict(ctx context.Context, vm services.VMID, host services.HostID, keepDisk bool, revision int64, now time.Time) error {
	_, err := t.exec(ctx, "evict VM", `
		insert into evictions (vm_id, host_id, keep_disk, revision, created_at) values ($1, $2, $3, $4, $5)
		on conflict (vm_id, host_id) do update set keep_disk = excluded.keep_disk, revision = excluded.revision`,
		vm, host, keepDisk, revision, now)
	return err
}

// Evicted notes that a host has confirmed; false where nothing was asked of it
// at that revision.
func (t *Tx) Evicted(ctx context.Context, vm services.VMID, host services.HostID, revision int64) (bool, error) {
	n, err := t.exec(ctx, "note evicted VM", `delete from evictions where vm_id = $1 and host_id = $2 and revision <= $3`, vm, host, revision)
	return n > 0, err
}

// Withdraw takes an eviction back: the VM returns to that host.
func (t *Tx) Withdraw(ctx context.Context, vm services.VMID, host services.HostID) error {
	_, err := t.exec(ctx, "withdraw eviction", `delete from evictions where vm_id = $1 and host_id = $2`, vm, host)
	return err
}

// Evicting reports whether a host has still to confirm that the VM is gone.
func (s Store) Evicting(ctx context.Context, vm services.VMID) (bool, error) {
	var open bool
	err := s.one(ctx, &open, "look for evictions", `select exists (select 1 from evictions where vm_id = $1)`, vm)
	return open, err
}

// VMsByID finds several VMs, deleted ones too.
func (s Store) VMsByID(ctx context.Context, ids []services.VMID) ([]VM, error) {
	var vms []VM
	err := s.all(ctx, &vms, "find VMs", `select`+vmColumns+vmTables+`where v.id = any($1) order by v.id`, textArray(ids))
	return vms, err
}

// HostVM is a VM beside others of its host.
type HostVM struct {
	VM
	AccountName string `db:"account_name"`
	GPUs        int    `db:"gpus"` // open ones, planned ones too
}

// HostVMs lists the VMs of a host by name.
func (s Store) HostVMs(ctx context.Context, host services.HostID) ([]HostVM, error) {
	var vms []HostVM
	err := s.all(ctx, &vms, "list VMs of host", `
		select`+vmColumns+`, a.name as account_name,
		       (select count(*) from gpus g where g.vm_id = v.id and g.released_at is null) as gpus`+vmTables+`
		join accounts a on a.id = v.account_id
		where v.host_id = $1 and v.deleted_at is null order by lower(v.name), v.id`, host)
	return vms, err
}

// leavingAtOnce bounds how many VMs are taken off hosts in one go.
const leavingAtOnce = 100

// LeavingVMs lists VMs that should run, on hosts that are to be empty, and that
// nothing is done with yet. One whose stop or move failed since the host's mode
// was set is left to people.
func (s Store) LeavingVMs(ctx context.Context) ([]services.VMID, error) {
	var ids []services.VMID
	err := s.all(ctx, &ids, "list VMs to take off their host", `
		select v.id from vms v join hosts h on h.id = v.host_id join zones z on z.id = v.zone_id
		where h.mode <> 'accepting' and v.deleted_at is null and v.desired_power = 'running'
		  and (h.mode = 'maintenance' or z.storage = 'shared' and not exists (
		       select 1 from gpus g where g.vm_id = v.id and g.released_at is null))
		  and not exists (select 1 from operations o where o.vm_id = v.id and (o.ended_at is null
		                  or o.state = 'failed' and o.kind in ('stop', 'stop-start') and o.created_at >= h.mode_since))
		order by v.id limit $1`, leavingAtOnce)
	return ids, err
}

// ResumingVMs lists VMs that maintenance stopped, whose host takes work again
// and is there, and that nothing is done with yet. One whose start failed since
// is left to people.
func (s Store) ResumingVMs(ctx context.Context) ([]services.VMID, error) {
	var ids []services.VMID
	err := s.all(ctx, &ids, "list VMs to start again", `
		select v.id from vms v join hosts h on h.id = v.host_id
		where v.resume and v.deleted_at is null and v.desired_power = 'stopped' and h.mode = 'accepting' and h.confirmed_until > now()
		  and not exists (select 1 from operations o where o.vm_id = v.id and (o.ended_at is null
		                  or o.state in ('failed', 'cancelled') and o.kind = 'start' and o.created_at >= h.mode_since))
		order by v.id limit $1`, leavingAtOnce)
	return ids, err
}
