package db

import (
	"context"
	"strings"

	"github.com/lib/pq"

	"berth/services"
	"berth/services/catalog"
)

// LockCatalog makes changes of the catalogue take turns.
func (t *Tx) LockCatalog(ctx context.Context) error {
	_, err := t.exec(ctx, "lock catalogue", `lock table models, offers, vm_types in share row exclusive mode`)
	return err
}

// SaveModel adds a model, or writes what it is; its PCI ids are replaced.
func (t *Tx) SaveModel(ctx context.Context, m catalog.Model) error {
	if _, err := t.exec(ctx, "save model", `
		insert into models (id, architecture, vram_mib, memory_gb, memory_type, int8_tops, use_cases, resource_name, driver_branch)
		values ($1, $2, nullif($3, 0), nullif($4, 0), $5, nullif($6, 0), $7, $8, $9)
		on conflict (id) do update set architecture = excluded.architecture, vram_mib = excluded.vram_mib, memory_gb = excluded.memory_gb,
		       memory_type = excluded.memory_type, int8_tops = excluded.int8_tops, use_cases = excluded.use_cases,
		       resource_name = excluded.resource_name, driver_branch = excluded.driver_branch`,
		m.ID, m.Architecture, m.VRAMMiB, m.Memory.GB, m.Memory.Type, m.INT8TOPS, pq.Array(orEmpty(m.UseCases)), m.ResourceName, m.DriverBranch); err != nil {
		return err
	}
	if _, err := t.exec(ctx, "drop PCI ids", `delete from model_pci_ids where model_id = $1 and pci_id <> all($2)`, m.ID, pq.Array(orEmpty(m.PCIIDs))); err != nil {
		return err
	}
	_, err := t.exec(ctx, "add PCI ids", `
		insert into model_pci_ids (pci_id, model_id) select unnest($1::text[]), $2 on conflict do nothing`, pq.Array(orEmpty(m.PCIIDs)), m.ID)
	return err
}

func orEmpty(texts []string) []string {
	if texts == nil {
		return []string{}
	}
	return texts
}

// PCIOwner finds the model that has a vendor:device pair.
func (s Store) PCIOwner(ctx context.Context, pciID string) (string, bool, error) {
	vendor, device, _ := strings.Cut(pciID, ":")
	return s.ModelOf(ctx, vendor, device)
}

// NameUnknownCards gives cards of unknown model the one that their PCI ids now
// stand for, and tells how many. They stay in review.
func (t *Tx) NameUnknownCards(ctx context.Context) (int64, error) {
	return t.exec(ctx, "name unknown cards", `
		update cards set model_id = p.model_id from model_pci_ids p
		where cards.model_id is null and p.pci_id = cards.vendor_id || ':' || cards.device_id`)
}

// DeleteModel removes a model that nothing refers to; one that something came to
// refer to meanwhile is in use (conflict).
func (t *Tx) DeleteModel(ctx context.Context, id string) error {
	for _, q := range []string{
		`delete from model_pci_ids where model_id = $1`, `delete from offers where model_id = $1`, `delete from models where id = $1`,
	} {
		if _, err := t.exec(ctx, "delete model", q, id); referredTo(err) {
			return services.Fail(services.KindConflict, services.CodeInUse, nil).Because(err)
		} else if err != nil {
			return err
		}
	}
	return nil
}

// Uses counts what refers to something of the catalogue.
type Uses struct {
	Cards  int `db:"cards"`
	GPUs   int `db:"gpus"` // released ones too
	Quotas int `db:"quotas"`
	Types  int `db:"types"`
	VMs    int `db:"vms"` // deleted ones too
}

// None reports whether nothing does.
func (u Uses) None() bool { return u == Uses{} }

