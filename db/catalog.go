package db

import (
	"context"

	"github.com/lib/pq"

	"berth/services"
	"berth/services/catalog"
)

// Zone is a place with capacity of its own.
type Zone struct {
	ID      string           `db:"id"`
	Region  string           `db:"region_id"`
	Storage services.Storage `db:"storage"`
}

// Zones lists all zones by region and name.
func (s Store) Zones(ctx context.Context) ([]Zone, error) {
	var zones []Zone
	err := s.all(ctx, &zones, "list zones", `select id, region_id, storage from zones order by region_id, id`)
	return zones, err
}

// Models lists the catalogue by name.
func (s Store) Models(ctx context.Context) ([]catalog.Model, error) {
	var rows []struct {
		catalog.Model
		VRAM     int            `db:"vram"`
		GB       int            `db:"memory_gb"`
		Type     string         `db:"memory_type"`
		INT8     int            `db:"int8"`
		UseCases pq.StringArray `db:"use_cases"`
		PCIIDs   pq.StringArray `db:"pci_ids"`
		Resource string         `db:"resource_name"`
		Driver   string         `db:"driver_branch"`
	}
	err := s.all(ctx, &rows, "list models", `
		select id, architecture, coalesce(vram_mib, 0) as vram, coalesce(memory_gb, 0) as memory_gb, memory_type,
		       coalesce(int8_tops, 0) as int8, use_cases,
		       resource_name, driver_branch,
		       array(select pci_id from model_pci_ids p where p.model_id = m.id order by pci_id) as pci_ids
		from models m order by id`)
	models := make([]catalog.Model, 0, len(rows))
	for _, r := range rows {
		m := r.Model
		m.VRAMMiB, m.INT8TOPS, m.UseCases, m.PCIIDs = r.VRAM, r.INT8, r.UseCases, r.PCIIDs
		m.Memory, m.ResourceName, m.DriverBranch = catalog.Memory{GB: r.GB, Type: r.Type}, r.Resource, r.Driver
		models = append(models, m)
	}
	return models, err
}

const offerColumns = `model_id as model, region_id as region, coalesce(max_vcores, 0) as max_vcores,
	coalesce(max_memory_mib, 0) as max_memory, generations, coalesce(cast(hourly_price as text), '') as hourly_price`

type offerRow struct {
	Model       string         `db:"model"`
	Region      string         `db:"region"`
	MaxVCores   int            `db:"max_vcores"`
	MaxMemory   int            `db:"max_memory"`
	Generations pq.StringArray `db:"generations"`
	HourlyPrice string         `db:"hourly_price"`
}

func (r offerRow) offer() catalog.Offer {
	return catalog.Offer{
		Model: r.Model, Region: r.Region, MaxVCores: r.MaxVCores, MaxMemoryMiB: r.MaxMemory, Generations: r.Generations, HourlyPrice: r.HourlyPrice,
	}
}

// Offers lists what is offered where.
func (s Store) Offers(ctx context.Context) ([]catalog.Offer, error) {
	var rows []offerRow
	err := s.all(ctx, &rows, "list offers", `select `+offerColumns+` from offers order by model_id, region_id`)
	offers := make([]catalog.Offer, 0, len(rows))
	for _, r := range rows {
		offers = append(offers, r.offer())
	}
	return offers, err
}

// Offer finds a model's offer in a region.
func (s Store) Offer(ctx context.Context, model, region string) (o catalog.Offer, ok bool, err error) {
	var r offerRow
	ok, err = s.found(ctx, &r, "find offer", `select `+offerColumns+` from offers where model_id = $1 and region_id = $2`, model, region)
	return r.offer(), ok, err
}

