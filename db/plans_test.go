package db_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"berth/db"
	"berth/services"
)

// large are the tables that no list may read from end to end.
var large = []string{"cards", "gpus", "vms", "events", "operations", "holdings"}

// rows is how many of each the plans are made for.
const rows = 100_000

// fleet fills the database: hosts of eight cards, every other card held, each
// GPU on a VM of its own, as many events and operations. One account has a tenth of it all.
var fleet = []string{
	`alter table gpus disable trigger user`, `alter table cards disable trigger user`, `alter table events disable trigger user`,
	`insert into accounts (id, name, created_at) select 'acc-1' || lpad(to_hex(i), 7, '0'), 'account ' || i, now() from generate_series(1, 300) i`,
	`insert into hosts (id, agent_id, zone_id, name, generation, vcores, memory_mib, reported_at, confirmed_until, created_at, mode)
	 select 'host-1' || lpad(to_hex(i), 7, '0'), 'agent-00000001', (array['eu-west-2a', 'eu-west-2b', 'hikube-1'])[1 + i % 3], 'gpu-' || i, 'v7', 64, 1 << 20,
	        now(), now() + interval '1 hour', now(), case when i % 50 = 0 then 'draining' else 'accepting' end from generate_series(1, $1 / 8) i`,
	`insert into cards (id, identity, key, host_id, zone_id, model_id, vendor_id, device_id, serial, uuid, pci_address, condition, last_seen_at, created_at, functions)
	 select 'card-1' || lpad(to_hex(i), 7, '0'), 'serial ' || i, 'key ' || i, 'host-1' || lpad(to_hex(1 + i / 9), 7, '0'),
	        (array['eu-west-2a', 'eu-west-2b', 'hikube-1'])[1 + (1 + i / 9) % 3], (array['nvidia-l40', 'nvidia-h100', 'nvidia-a100-80', 'nvidia-l40s'])[1 + i % 4], '10de',
	        '26b5', lpad((i * 7919)::text, 13, '1'), '', '0000:' || lpad(to_hex(i % 256), 2, '0') || ':00.0',
	        case when i % 100 = 0 then 'quarantined' when i % 100 = 1 then 'disabled' else 'ready' end, now(), now() - i * interval '1 minute',
	        '[{"address": "0000:3b:00.0", "class": "0300", "driver": "vfio-pci"}, {"address": "0000:3b:00.1", "class": "0403", "driver": "vfio-pci"}]'
	 from generate_series(1, $1) i`,
	`insert into vms (id, account_id, zone_id, name, type, vcores, memory_mib, generation, performance, tenancy, image_id, host_id, desired_power, power,
	                  power_since, created_at)
	 select 'i-1' || lpad(to_hex(i), 7, '0'), case when i % 10 = 0 then 'acc-10000001' else 'acc-1' || lpad(to_hex(1 + i % 300), 7, '0') end,
	        (array['eu-west-2a', 'eu-west-2b', 'hikube-1'])[1 + i % 3], 'machine ' || i, 'u1.large', 2, 8192, 'v7', 'highest', 'default', 'debian-12',
	        'host-1' || lpad(to_hex(1 + i / 9), 7, '0'), 'running', (array['running', 'stopped'])[1 + i % 2], now(), now() - i * interval '1 minute'
	 from generate_series(1, $1) i`,
	`insert into gpus (id, account_id, kind, name, model_id, region_id, zone_id, card_id, state, state_since, created_at, released_at)
	 select 'fgpu-1' || lpad(to_hex(i), 7, '0'), case when i % 10 = 0 then 'acc-10000001' else 'acc-1' || lpad(to_hex(1 + i % 300), 7, '0') end, 'flexible',
	        'gpu ' || i, c.model_id, (array['eu-west-2', 'eu-west-2', 'hikube'])[1 + i % 3], c.zone_id, c.id, case when i % 2 = 0 then 'allocated' end, now(),
	        now() - i * interval '1 minute', case when i % 2 = 1 then now() end
	 from generate_series(1, $1) i join cards c on c.id = 'card-1' || lpad(to_hex(i), 7, '0')`,
	`update cards set gpu_id = g.id from gpus g where g.card_id = cards.id and g.released_at is null`,
	`insert into events (at, kind, account_id, actor, gpu_id, card_id, host_id)
	 select now() - i * interval '1 second', (array['gpu.allocated', 'gpu.attached', 'card.cleaned', 'host.back'])[1 + i % 4],
	        'acc-1' || lpad(to_hex(1 + i % 300), 7, '0'), 'user' || i % 500 || '@example.test', 'fgpu-1' || lpad(to_hex(i), 7, '0'),
	        'card-1' || lpad(to_hex(i), 7, '0'), 'host-1' || lpad(to_hex(1 + i / 9), 7, '0') from generate_series(1, $1) i`,
	`insert into operations (id, vm_id, account_id, kind, state, deadline, created_at, ended_at)
	 select 'op-1' || lpad(to_hex(i), 7, '0'), 'i-1' || lpad(to_hex(i), 7, '0'), 'acc-1' || lpad(to_hex(1 + i % 300), 7, '0'), 'start',
	        case when i % 1000 = 0 then 'running' else 'done' end, now(), now() - i * interval '1 minute', case when i % 1000 > 0 then now() end
	 from generate_series(1, $1) i`,
	`insert into holdings (card_id, gpu_id, account_id)
	 select 'card-1' || lpad(to_hex(i), 7, '0'), 'fgpu-1' || lpad(to_hex(i), 7, '0'), 'acc-10000001' from generate_series(1, $1) i`,
}