// ModelUses counts what refers to a model.
func (s Store) ModelUses(ctx context.Context, id string) (Uses, error) {
	var u Uses
	err := s.one(ctx, &u, "count uses of model", `
		select (select count(*) from cards where model_id = $1) as cards, (select count(*) from gpus where model_id = $1) as gpus,
		       (select count(*) from quotas where model_id = $1) as quotas, (select count(*) from vm_types where gpu_model = $1) as types, 0 as vms`, id)
	return u, err
}

// SaveOffer offers a model in a region, or changes how. A price of nil names none.
func (t *Tx) SaveOffer(ctx context.Context, o catalog.Offer) error {
	_, err := t.exec(ctx, "save offer", `
		insert into offers (model_id, region_id, max_vcores, max_memory_mib, generations, hourly_price)
		values ($1, $2, nullif($3, 0), nullif($4, 0), $5, nullif($6, '')::numeric)
		on conflict (model_id, region_id) do update set max_vcores = excluded.max_vcores, max_memory_mib = excluded.max_memory_mib,
		       generations = excluded.generations, hourly_price = excluded.hourly_price`,
		o.Model, o.Region, o.MaxVCores, o.MaxMemoryMiB, pq.Array(orEmpty(o.Generations)), o.HourlyPrice)
	return err
}

// DeleteOffer withdraws an offer.
func (t *Tx) DeleteOffer(ctx context.Context, model, region string) error {
	_, err := t.exec(ctx, "withdraw offer", `delete from offers where model_id = $1 and region_id = $2`, model, region)
	return err
}

// AttachedVM is a VM with flexible GPUs of a model, as rules look at it.
type AttachedVM struct {
	VM
	AccountName string `db:"account_name"`
	GPUNames    string `db:"gpu_names"`
}

// AttachedVMs lists the VMs of a region that have, plan or lose a flexible GPU
// of a model, by account and name.
func (s Store) AttachedVMs(ctx context.Context, model, region string) ([]AttachedVM, error) {
	var vms []AttachedVM
	err := s.all(ctx, &vms, "list VMs with a model", `
		select`+vmColumns+`, a.name as account_name,
		       (select string_agg(g.name, ', ' order by g.name) from gpus g where g.vm_id = v.id and g.released_at is null and g.kind = 'flexible') as gpu_names`+
		vmTables+`join accounts a on a.id = v.account_id
		where z.region_id = $2 and v.deleted_at is null
		  and v.id in (select vm_id from gpus where model_id = $1 and region_id = $2 and kind = 'flexible' and released_at is null)
		order by lower(a.name), lower(v.name), v.id`, model, region)
	return vms, err
}

// SaveType adds a named VM type at the end of the list, or writes what it is.
func (t *Tx) SaveType(ctx context.Context, v catalog.VMType) error {
	_, err := t.exec(ctx, "save VM type", `
		insert into vm_types (name, vcores, memory_mib, generation, gpu_model, gpu_count, hourly_price, position)
		values ($1, $2, $3, $4, nullif($5, ''), $6, nullif($7, '')::numeric, (select coalesce(max(position), 0) + 1 from vm_types))
		on conflict (name) do update set vcores = excluded.vcores, memory_mib = excluded.memory_mib, generation = excluded.generation,
		       gpu_model = excluded.gpu_model, gpu_count = excluded.gpu_count, hourly_price = excluded.hourly_price`,
		v.Name, v.VCores, v.MemoryMiB, v.Generation, v.GPUModel, v.GPUCount, v.HourlyPrice)
	return err
}

// TypeUses counts what refers to a named VM type.
func (s Store) TypeUses(ctx context.Context, name string) (Uses, error) {
	var u Uses
	err := s.one(ctx, &u, "count uses of VM type", `
		select 0 as cards, 0 as gpus, 0 as quotas, 0 as types, (select count(*) from vms where type = $1 and deleted_at is null) as vms`, name)
	return u, err
}

// DeleteType removes a named VM type.
func (t *Tx) DeleteType(ctx context.Context, name string) error {
	_, err := t.exec(ctx, "delete VM type", `delete from vm_types where name = $1`, name)
	return err
}
