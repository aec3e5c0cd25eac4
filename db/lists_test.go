package db_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

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
	for _, sort := range []string{"", "created", "name", "-name"} {
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
