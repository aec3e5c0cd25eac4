package compute

import (
	"context"
	"strings"

	"berth/db"
	"berth/services"
	"berth/services/catalog"
)

// Allocation asks for one GPU.
type Allocation struct {
	Model              string
	Zone               string
	Name               string // empty: its id
	Generation         string // empty: the oldest that the model allows in the region
	DeleteOnVMDeletion bool
	Key                string `json:"-"` // idempotency key; empty: none
}

// Allocate holds a free card of (zone, model) for the account. Refusals:
// invalid-value, not-offered, quota-exceeded (invalid), no-capacity (capacity).
func (s *Service) Allocate(ctx context.Context, a services.Actor, in Allocation) (services.GPUID, error) {
	id, err := s.once(ctx, a, in.Key, in, func(tx *db.Tx) (string, error) {
		g, err := s.draft(ctx, tx, a, in)
		if err != nil {
			return "", err
		}
		if err := s.hold(ctx, tx, &g); err != nil {
			return "", err
		}
		if err := tx.InsertGPU(ctx, g); err != nil {
			return "", err
		}
		return string(g.ID), tx.InsertEvent(ctx, s.event(a, eventAllocated, map[string]any{"Model": g.Model, "Zone": g.Zone}),
			db.Subject{Account: g.Account, GPU: g.ID, Card: g.Card, To: string(services.GPUAllocated)})
	})
	return services.GPUID(id), err
}

// draft checks what was asked and makes the GPU, still without a card.
func (s *Service) draft(ctx context.Context, tx *db.Tx, a services.Actor, in Allocation) (db.GPU, error) {
	zone, err := findZone(ctx, tx, in.Zone)
	if err != nil {
		return db.GPU{}, err
	}
	offer, err := findOffer(ctx, tx, in.Model, zone)
	if err != nil {
		return db.GPU{}, err
	}
	generation := strings.TrimSpace(in.Generation)
	if generation == "" {
		generation = offer.Oldest()
	}
	if !offer.Allows(generation) {
		return db.GPU{}, services.NoneOf("generation", generation, offer.Generations...)
	}
	id, err := services.NewID[services.GPUID](s.random)
	if err != nil {
		return db.GPU{}, err
	}
	label := string(id)
	if strings.TrimSpace(in.Name) != "" {
		if label, err = name(in.Name); err != nil {
			return db.GPU{}, err
		}
	}
	return db.GPU{
		ID: id, Account: a.Account, Kind: services.GPUFlexible, Name: label, Model: offer.Model, Region: zone.Region, Zone: zone.ID,
		Generation: generation, State: services.GPUAllocated, DeleteOnVMDeletion: in.DeleteOnVMDeletion, StateSince: s.now(),
	}, nil
}

func findZone(ctx context.Context, tx *db.Tx, id string) (db.Zone, error) {
	if id == "" {
		return db.Zone{}, services.Invalid("zone", services.CodeRequired, nil)
	}
	zones, err := tx.Zones(ctx)
	if err != nil {
		return db.Zone{}, err
	}
	names := make([]string, 0, len(zones))
	for _, z := range zones {
		if z.ID == id {
			return z, nil
		}
		names = append(names, z.ID)
	}
	return db.Zone{}, services.NoneOf("zone", id, names...)
}

func findOffer(ctx context.Context, tx *db.Tx, model string, zone db.Zone) (catalog.Offer, error) {
	if model == "" {
		return catalog.Offer{}, services.Invalid("model", services.CodeRequired, nil)
	}
	offer, ok, err := tx.Offer(ctx, model, zone.Region)
	if err == nil && !ok {
		err = services.Invalid("model", services.CodeNotOffered, map[string]any{"Model": model, "Zone": zone.ID, "Region": zone.Region})
	}
	return offer, err
}

// hold checks the quota and takes a card, in that order, so that whoever is
// refused for quota never holds a card up for others.
func (s *Service) hold(ctx context.Context, tx *db.Tx, g *db.GPU) error {
	if err := checkQuota(ctx, tx, g.Account, g.Region, g.Model, 1); err != nil {
		return err
	}
	card, ok, err := tx.TakeCard(ctx, g.Zone, g.Model, g.Generation)
	if err != nil {
		return err
	}
	if !ok {
		return noCapacity(ctx, tx, *g)
	}
	g.Card = card
	return nil
}