// filled is a database of that size, planned for as it is.
func filled(t *testing.T) *berthed {
	t.Helper()
	b := newBerthed(t)
	for _, q := range fleet {
		var args []any
		if slices.Contains([]byte(q), '$') {
			args = []any{rows}
		}
		if _, err := b.raw.ExecContext(t.Context(), q, args...); err != nil {
			t.Fatalf("%.60s: %v", q, err)
		}
	}
	for _, table := range append(large, "hosts", "accounts") {
		if _, err := b.raw.ExecContext(t.Context(), `vacuum analyze `+table); err != nil {
			t.Fatal(err)
		}
	}
	return b
}

// node is a part of a plan.
type node struct {
	Type     string  `json:"Node Type"`
	Table    string  `json:"Relation Name"`
	Rows     float64 `json:"Plan Rows"`
	Parallel bool    `json:"Parallel Aware"`
	Plans    []node  `json:"Plans"`
}

// scans lists the large tables that a plan reads from end to end.
func (n node) scans() []string {
	var found []string
	if n.Type == "Seq Scan" && slices.Contains(large, n.Table) {
		found = append(found, n.Table)
	}
	for _, p := range n.Plans {
		found = append(found, p.scans()...)
	}
	return found
}

// No list, and no count beside one, reads a large table from end to end.
func TestNoListReadsALargeTableWhole(t *testing.T) {
	if testing.Short() {
		t.Skip("fills 600,000 rows")
	}
	b := filled(t)
	planned := 0
	what := ""
	store := db.Explaining(b.DB, func(query string, plan []byte) {
		var plans []struct{ Plan node }
		if err := json.Unmarshal(plan, &plans); err != nil {
			t.Fatal(err)
		}
		planned++
		if found := plans[0].Plan.scans(); len(found) > 0 {
			t.Errorf("%s reads %v whole:\n%s\n%s", what, found, query, plan)
		}
	})
	for name, read := range lists(t, store) {
		what = name
		if err := read(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if planned < 100 {
		t.Fatalf("only %d queries were planned", planned)
	}
}

// lists are the reads behind every list, with each filter and sort of theirs.
func lists(t *testing.T, s db.Store) map[string]func() error {
	ctx := t.Context()
	const page = 51
	all := map[string]func() error{}
	cards := func(name string, f db.CardFilter) {
		f.Limit = page
		all["cards "+name] = func() error {
			if _, err := s.ListCards(ctx, f); err != nil {
				return err
			}
			_, err := s.CountCards(ctx, f)
			return err
		}
	}
	for _, sort := range []string{"", "created", "serial", "-serial", "model", "zone", "state", "-state", "driver", "-driver", "host", "-host"} {
		cards("sorted by "+sort, db.CardFilter{Sort: sort})
		cards("late, sorted by "+sort, db.CardFilter{Sort: sort, After: "card-10010000"})
	}
	for name, f := range map[string]db.CardFilter{
		"of a text": {Text: "7919"}, "of an address": {Text: "0000:3b:00"}, "of a host's name": {Text: "gpu-777"}, "of a region": {Region: "hikube"},
		"of a zone": {Zone: "eu-west-2a"}, "of a model": {Model: "nvidia-h100"}, "of no model": {Model: db.ModelUnknown}, "of a host": {Host: "host-10000010"},
		"of an account": {Account: "acc-10000007"}, "free": {State: "free"}, "held": {State: "held"}, "unavailable": {State: "unavailable"},
		"quarantined": {State: "quarantined"}, "missing": {State: "missing"}, "retired": {State: "retired"},
		"of everything": {Zone: "eu-west-2a", Model: "nvidia-h100", State: "free", Sort: "serial"},
	} {
		cards(name, f)
	}
	all["cards of a host"] = func() error { _, err := s.HostCards(ctx, "host-10000010"); return err }
	all["holders"] = func() error { _, err := s.Holdings(ctx, "card-10000010", page); return err }
	for name, f := range map[string]db.HostFilter{
		"all": {}, "late": {After: "host-10000100"}, "by zone": {Sort: "zone"}, "by mode": {Sort: "-mode"}, "by readiness": {Sort: "ready"}, "by agent": {Sort: "version"}, "of a text": {Text: "gpu-99"}, "of a model": {Model: "nvidia-h100"},
		"of a zone": {Zone: "hikube-1"}, "drained": {State: "draining"}, "silent": {State: "silent"}, "not ready": {State: "not-ready"},
	} {
		f.Limit = page
		all["hosts "+name] = func() error {
			if _, err := s.ListHosts(ctx, f); err != nil {
				return err
			}
			_, err := s.CountHosts(ctx, f)
			return err
		}
	}
	tenantLists(t, s, all)
	logLists(t, s, all)
	return all
}

// tenantLists adds the lists of an account with a tenth of everything, and of one with little.
func tenantLists(t *testing.T, s db.Store, all map[string]func() error) {
	ctx := t.Context()
	const page = 51
	for _, account := range []services.AccountID{"acc-10000001", "acc-10000007"} {
		for _, sort := range []string{"", "created", "name", "-name", "state", "model", "zone"} {
			all[fmt.Sprintf("GPUs of %s by %s", account, sort)] = func() error {
				_, err := s.ListGPUs(ctx, db.GPUFilter{Account: account, Sort: sort, Limit: page})
				return err
			}
		}
		for _, sort := range []string{"", "created", "name", "power", "type", "zone"} {
			all[fmt.Sprintf("VMs of %s by %s", account, sort)] = func() error {
				_, err := s.ListVMs(ctx, db.VMFilter{Account: account, Sort: sort, Limit: page})
				return err
			}
		}
		for name, f := range map[string]db.GPUFilter{
			"all": {}, "late": {After: "fgpu-10000100"}, "of a text": {Query: "gpu 77"}, "of a region": {Region: "hikube"}, "of a zone": {Zone: "eu-west-2b"},
			"of a model": {Model: "nvidia-h100"}, "of a state": {States: []services.GPUState{services.GPUAttached}},
		} {
			f.Account, f.Limit = account, page
			all[fmt.Sprintf("GPUs of %s %s", account, name)] = func() error {
				if _, err := s.ListGPUs(ctx, f); err != nil {
					return err
				}
				_, err := s.CountGPUs(ctx, f)
				return err
			}
		}
		for name, f := range map[string]db.VMFilter{
			"all": {}, "of a text": {Query: "machine 77"}, "of a region": {Region: "hikube"}, "of a zone": {Zone: "eu-west-2b"}, "running": {Power: services.PowerRunning},
		} {
			f.Account, f.Limit = account, page
			all[fmt.Sprintf("VMs of %s %s", account, name)] = func() error {
				if _, err := s.ListVMs(ctx, f); err != nil {
					return err
				}
				_, err := s.CountVMs(ctx, f)
				return err
			}
		}
		all["events of "+string(account)] = func() error {
			_, err := s.ListEvents(ctx, db.EventFilter{Account: account, Limit: page})
			return err
		}
		all["quotas of "+string(account)] = func() error { _, err := s.QuotaUses(ctx, account); return err }
	}
}

// logLists adds the lists of events, operations, accounts and quotas.
func logLists(t *testing.T, s db.Store, all map[string]func() error) {
	ctx := t.Context()
	const page = 51
	for name, f := range map[string]db.AuditFilter{
		"all": {}, "late": {Before: 5000}, "of an account": {Account: "acc-10000007"}, "of somebody": {Actor: "user77@example.test"}, "of a family": {Family: "card"},
		"of a GPU": {GPU: "fgpu-10000100"}, "of a card": {Card: "card-10000100"}, "of a host": {Host: "host-10000010"}, "of nobody": {Actor: "nobody@example.test"},
	} {
		f.Limit = page
		all["events "+name] = func() error {
			if _, err := s.ListAudit(ctx, f); err != nil {
				return err
			}
			_, _, err := s.CountAudit(ctx, f)
			return err
		}
	}
	for name, f := range map[string]db.OperationFilter{
		"all": {}, "late": {After: "op-10000100"}, "open": {State: "open"}, "failed": {State: "failed"}, "of an account": {Account: "acc-10000007"},
		"of a text": {Text: "machine 777"},
	} {
		f.Limit = page
		all["operations "+name] = func() error { _, err := s.ListOperations(ctx, f); return err }
	}
	for name, f := range map[string]db.AccountFilter{"all": {}, "of a text": {Text: "account 77"}, "suspended": {State: "suspended"}} {
		f.Limit = page
		all["accounts "+name] = func() error { _, err := s.ListAccounts(ctx, f); return err }
	}
	for name, f := range map[string]db.CapacityFilter{"all": {}, "of a region": {Region: "hikube"}, "of a model": {Model: "nvidia-h100"}} {
		all["capacity "+name] = func() error {
			if _, err := s.Capacity(ctx, f); err != nil {
				return err
			}
			_, err := s.Fragments(ctx, f)
			return err
		}
	}
	all["inventory"] = func() error { _, err := s.Inventory(ctx); return err }
	for _, text := range []string{"7919", "gpu 777", "machine 77", "0000:3b:00", "fgpu-10000100", "account 7"} {
		all["search for "+text] = func() error { _, err := s.Search(ctx, text, page); return err }
	}
	all["quotas"] = func() error { _, err := s.ListQuotas(ctx, db.QuotaFilter{Limit: page}); return err }
}
