package db_test

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"berth/db"
	"berth/services"
	"berth/services/catalog"
)

const (
	west = "eu-west-2"
	l40  = "nvidia-l40"
)

// sql runs statements that stand for what others do.
func (b *berthed) sql(t *testing.T, query string, args ...any) {
	t.Helper()
	if _, err := b.raw.ExecContext(t.Context(), query, args...); err != nil {
		t.Fatal(err)
	}
}

func (b *berthed) model(t *testing.T, id string) (catalog.Model, bool) {
	t.Helper()
	all, err := b.Models(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range all {
		if m.ID == id {
			return m, true
		}
	}
	return catalog.Model{}, false
}

func TestAModelIsReadAsItWasSaved(t *testing.T) {
	b := newBerthed(t)
	for name, m := range map[string]catalog.Model{
		"everything known": {
			ID: "nvidia-x1", Architecture: "Blackwell", VRAMMiB: 183_359, Memory: catalog.Memory{GB: 192, Type: "HBM3e"}, INT8TOPS: 4500,
			UseCases: []string{"training", "hpc"}, ResourceName: "nvidia.com/GB100", DriverBranch: "570", PCIIDs: []string{"10de:2900", "10de:2901"},
		},
		"nothing known":   {ID: "nvidia-x1"},
		"PCI ids alone":   {ID: "nvidia-x1", PCIIDs: []string{"10de:2901", "10de:2902"}},
		"other PCI ids":   {ID: "nvidia-x1", Architecture: "Hopper", PCIIDs: []string{"10de:2903"}},
		"a quote in them": {ID: "nvidia-x1", Architecture: `a'b"c\d{e}`, UseCases: []string{`x,"y"`, ""}},
	} {
		before, err := b.Models(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for range 2 { // the second time changes nothing
			b.change(t, func(tx *db.Tx) error { return tx.SaveModel(t.Context(), m) })
		}
		got, found := b.model(t, m.ID)
		if diff := cmp.Diff(m, got, cmpopts.EquateEmpty()); !found || diff != "" {
			t.Errorf("%s: %v %s", name, found, diff)
		}
		after, err := b.Models(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		others := cmpopts.IgnoreSliceElements(func(x catalog.Model) bool { return x.ID == m.ID })
		if diff := cmp.Diff(before, after, others, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s: other models changed: %s", name, diff)
		}
	}
}

// A pair of PCI ids stays with the model that had it first.
func TestASavedModelTakesNoOthersPCIIds(t *testing.T) {
	b := newBerthed(t)
	b.change(t, func(tx *db.Tx) error {
		return tx.SaveModel(t.Context(), catalog.Model{ID: "nvidia-x1", PCIIDs: []string{"10de:26b5", "10de:2900"}})
	})
	for pci, want := range map[string]string{"10de:26b5": l40, "10de:2900": "nvidia-x1", "10de:ffff": "", "": ""} {
		owner, found, err := b.PCIOwner(t.Context(), pci)
		if err != nil || owner != want || found != (want != "") {
			t.Errorf("%q is of %q, %v, %v; want %q", pci, owner, found, err, want)
		}
	}
	b.change(t, func(tx *db.Tx) error { return tx.SaveModel(t.Context(), catalog.Model{ID: "nvidia-x1"}) })
	if owner, found, err := b.PCIOwner(t.Context(), "10de:2900"); err != nil || found {
		t.Errorf("an id that its model gave up is still of %q, %v", owner, err)
	}
}

func TestUnknownCardsGetTheModelOfTheirIdsAndStayInReview(t *testing.T) {
	b := newBerthed(t)
	b.sql(t, `update cards set condition = 'needs_review', model_id = null, device_id = '2900' where id = 'card-00000002'`)
	b.sql(t, `update cards set device_id = '2900' where id = 'card-00000001'`) // known by an operator's word
	named := func() (n int64) {
		b.change(t, func(tx *db.Tx) (err error) { n, err = tx.NameUnknownCards(t.Context()); return err })
		return n
	}
	if n := named(); n != 0 {
		t.Errorf("%d cards were named though nothing names them", n)
	}
	b.change(t, func(tx *db.Tx) error {
		return tx.SaveModel(t.Context(), catalog.Model{ID: "nvidia-x1", PCIIDs: []string{"10de:2900"}})
	})
	if n := named(); n != 1 {
		t.Errorf("%d cards were named, want 1", n)
	}
	for id, want := range map[services.CardID]string{b.cards[0]: l40 + " ready", b.cards[1]: "nvidia-x1 needs_review"} {
		c, err := b.CardRow(t.Context(), id)
		if got := c.Model + " " + string(c.Condition); err != nil || got != want {
			t.Errorf("%s is %s, %v; want %s", id, got, err, want)
		}
	}
}

func TestAModelThatNothingRefersToIsDeletedWhole(t *testing.T) {
	b := newBerthed(t)
	b.change(t, func(tx *db.Tx) error {
		err := tx.SaveModel(t.Context(), catalog.Model{ID: "nvidia-x1", PCIIDs: []string{"10de:2900"}})
		return errors.Join(err, tx.SaveOffer(t.Context(), catalog.Offer{Model: "nvidia-x1", Region: west}))
	})
	if uses, err := b.ModelUses(t.Context(), "nvidia-x1"); err != nil || !uses.None() {
		t.Errorf("an offer and PCI ids are counted as uses: %+v, %v", uses, err)
	}
	b.change(t, func(tx *db.Tx) error { return tx.DeleteModel(t.Context(), "nvidia-x1") })
	if _, found := b.model(t, "nvidia-x1"); found {
		t.Error("the model is still there")
	}
	if _, found, err := b.Offer(t.Context(), "nvidia-x1", west); err != nil || found {
		t.Errorf("its offer is still there: %v", err)
	}
	if _, found := b.model(t, l40); !found {
		t.Error("another model is gone")
	}
}

// uses of a model: each keeps it from being deleted, whatever was counted before.
var uses = map[string]struct {
	query string
	want  db.Uses
}{
	"a card":         {`update cards set model_id = 'nvidia-x1' where id = 'card-00000002'`, db.Uses{Cards: 1}},
	"a quota":        {`insert into quotas values ('acc-00000001', 'eu-west-2', 'nvidia-x1', 0)`, db.Uses{Quotas: 1}},
	"a VM type":      {`insert into vm_types values ('x1.small', 1, 1024, '', 'nvidia-x1', 1, 99)`, db.Uses{Types: 1}},
	"a GPU":          {`update gpus set model_id = 'nvidia-x1'`, db.Uses{GPUs: 1}},
	"a released GPU": {`update gpus set model_id = 'nvidia-x1', state = null, released_at = now()`, db.Uses{GPUs: 1}},
}

func TestAModelThatIsReferredToIsCountedAndNotDeleted(t *testing.T) {
	for name, use := range uses {
		b := newBerthed(t)
		b.change(t, func(tx *db.Tx) error {
			return tx.SaveModel(t.Context(), catalog.Model{ID: "nvidia-x1", PCIIDs: []string{"10de:2900"}})
		})
		b.sql(t, use.query)
		if got, err := b.ModelUses(t.Context(), "nvidia-x1"); err != nil || got != use.want || got.None() {
			t.Errorf("%s: counted as %+v, %v; want %+v", name, got, err, use.want)
		}
		err := b.Tx(t.Context(), func(tx *db.Tx) error { return tx.DeleteModel(t.Context(), "nvidia-x1") })
		if services.KindOf(err) != services.KindConflict || !services.HasCode(err, services.CodeInUse) {
			t.Errorf("%s: got %v of kind %v, want in-use, a conflict", name, err, services.KindOf(err))
		}
		if m, found := b.model(t, "nvidia-x1"); !found || len(m.PCIIDs) != 1 {
			t.Errorf("%s: what was refused left %+v", name, m)
		}
	}
}

func TestAnOfferIsReadAsItWasSaved(t *testing.T) {
	b := newBerthed(t)
	for name, o := range map[string]catalog.Offer{
		"all bounds":  {Model: l40, Region: "hikube", MaxVCores: 35, MaxMemoryMiB: 256 << 10, Generations: []string{"v6", "v7"}, HourlyPrice: "2.5000"},
		"no bounds":   {Model: l40, Region: "hikube"},
		"one bound":   {Model: l40, Region: "hikube", MaxVCores: 1, Generations: []string{"v7"}},
		"for nothing": {Model: l40, Region: "hikube", HourlyPrice: "0.0000"},
		"dear":        {Model: l40, Region: "hikube", HourlyPrice: "99999999.9999"},
	} {
		b.change(t, func(tx *db.Tx) error { return tx.SaveOffer(t.Context(), o) })
		got, found, err := b.Offer(t.Context(), l40, "hikube")
		if diff := cmp.Diff(o, got, cmpopts.EquateEmpty()); err != nil || !found || diff != "" {
			t.Errorf("%s: %v, %v %s", name, found, err, diff)
		}
	}
	b.change(t, func(tx *db.Tx) error { return tx.DeleteOffer(t.Context(), l40, "hikube") })
	if _, found, err := b.Offer(t.Context(), l40, "hikube"); err != nil || found {
		t.Errorf("withdrawn, it is there: %v, %v", found, err)
	}
	if _, found, err := b.Offer(t.Context(), l40, west); err != nil || !found {
		t.Errorf("in another region it is gone: %v", err)
	}
	for name, o := range map[string]catalog.Offer{
		"no such model": {Model: "none", Region: west}, "no such region": {Model: l40, Region: "mars"}, "less than nothing": {Model: l40, Region: west, HourlyPrice: "-1"},
		"no number": {Model: l40, Region: west, HourlyPrice: "free"}, "below no cores": {Model: l40, Region: west, MaxVCores: -1},
	} {
		if err := b.Tx(t.Context(), func(tx *db.Tx) error { return tx.SaveOffer(t.Context(), o) }); err == nil {
			t.Errorf("%s: saved", name)
		}
	}
}

func TestVMsOfAModelAreThoseThatHavePlanOrLoseAFlexibleOne(t *testing.T) {
	b := newBerthed(t)
	find := func(region string) []string {
		t.Helper()
		vms, err := b.AttachedVMs(t.Context(), l40, region)
		if err != nil {
			t.Fatal(err)
		}
		return ids(vms, func(v db.AttachedVM) string { return v.AccountName + " " + v.Name + ": " + v.GPUNames })
	}
	for _, step := range []struct {
		query string
		want  []string
	}{
		{`select 1`, []string{}},
		{`update gpus set state = 'attaching', vm_id = 'i-00000001'`, []string{"Alpha web: one"}},
		{`update gpus set state = 'attached'`, []string{"Alpha web: one"}},
		{`update gpus set state = 'detaching'`, []string{"Alpha web: one"}},
		{addGPU + `('fgpu-00000002', 'acc-00000001', 'flexible', 'and two', 'nvidia-l40', 'eu-west-2', 'eu-west-2a', 'card-00000002', 'attached', 'i-00000001', now(), '2026-01-01')`,
			[]string{"Alpha web: and two, one"}},
		{`update gpus set state = null, released_at = now() where id = 'fgpu-00000001'`, []string{"Alpha web: and two"}},
		{`update gpus set kind = 'built-in', state = null where id = 'fgpu-00000002'`, []string{}},
	} {
		b.sql(t, step.query)
		if diff := cmp.Diff(step.want, find(west)); diff != "" {
			t.Errorf("after %.60s: %s", step.query, diff)
		}
		if got := find("hikube"); len(got) > 0 {
			t.Errorf("another region has %v", got)
		}
	}
}

func TestATypeIsSavedAtTheEndAndKeepsItsPlace(t *testing.T) {
	b := newBerthed(t)
	first, err := b.Types(t.Context())
	if err != nil || len(first) == 0 {
		t.Fatalf("%d types, %v", len(first), err)
	}
	added := catalog.VMType{Name: "x1.small", VCores: 2, MemoryMiB: 4096, Performance: catalog.Highest, Named: true}
	changed := added
	changed.VCores, changed.Generation, changed.GPUModel, changed.GPUCount, changed.HourlyPrice = 4, "v7", l40, 2, "0.2500"
	head := first[0]
	head.MemoryMiB++
	for _, v := range []catalog.VMType{added, changed, head} {
		b.change(t, func(tx *db.Tx) error { return tx.SaveType(t.Context(), v) })
	}
	want := append(append(catalog.Types{head}, first[1:]...), changed)
	got, err := b.Types(t.Context())
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v %s", err, diff)
	}
	b.change(t, func(tx *db.Tx) error { return tx.DeleteType(t.Context(), added.Name) })
	if got, err = b.Types(t.Context()); err != nil || len(got) != len(first) {
		t.Errorf("%d types are left, %v; want %d", len(got), err, len(first))
	}
}

func TestATypeIsUsedByTheVMsThatAreThere(t *testing.T) {
	b := newBerthed(t)
	uses := func() db.Uses {
		t.Helper()
		u, err := b.TypeUses(t.Context(), "tinav7.c8r32p1")
		if err != nil {
			t.Fatal(err)
		}
		return u
	}
	if got := uses(); got != (db.Uses{VMs: 1}) {
		t.Errorf("counted as %+v, want one VM", got)
	}
	b.sql(t, `update vms set desired_power = 'absent', deleted_at = now()`)
	if got := uses(); !got.None() {
		t.Errorf("with its VM deleted the type counts %+v", got)
	}
}

func TestChangesOfTheCatalogueTakeTurns(t *testing.T) {
	b := newBerthed(t)
	b.meanwhile(t, func(tx *db.Tx) error {
		if err := tx.LockCatalog(t.Context()); err != nil {
			return err
		}
		return tx.SaveModel(t.Context(), catalog.Model{ID: "nvidia-x1", DriverBranch: "570"})
	}, func(tx *db.Tx) error {
		if err := tx.LockCatalog(t.Context()); err != nil {
			return err
		}
		if m, found := b.model(t, "nvidia-x1"); !found || m.DriverBranch != "570" {
			t.Errorf("the one that waited finds %+v", m)
		}
		return nil
	})
	// Reading waits for nobody: pages show the catalogue while it is changed.
	b.change(t, func(tx *db.Tx) error {
		if err := tx.LockCatalog(t.Context()); err != nil {
			return err
		}
		_, found := b.model(t, l40)
		if !found {
			t.Error("a model is not read while the catalogue is locked")
		}
		return tx.InsertEvent(t.Context(), db.Event{At: time.Now(), Kind: "catalog.model-changed", Actor: "x"}, db.Subject{})
	})
}
