package fleet

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"berth/db"
	"berth/services"
	"berth/services/catalog"
)

// Catalogue is what operators edit.
type Catalogue struct {
	Models  []catalog.Model
	Offers  []catalog.Offer
	Types   catalog.Types
	Regions []string
}

// Catalogue gives everything that is on offer.
func (s *Service) Catalogue(ctx context.Context) (Catalogue, error) {
	return readCatalogue(ctx, s.db.Store)
}

func readCatalogue(ctx context.Context, store db.Store) (Catalogue, error) {
	var c Catalogue
	var err error
	if c.Models, err = store.Models(ctx); err != nil {
		return c, err
	}
	if c.Offers, err = store.Offers(ctx); err != nil {
		return c, err
	}
	if c.Types, err = store.Types(ctx); err != nil {
		return c, err
	}
	zones, err := store.Zones(ctx)
	for _, z := range zones {
		if !slices.Contains(c.Regions, z.Region) {
			c.Regions = append(c.Regions, z.Region)
		}
	}
	return c, err
}

// Model finds a model.
func (c Catalogue) Model(id string) (catalog.Model, bool) {
	i := slices.IndexFunc(c.Models, func(m catalog.Model) bool { return m.ID == id })
	if i < 0 {
		return catalog.Model{}, false
	}
	return c.Models[i], true
}

// Offer finds a model's offer in a region.
func (c Catalogue) Offer(model, region string) (catalog.Offer, bool) {
	i := slices.IndexFunc(c.Offers, func(o catalog.Offer) bool { return o.Model == model && o.Region == region })
	if i < 0 {
		return catalog.Offer{Model: model, Region: region}, false
	}
	return c.Offers[i], true
}

// Type finds a named VM type.
func (c Catalogue) Type(name string) (catalog.VMType, bool) {
	i := slices.IndexFunc(c.Types, func(t catalog.VMType) bool { return t.Name == name })
	if i < 0 {
		return catalog.VMType{}, false
	}
	return c.Types[i], true
}

// Version is a word for something as it is: a form that was made from another
// version is out of date.
func Version(of any) string {
	text, err := json.Marshal(of)
	if err != nil {
		return ""
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:8])
}

// stale refuses a form that was made from something that has changed since.
func stale(version string, now any) error {
	if version == "" || version == Version(now) {
		return nil
	}
	return services.Fail(services.KindConflict, services.CodeStale, nil)
}

