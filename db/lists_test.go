package db_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"berth/db"
	"berth/services"
)

// crowd gives the account many GPUs and VMs of few names, all made at once.
func (b *berthed) crowd(t *testing.T, n int) {
	t.Helper()
	for _, q := range []string{
		`insert into cards (id, identity, key, host_id, zone_id, model_id, vendor_id, device_id, pci_address, condition, last_seen_at, created_at)
		 select 'card-1' || lpad(to_hex(i), 7, '0'), 'crowd ' || i, 'crowd ' || i, 'host-00000001', 'eu-west-2a', 'nvidia-l40', '10de', '26b5', '0000:01:00.0',
		        'ready', now(), now() from generate_series(1, $1) i`,
		`insert into gpus (id, account_id, kind, name, model_id, region_id, zone_id, card_id, state, state_since, created_at)
		 select 'fgpu-1' || lpad(to_hex(i), 7, '0'), 'acc-00000001', 'flexible', (array['same', 'Same', '100%', 'a_b', 'a\b'])[1 + i % 5], 'nvidia-l40',
		        'eu-west-2', 'eu-west-2a', 'card-1' || lpad(to_hex(i), 7, '0'), 'allocated', now(), '2026-01-01' from generate_series(1, $1) i`,
		`insert into vms (id, account_id, zone_id, name, type, vcores, memory_mib, generation, performance, tenancy, image_id, host_id, desired_power,
		                  power_since, created_at)
		 select 'i-1' || lpad(to_hex(i), 7, '0'), 'acc-00000001', 'eu-west-2a', (array['same', 'Same', '100%', 'a_b', 'a\b'])[1 + i % 5], 'u1.large', 2, 8192,
		        'v7', 'highest', 'default', 'debian-12', 'host-00000001', 'running', now(), '2026-01-01' from generate_series(1, $1) i`,
		`insert into events (at, kind, account_id, actor) select '2026-01-01', 'gpu.allocated', 'acc-00000001', 'console' from generate_series(1, $1)`,
	} {
		if _, err := b.raw.ExecContext(t.Context(), q, n); err != nil {
			t.Fatal(err)
		}
	}
}

// pages reads a list to its end, a few rows a page.
func pages[T any](t *testing.T, read func(after T, limit int) ([]T, error)) []T {
	t.Helper()
	const limit = 7
	var all []T
	var after T
	for {
		page, err := read(after, limit)
		if err != nil {
			t.Fatal(err)
		}
		if len(page) > limit {
			t.Fatalf("a page has %d rows, want %d at most", len(page), limit)
		}
		all = append(all, page...)
		if len(page) < limit {
			return all
		}
		after = page[len(page)-1]
	}
}

func TestPagesLoseAndRepeatNothingThoughRowsAreAlike(t *testing.T) {
	b := newBerthed(t)
	b.crowd(t, 50)
	ctx := t.Context()
	for _, sort := range []string{"", "created", "name", "-name", "state", "-state", "model", "zone", "power", "-type", "odd"} {
		lists := map[string]func(after string, limit int) ([]string, error){
			"GPUs": func(after string, limit int) ([]string, error) {
				rows, err := b.ListGPUs(ctx, db.GPUFilter{Account: b.account, Sort: sort, After: services.GPUID(after), Limit: limit})
				return ids(rows, func(g db.GPU) string { return string(g.ID) }), err
			},
			"VMs": func(after string, limit int) ([]string, error) {
				rows, err := b.ListVMs(ctx, db.VMFilter{Account: b.account, Sort: sort, After: services.VMID(after), Limit: limit})
				return ids(rows, func(v db.VM) string { return string(v.ID) }), err
			},
		}
		for what, list := range lists {
			whole, err := list("", 0)
			if err != nil || len(whole) != 51 {
				t.Fatalf("%s sorted by %q: %d rows, %v; want 51", what, sort, len(whole), err)
			}
			if got := pages(t, list); !slices.Equal(got, whole) {
				t.Errorf("%s sorted by %q: page by page %v, at once %v", what, sort, got, whole)
			}
		}
	}
	events := pages(t, func(before int64, limit int) ([]int64, error) {
		rows, err := b.ListEvents(ctx, db.EventFilter{Account: b.account, Before: before, Limit: limit})
		return ids(rows, func(e db.EventRow) int64 { return e.ID }), err
	})
	if len(events) != 50 || len(slices.Compact(events)) != 50 || !slices.IsSortedFunc(events, func(a, b int64) int { return int(b - a) }) {
		t.Errorf("events page by page: %v", events)
	}
}

func ids[R, I any](rows []R, of func(R) I) []I {
	out := make([]I, 0, len(rows))
	for _, r := range rows {
		out = append(out, of(r))
	}
	return out
}