// Types lists the named VM types in their order.
func (s Store) Types(ctx context.Context) (catalog.Types, error) {
	var rows []struct {
		Name       string `db:"name"`
		VCores     int    `db:"vcores"`
		MemoryMiB  int    `db:"memory_mib"`
		Generation string `db:"generation"`
		GPUModel   string `db:"gpu_model"`
		GPUCount   int    `db:"gpu_count"`
		Price      string `db:"hourly_price"`
	}
	err := s.all(ctx, &rows, "list VM types", `
		select name, vcores, memory_mib, generation, coalesce(gpu_model, '') as gpu_model, gpu_count,
		       coalesce(cast(hourly_price as text), '') as hourly_price
		from vm_types order by position`)
	types := make(catalog.Types, 0, len(rows))
	for _, r := range rows {
		types = append(types, catalog.VMType{
			Name: r.Name, VCores: r.VCores, MemoryMiB: r.MemoryMiB, Generation: r.Generation,
			Performance: catalog.Highest, GPUModel: r.GPUModel, GPUCount: r.GPUCount, Named: true, HourlyPrice: r.Price,
		})
	}
	return types, err
}

// Images lists the systems that VMs can be made from.
func (s Store) Images(ctx context.Context) ([]catalog.Image, error) {
	var images []catalog.Image
	err := s.all(ctx, &images, "list images", `select id, name from images order by position`)
	return images, err
}

// AddReference adds what the reference has and the database lacks; what an
// operator changed stays.
func (t *Tx) AddReference(ctx context.Context, r catalog.Reference) error {
	for _, p := range r.Places {
		if _, err := t.exec(ctx, "add region", `insert into regions (id) values ($1) on conflict do nothing`, p.Region); err != nil {
			return err
		}
		if _, err := t.exec(ctx, "add zone", `insert into zones (id, region_id, storage) values ($1, $2, $3) on conflict do nothing`,
			p.Zone, p.Region, p.Storage); err != nil {
			return err
		}
	}
	for _, add := range []func(context.Context, catalog.Reference) error{t.addModels, t.addOffers, t.addTypes, t.addImages} {
		if err := add(ctx, r); err != nil {
			return err
		}
	}
	return nil
}

func (t *Tx) addModels(ctx context.Context, r catalog.Reference) error {
	for _, m := range r.Models {
		if _, err := t.exec(ctx, "add model", `
			insert into models (id, architecture, vram_mib, memory_gb, memory_type, int8_tops, use_cases, resource_name, driver_branch)
			values ($1, $2, nullif($3, 0), nullif($4, 0), $5, nullif($6, 0), $7, $8, $9) on conflict do nothing`,
			m.ID, m.Architecture, m.VRAMMiB, m.Memory.GB, m.Memory.Type, m.INT8TOPS, pq.Array(m.UseCases), m.ResourceName, m.DriverBranch); err != nil {
			return err
		}
		if _, err := t.exec(ctx, "add PCI ids", `
			insert into model_pci_ids (pci_id, model_id) select unnest($1::text[]), $2 on conflict do nothing`,
			pq.Array(m.PCIIDs), m.ID); err != nil {
			return err
		}
	}
	return nil
}

func (t *Tx) addOffers(ctx context.Context, r catalog.Reference) error {
	for _, o := range r.Offers {
		generations := o.Generations
		if generations == nil {
			generations = []string{}
		}
		if _, err := t.exec(ctx, "add offer", `
			insert into offers (model_id, region_id, max_vcores, max_memory_mib, generations)
			values ($1, $2, nullif($3, 0), nullif($4, 0), $5) on conflict do nothing`,
			o.Model, o.Region, o.MaxVCores, o.MaxMemoryMiB, pq.Array(generations)); err != nil {
			return err
		}
	}
	return nil
}

func (t *Tx) addTypes(ctx context.Context, r catalog.Reference) error {
	for i, v := range r.Types {
		if _, err := t.exec(ctx, "add VM type", `
			insert into vm_types (name, vcores, memory_mib, generation, gpu_model, gpu_count, position)
			values ($1, $2, $3, $4, nullif($5, ''), $6, $7) on conflict do nothing`,
			v.Name, v.VCores, v.MemoryMiB, v.Generation, v.GPUModel, v.GPUCount, i); err != nil {
			return err
		}
	}
	return nil
}

func (t *Tx) addImages(ctx context.Context, r catalog.Reference) error {
	for i, m := range r.Images {
		if _, err := t.exec(ctx, "add image", `insert into images (id, name, position) values ($1, $2, $3) on conflict do nothing`,
			m.ID, m.Name, i); err != nil {
			return err
		}
	}
	return nil
}