var (
	modelID    = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,62}$`)
	typeName   = regexp.MustCompile(`^[a-z0-9][a-z0-9.-]{0,62}$`)
	pciPair    = regexp.MustCompile(`^[0-9a-f]{4}:[0-9a-f]{4}$`)
	priceForm  = regexp.MustCompile(`^[0-9]{1,8}(\.[0-9]{1,4})?$`)
	maxFact    = 100
	maxMachine = 1 << 30 // MiB
)

// broken collects what is wrong with a form.
type broken []services.Violation

func (b *broken) add(field string, code services.Code, args map[string]any) {
	*b = append(*b, services.Violation{Code: code, Field: field, Args: args})
}

func (b broken) err() error {
	if len(b) == 0 {
		return nil
	}
	return &services.Error{Kind: services.KindInvalid, Violations: b}
}

// text checks a fact of one line.
func (b *broken) text(field, value string) {
	switch {
	case utf8.RuneCountInString(value) > maxFact:
		b.add(field, services.CodeTooLong, map[string]any{"Max": maxFact})
	case strings.ContainsFunc(value, func(r rune) bool { return r < ' ' || r == 0x7f }):
		b.add(field, services.CodeInvalidValue, map[string]any{"Value": ""})
	}
}

// number checks a number that may be 0 for unknown or not binding.
func (b *broken) number(field string, n, least int) {
	if n < least || n > maxMachine {
		b.add(field, services.CodeInvalidValue, map[string]any{"Value": n, "Allowed": fmt.Sprintf("%d ... %d", least, maxMachine)})
	}
}

func (b *broken) price(value string) {
	if value != "" && !priceForm.MatchString(value) {
		b.add("hourly_price", services.CodeInvalidValue, map[string]any{"Value": value, "Allowed": "2.50"})
	}
}

func (b *broken) generations(all []string) {
	for _, g := range all {
		if !generation.MatchString(g) {
			b.add("generations", services.CodeInvalidValue, map[string]any{"Value": g, "Allowed": "v6, v7, ..."})
		}
	}
}

// SaveModel adds a model, or changes what it is. version is of the model that
// the form was made from; empty: a new one. Cards of unknown model get the
// model that their PCI ids now stand for; they stay in review. Refusals:
// required, invalid-value, too-long and taken (invalid), stale (conflict).
func (s *Service) SaveModel(ctx context.Context, a services.Actor, m catalog.Model, version string) error {
	return s.db.Tx(ctx, func(tx *db.Tx) error {
		if err := tx.LockCatalog(ctx); err != nil {
			return err
		}
		c, err := readCatalogue(ctx, tx.Store)
		if err != nil {
			return err
		}
		before, known := c.Model(m.ID)
		if err := checkModel(ctx, tx, m, known && version == ""); err != nil {
			return err
		}
		if known {
			if err := stale(version, before); err != nil {
				return err
			}
		}
		if known && Version(before) == Version(m) {
			return nil
		}
		if err := tx.SaveModel(ctx, m); err != nil {
			return err
		}
		return s.savedModel(ctx, tx, a, m, before, known)
	})
}

func (s *Service) savedModel(ctx context.Context, tx *db.Tx, a services.Actor, m, before catalog.Model, known bool) error {
	named, err := tx.NameUnknownCards(ctx)
	if err != nil {
		return err
	}
	kind := "catalog.model-added"
	if known {
		kind = "catalog.model-changed"
	}
	return tx.InsertEvent(ctx, s.event(a, kind, map[string]any{"Model": m.ID, "Old": before, "New": m, "Cards": named}), db.Subject{})
}

func checkModel(ctx context.Context, tx *db.Tx, m catalog.Model, taken bool) error {
	var b broken
	switch {
	case m.ID == "":
		b.add("id", services.CodeRequired, nil)
	case !modelID.MatchString(m.ID) || slices.Contains(services.Resources, m.ID):
		b.add("id", services.CodeInvalidValue, map[string]any{"Value": m.ID, "Allowed": "a-z 0-9 -"})
	case taken:
		b.add("id", services.CodeTaken, map[string]any{"Value": m.ID})
	}
	b.text("architecture", m.Architecture)
	b.text("memory_type", m.Memory.Type)
	b.text("resource_name", m.ResourceName)
	b.text("driver_branch", m.DriverBranch)
	for _, u := range m.UseCases {
		b.text("use_cases", u)
	}
	b.number("vram", m.VRAMMiB, 0)
	b.number("memory_gb", m.Memory.GB, 0)
	b.number("int8", m.INT8TOPS, 0)
	for _, id := range m.PCIIDs {
		if !pciPair.MatchString(id) {
			b.add("pci_ids", services.CodeInvalidValue, map[string]any{"Value": id, "Allowed": "10de:26b5"})
			continue
		}
		owner, found, err := tx.PCIOwner(ctx, id)
		if err != nil {
			return err
		}
		if found && owner != m.ID {
			b.add("pci_ids", services.CodeTaken, map[string]any{"Value": id + " (" + owner + ")"})
		}
	}
	return b.err()
}

// DeleteModel removes a model that nothing refers to. Refusal: in-use (conflict).
func (s *Service) DeleteModel(ctx context.Context, a services.Actor, id string) error {
	return s.db.Tx(ctx, func(tx *db.Tx) error {
		if err := tx.LockCatalog(ctx); err != nil {
			return err
		}
		c, err := readCatalogue(ctx, tx.Store)
		if err != nil {
			return err
		}
		if _, known := c.Model(id); !known {
			return services.NotFound("model", id)
		}
		uses, err := tx.ModelUses(ctx, id)
		if err != nil {
			return err
		}
		if !uses.None() {
			return inUse(uses)
		}
		if err := tx.DeleteModel(ctx, id); err != nil {
			return err
		}
		return tx.InsertEvent(ctx, s.event(a, "catalog.model-deleted", map[string]any{"Model": id}), db.Subject{})
	})
}

func inUse(u db.Uses) *services.Error {
	return services.Fail(services.KindConflict, services.CodeInUse, map[string]any{
		"Cards": u.Cards, "GPUs": u.GPUs, "Quotas": u.Quotas, "Types": u.Types, "VMs": u.VMs,
	})
}

// NewOffer asks how a model is offered in a region.
type NewOffer struct {
	catalog.Offer
	Offered bool
	Version string // of the offer that the form was made from; empty: whatever it is
	Confirm bool   // whoever asks knows which attachments the change would not allow
}

// Misfit is a VM with GPUs that an offer would not allow.
type Misfit struct {
	VM      services.VMID
	Name    string
	Account string
	GPUs    string
	Broken  []services.Violation
}

// SaveOffer changes how a model is offered in a region. What is attached stays
// so: only new attachments and resizes are checked. A change that attachments
// would break lists them, and needs Confirm. Refusals: invalid-value (invalid),
// stale (conflict), confirm (invalid).
func (s *Service) SaveOffer(ctx context.Context, a services.Actor, in NewOffer) ([]Misfit, error) {
	var misfits []Misfit
	err := s.db.Tx(ctx, func(tx *db.Tx) error {
		if err := tx.LockCatalog(ctx); err != nil {
			return err
		}
		c, err := readCatalogue(ctx, tx.Store)
		if err != nil {
			return err
		}
		if err := checkOffer(c, in); err != nil {
			return err
		}
		before, was := c.Offer(in.Model, in.Region)
		if err := stale(in.Version, before); err != nil {
			return err
		}
		if misfits, err = s.misfits(ctx, tx, in, before, was); err != nil {
			return err
		}
		if len(misfits) > 0 && !in.Confirm {
			return services.Invalid("confirm", services.CodeMisfits, map[string]any{"Count": len(misfits)})
		}
		return s.saveOffer(ctx, tx, a, in, before, was)
	})
	return misfits, err
}

func (s *Service) saveOffer(ctx context.Context, tx *db.Tx, a services.Actor, in NewOffer, before catalog.Offer, was bool) error {
	var err error
	kind := "catalog.offer-changed"
	switch {
	case !in.Offered && !was, in.Offered && was && Version(before) == Version(in.Offer):
		return nil
	case !in.Offered:
		kind = "catalog.offer-withdrawn"
		err = tx.DeleteOffer(ctx, in.Model, in.Region)
	default:
		err = tx.SaveOffer(ctx, in.Offer)
	}
	if err != nil {
		return err
	}
	return tx.InsertEvent(ctx, s.event(a, kind, map[string]any{"Model": in.Model, "Region": in.Region, "Old": before, "New": in.Offer}), db.Subject{})
}

func checkOffer(c Catalogue, in NewOffer) error {
	var b broken
	if _, known := c.Model(in.Model); !known {
		return services.NotFound("model", in.Model)
	}
	if !slices.Contains(c.Regions, in.Region) {
		b.add("region", services.CodeInvalidValue, map[string]any{"Value": in.Region, "Allowed": strings.Join(c.Regions, ", ")})
	}
	b.number("max_vcores", in.MaxVCores, 0)
	b.number("max_memory", in.MaxMemoryMiB, 0)
	b.generations(in.Generations)
	b.price(in.HourlyPrice)
	return b.err()
}

// misfits lists VMs whose attachments the present offer allows, and the new one
// would not.
func (s *Service) misfits(ctx context.Context, tx *db.Tx, in NewOffer, before catalog.Offer, was bool) ([]Misfit, error) {
	vms, err := tx.AttachedVMs(ctx, in.Model, in.Region)
	if err != nil {
		return nil, err
	}
	var out []Misfit
	for _, v := range vms {
		rules := in.Check(v.Spec())
		if !in.Offered {
			rules = []services.Violation{{Code: services.CodeNotOffered, Args: map[string]any{"Model": in.Model, "Zone": v.Zone}}}
		}
		if len(rules) == 0 || was && len(before.Check(v.Spec())) >= len(rules) && in.Offered {
			continue
		}
		out = append(out, Misfit{VM: v.ID, Name: v.Name, Account: v.AccountName, GPUs: v.GPUNames, Broken: rules})
	}
	return out, nil
}

// SaveType adds a named VM type, or changes what it is; VMs that were made of
// it stay as they are. Refusals: required, invalid-value, taken (invalid),
// stale (conflict).
func (s *Service) SaveType(ctx context.Context, a services.Actor, t catalog.VMType, version string) error {
	return s.db.Tx(ctx, func(tx *db.Tx) error {
		if err := tx.LockCatalog(ctx); err != nil {
			return err
		}
		c, err := readCatalogue(ctx, tx.Store)
		if err != nil {
			return err
		}
		before, known := c.Type(t.Name)
		if err := checkType(c, t, known && version == ""); err != nil {
			return err
		}
		if known {
			if err := stale(version, before); err != nil {
				return err
			}
		}
		if err := tx.SaveType(ctx, t); err != nil {
			return err
		}
		return tx.InsertEvent(ctx, s.event(a, "catalog.type-changed", map[string]any{"Type": t.Name, "Old": before, "New": t}), db.Subject{})
	})
}

func checkType(c Catalogue, t catalog.VMType, taken bool) error {
	var b broken
	switch {
	case t.Name == "":
		b.add("name", services.CodeRequired, nil)
	case !typeName.MatchString(t.Name) || catalog.Spelled(t.Name):
		b.add("name", services.CodeInvalidValue, map[string]any{"Value": t.Name, "Allowed": "a-z 0-9 . -"})
	case taken:
		b.add("name", services.CodeTaken, map[string]any{"Value": t.Name})
	}
	b.number("vcores", t.VCores, 1)
	b.number("memory", t.MemoryMiB, 1)
	if t.Generation != "" {
		b.generations([]string{t.Generation})
	}
	b.price(t.HourlyPrice)
	if t.GPUModel == "" && t.GPUCount == 0 {
		return b.err()
	}
	if _, known := c.Model(t.GPUModel); !known {
		b.add("gpu_model", services.CodeInvalidValue, map[string]any{"Value": t.GPUModel})
	}
	b.number("gpu_count", t.GPUCount, 1)
	return b.err()
}

// DeleteType removes a named VM type that no VM has. Refusal: in-use (conflict).
func (s *Service) DeleteType(ctx context.Context, a services.Actor, name string) error {
	return s.db.Tx(ctx, func(tx *db.Tx) error {
		if err := tx.LockCatalog(ctx); err != nil {
			return err
		}
		c, err := readCatalogue(ctx, tx.Store)
		if err != nil {
			return err
		}
		if _, known := c.Type(name); !known {
			return services.NotFound("type", name)
		}
		uses, err := tx.TypeUses(ctx, name)
		if err != nil {
			return err
		}
		if !uses.None() {
			return inUse(uses)
		}
		if err := tx.DeleteType(ctx, name); err != nil {
			return err
		}
		return tx.InsertEvent(ctx, s.event(a, "catalog.type-deleted", map[string]any{"Type": name}), db.Subject{})
	})
}