func TestSearchTakesEverySignForItself(t *testing.T) {
	b := newBerthed(t)
	b.crowd(t, 50)
	for query, want := range map[string]int{
		"same": 20, "SAME": 20, "%": 10, "0%": 10, "_": 10, "a_b": 10, `\`: 10, `a\b`: 10, "a%b": 0, "__": 0, "fgpu-1": 50, "i-1": 50, "'": 0, "": 51,
	} {
		gpus, err := b.ListGPUs(t.Context(), db.GPUFilter{Account: b.account, Query: query})
		if err != nil || (len(gpus) != want && !strings.HasPrefix(query, "i-")) {
			t.Errorf("%q finds %d GPUs, %v; want %d", query, len(gpus), err, want)
		}
		vms, err := b.ListVMs(t.Context(), db.VMFilter{Account: b.account, Query: query})
		if err != nil || (len(vms) != want && !strings.HasPrefix(query, "fgpu-")) {
			t.Errorf("%q finds %d VMs, %v; want %d", query, len(vms), err, want)
		}
	}
}

func TestListsShowAnAccountsOwn(t *testing.T) {
	b := newBerthed(t)
	b.crowd(t, 5)
	other := services.AccountID("acc-00000002")
	gpus, err := b.ListGPUs(t.Context(), db.GPUFilter{Account: other})
	if err != nil || len(gpus) > 0 {
		t.Errorf("GPUs: %v, %v", gpus, err)
	}
	vms, err := b.ListVMs(t.Context(), db.VMFilter{Account: other, After: b.vm})
	if err != nil || len(vms) > 0 {
		t.Errorf("VMs: %v, %v", vms, err)
	}
	events, err := b.ListEvents(t.Context(), db.EventFilter{Account: other, VM: b.vm})
	if err != nil || len(events) > 0 {
		t.Errorf("events: %v, %v", events, err)
	}
	counts, err := b.CountGPUs(t.Context(), db.GPUFilter{Account: other})
	if err != nil || len(counts) > 0 {
		t.Errorf("counts: %v, %v", counts, err)
	}
}

func TestCountsAreThoseOfTheList(t *testing.T) {
	b := newBerthed(t)
	b.crowd(t, 20)
	for _, f := range []db.GPUFilter{
		{Account: b.account}, {Account: b.account, Query: "same"}, {Account: b.account, Region: "hikube"},
		{Account: b.account, Model: "nvidia-l40", Zone: "eu-west-2a", After: b.gpu, Limit: 3},
	} {
		counts, err := b.CountGPUs(t.Context(), f)
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		for _, c := range counts {
			n += c.Count
		}
		f.After, f.Limit = "", 0
		rows, err := b.ListGPUs(t.Context(), f)
		if err != nil || len(rows) != n {
			t.Errorf("%+v: %d counted, %d listed, %v", f, n, len(rows), err)
		}
	}
	power, err := b.CountVMs(t.Context(), db.VMFilter{Account: b.account})
	if err != nil || fmt.Sprint(power) == "[]" {
		t.Errorf("VMs: %v, %v", power, err)
	}
}

// set is what a filter may ask for, one thing each: as it is of the row that is
// looked for, and as it is of none.
type set[F any] struct {
	name         string
	right, wrong func(*F)
}

// combine lists a filter that asks for nothing, and then every combination.
func combine[F any](base F, parts []set[F]) []F {
	all := []F{base}
	for _, p := range parts {
		for _, f := range slices.Clone(all) {
			p.right(&f)
			all = append(all, f)
		}
	}
	return all
}

// filters checks a list and its parts: every combination of what is right finds
// the row, and each wrong one alone finds nothing.
func filters[F any](t *testing.T, base F, parts []set[F], find func(F) (int, error)) {
	t.Helper()
	for _, f := range combine(base, parts) {
		if n, err := find(f); err != nil || n != 1 {
			t.Errorf("%+v: found %d, %v; want 1", f, n, err)
		}
	}
	for _, p := range parts {
		f := base
		p.wrong(&f)
		if n, err := find(f); err != nil || n != 0 {
			t.Errorf("another %s: found %d, %v; want none", p.name, n, err)
		}
	}
}

func TestEveryFilterKeepsWhatMatches(t *testing.T) {
	b := newBerthed(t)
	ctx := t.Context()
	for _, sort := range []string{"", "created", "name", "-name"} {
		filters(t, db.GPUFilter{Account: b.account, Sort: sort}, []set[db.GPUFilter]{
			{"text", func(f *db.GPUFilter) { f.Query = "ON" }, func(f *db.GPUFilter) { f.Query = "two" }},
			{"region", func(f *db.GPUFilter) { f.Region = "eu-west-2" }, func(f *db.GPUFilter) { f.Region = "hikube" }},
			{"zone", func(f *db.GPUFilter) { f.Zone = "eu-west-2a" }, func(f *db.GPUFilter) { f.Zone = "eu-west-2b" }},
			{"model", func(f *db.GPUFilter) { f.Model = "nvidia-l40" }, func(f *db.GPUFilter) { f.Model = "nvidia-l40s" }},
			{"state", func(f *db.GPUFilter) { f.States = []services.GPUState{services.GPUAttached, services.GPUAllocated} },
				func(f *db.GPUFilter) { f.States = []services.GPUState{services.GPUAttached} }},
			{"page", func(f *db.GPUFilter) { f.Limit = 1 }, func(f *db.GPUFilter) { f.After = b.gpu }},
		}, func(f db.GPUFilter) (int, error) {
			rows, err := b.ListGPUs(ctx, f)
			if err != nil {
				return 0, err
			}
			_, err = b.CountGPUs(ctx, f)
			return len(rows), err
		})
		filters(t, db.VMFilter{Account: b.account, Sort: sort}, []set[db.VMFilter]{
			{"text", func(f *db.VMFilter) { f.Query = "EB" }, func(f *db.VMFilter) { f.Query = "two" }},
			{"region", func(f *db.VMFilter) { f.Region = "eu-west-2" }, func(f *db.VMFilter) { f.Region = "hikube" }},
			{"zone", func(f *db.VMFilter) { f.Zone = "eu-west-2a" }, func(f *db.VMFilter) { f.Zone = "eu-west-2b" }},
			{"power", func(f *db.VMFilter) { f.Power = services.PowerPending }, func(f *db.VMFilter) { f.Power = services.PowerStopped }},
			{"page", func(f *db.VMFilter) { f.Limit = 1 }, func(f *db.VMFilter) { f.After = b.vm }},
		}, func(f db.VMFilter) (int, error) {
			rows, err := b.ListVMs(ctx, f)
			if err != nil {
				return 0, err
			}
			_, err = b.CountVMs(ctx, f)
			return len(rows), err
		})
	}
}

func TestEveryFilterOfEventsKeepsWhatMatches(t *testing.T) {
	b := newBerthed(t)
	b.change(t, func(tx *db.Tx) error {
		return tx.InsertEvent(t.Context(), db.Event{At: time.Now(), Kind: "gpu.renamed", Actor: services.ActorConsole},
			db.Subject{Account: b.account, GPU: b.gpu, VM: b.vm})
	})
	rows, err := b.ListEvents(t.Context(), db.EventFilter{Account: b.account})
	if err != nil || len(rows) != 1 {
		t.Fatalf("got %v, %v; want one event", rows, err)
	}
	id := rows[0].ID
	filters(t, db.EventFilter{Account: b.account}, []set[db.EventFilter]{
		{"GPU", func(f *db.EventFilter) { f.GPU = b.gpu }, func(f *db.EventFilter) { f.GPU = "fgpu-00000009" }},
		{"VM", func(f *db.EventFilter) { f.VM = b.vm }, func(f *db.EventFilter) { f.VM = "i-00000009" }},
		{"kind", func(f *db.EventFilter) { f.Kinds = []string{"vm.stopped", "gpu.renamed"} }, func(f *db.EventFilter) { f.Kinds = []string{"vm.stopped"} }},
		{"family", func(f *db.EventFilter) { f.Family = "gpu" }, func(f *db.EventFilter) { f.Family = "gp" }},
		{"end", func(f *db.EventFilter) { f.Before = id + 1 }, func(f *db.EventFilter) { f.Before = id }},
		{"page", func(f *db.EventFilter) { f.Limit = 1 }, func(f *db.EventFilter) { f.Before = 1 }},
	}, func(f db.EventFilter) (int, error) {
		rows, err := b.ListEvents(t.Context(), f)
		return len(rows), err
	})
}

// Who reads on from a row that has meanwhile gone misses nothing behind it.
func TestAPageGoesOnBehindARowThatIsGone(t *testing.T) {
	b := newBerthed(t)
	b.crowd(t, 10)
	for _, sort := range []string{"", "created", "name", "-name"} {
		f := db.GPUFilter{Account: b.account, Sort: sort}
		before, err := b.ListGPUs(t.Context(), f)
		if err != nil {
			t.Fatal(err)
		}
		f.After = before[3].ID
		b.change(t, func(tx *db.Tx) error {
			_, err := tx.MoveGPU(t.Context(), db.Move{
				GPU: f.After, From: []services.GPUState{services.GPUAllocated}, Event: db.Event{At: time.Now(), Kind: "gpu.released", Actor: services.ActorConsole},
			})
			return err
		})
		rest, err := b.ListGPUs(t.Context(), f)
		gpu := func(g db.GPU) services.GPUID { return g.ID }
		if diff := cmp.Diff(ids(before[4:], gpu), ids(rest, gpu)); err != nil || diff != "" {
			t.Errorf("sorted by %q: %v %s", sort, err, diff)
		}
	}
}