// checkQuota refuses n more GPUs than the account may have. It holds the
// account's lock until the transaction ends.
func checkQuota(ctx context.Context, tx *db.Tx, account services.AccountID, region, model string, n int) error {
	if err := tx.LockAccount(ctx, account); err != nil {
		return err
	}
	use, err := tx.QuotaUse(ctx, account, region, model)
	if err != nil || use.Max == nil || use.Used+n <= *use.Max {
		return err
	}
	return services.Fail(services.KindInvalid, services.CodeQuotaExceeded,
		map[string]any{"Used": use.Used, "Max": *use.Max, "Model": model, "Region": region, "Wanted": n})
}

// noCapacity says that no card is free; what the account itself holds there is named.
func noCapacity(ctx context.Context, tx *db.Tx, g db.GPU) error {
	own, err := tx.ListGPUs(ctx, db.GPUFilter{Account: g.Account, Zone: g.Zone, Model: g.Model, Limit: 5})
	if err != nil {
		return err
	}
	var holders []string
	for _, o := range own {
		holder := o.Name
		if o.VM != "" {
			holder = o.VMName
		}
		holders = append(holders, holder)
	}
	return services.Fail(services.KindCapacity, services.CodeNoCapacity,
		map[string]any{"Model": g.Model, "Zone": g.Zone, "Generation": g.Generation, "Holders": strings.Join(holders, ", ")})
}

// lockGPU locks an open GPU of the account; a released one is wrong-state.
func lockGPU(ctx context.Context, tx *db.Tx, account services.AccountID, id services.GPUID) (db.GPU, error) {
	g, err := tx.LockGPU(ctx, account, id)
	if err == nil && g.Released() {
		err = wrongState(g)
	}
	return g, err
}

type gpuWrite struct {
	GPU    services.GPUID
	Doing  string
	Detail string
}

// Release gives an allocated GPU back; its card is cleaned before anybody else
// is offered it. A GPU in another state is refused, naming its VM.
func (s *Service) Release(ctx context.Context, a services.Actor, id services.GPUID, key string) error {
	_, err := s.once(ctx, a, key, gpuWrite{GPU: id, Doing: "release"}, func(tx *db.Tx) (string, error) {
		g, err := lockGPU(ctx, tx, a.Account, id)
		if err != nil {
			return "", err
		}
		if err := s.move(ctx, tx, a, g, release, ""); err != nil {
			return "", err
		}
		return string(id), clean(ctx, tx, g.Card)
	})
	return err
}

// clean orders cards to be cleaned and tells their agents.
func clean(ctx context.Context, tx *db.Tx, cards ...services.CardID) error {
	for _, c := range cards {
		h, err := tx.Clean(ctx, c)
		if err != nil {
			return err
		}
		if _, err := tx.Bump(ctx, h); err != nil {
			return err
		}
	}
	return nil
}

// Rename changes a GPU's name.
func (s *Service) Rename(ctx context.Context, a services.Actor, id services.GPUID, to, key string) error {
	to, err := name(to)
	if err != nil {
		return err
	}
	_, err = s.once(ctx, a, key, gpuWrite{id, "rename", to}, func(tx *db.Tx) (string, error) {
		g, err := lockGPU(ctx, tx, a.Account, id)
		if err != nil || g.Name == to {
			return string(id), err
		}
		if err := tx.RenameGPU(ctx, id, to); err != nil {
			return "", err
		}
		return string(id), tx.InsertEvent(ctx, s.event(a, "gpu.renamed", map[string]any{"Old": g.Name, "New": to}),
			db.Subject{Account: a.Account, GPU: id, VM: g.VM})
	})
	return err
}

// SetDeleteOnVMDeletion changes what becomes of a GPU when its VM is deleted.
func (s *Service) SetDeleteOnVMDeletion(ctx context.Context, a services.Actor, id services.GPUID, on bool, key string) error {
	kind := "gpu.keeps-after-vm"
	if on {
		kind = "gpu.goes-with-vm"
	}
	_, err := s.once(ctx, a, key, gpuWrite{id, "behaviour", kind}, func(tx *db.Tx) (string, error) {
		g, err := lockGPU(ctx, tx, a.Account, id)
		if err != nil || g.DeleteOnVMDeletion == on {
			return string(id), err
		}
		if err := tx.SetDeleteOnVMDeletion(ctx, id, on); err != nil {
			return "", err
		}
		return string(id), tx.InsertEvent(ctx, s.event(a, kind, nil), db.Subject{Account: a.Account, GPU: id, VM: g.VM})
	})
	return err
}
