package db_test

import (
	"slices"
	"testing"
	"time"

	"berth/db"
	"berth/services"
)

func TestEveryFilterOfTheOperatorsKeepsWhatMatches(t *testing.T) {
	b := newBerthed(t)
	ctx := t.Context()
	if _, err := b.raw.ExecContext(ctx, `
		update cards set serial = 'SER-1' where id = 'card-00000001'; update hosts set version = '1.2' where id = 'host-00000001';
		update hosts set zone_id = 'hikube-1', mode = 'draining' where id = 'host-00000002'; update cards set zone_id = 'hikube-1', model_id = 'nvidia-h100'
		where id = 'card-00000002'`); err != nil {
		t.Fatal(err)
	}
	for _, sort := range []string{"", "-name"} {
		filters(t, db.HostFilter{Text: "OST", State: "accepting", Sort: sort}, []set[db.HostFilter]{
			{"text", func(f *db.HostFilter) { f.Text = "HOST 1" }, func(f *db.HostFilter) { f.Text = "host 2" }},
			{"region", func(f *db.HostFilter) { f.Region = "eu-west-2" }, func(f *db.HostFilter) { f.Region = "hikube" }},
			{"zone", func(f *db.HostFilter) { f.Zone = "eu-west-2a" }, func(f *db.HostFilter) { f.Zone = "eu-west-2b" }},
			{"model", func(f *db.HostFilter) { f.Model = "nvidia-l40" }, func(f *db.HostFilter) { f.Model = "nvidia-h100" }},
			{"version", func(f *db.HostFilter) { f.Version = "1.2" }, func(f *db.HostFilter) { f.Version = "1.3" }},
			{"state", func(f *db.HostFilter) {}, func(f *db.HostFilter) { f.State = "silent" }},
			{"other state", func(f *db.HostFilter) {}, func(f *db.HostFilter) { f.State = "not-ready" }},
			{"page", func(f *db.HostFilter) { f.Limit = 1 }, func(f *db.HostFilter) { f.After = "host-00000001" }},
		}, func(f db.HostFilter) (int, error) {
			rows, err := b.ListHosts(ctx, f)
			if err != nil {
				return 0, err
			}
			_, err = b.CountHosts(ctx, f)
			return len(rows), err
		})
	}
	for _, sort := range []string{"", "serial"} {
		filters(t, db.CardFilter{Zone: "eu-west-2a", Sort: sort}, []set[db.CardFilter]{
			{"serial", func(f *db.CardFilter) { f.Text = "ser-1" }, func(f *db.CardFilter) { f.Text = "ser-2" }},
			{"host's name", func(f *db.CardFilter) { f.Text = "Host 1" }, func(f *db.CardFilter) { f.Text = "host 2" }},
			{"holder", func(f *db.CardFilter) {}, func(f *db.CardFilter) { f.Text = "fgpu-00000002" }},
			{"region", func(f *db.CardFilter) { f.Region = "eu-west-2" }, func(f *db.CardFilter) { f.Region = "hikube" }},
			{"model", func(f *db.CardFilter) { f.Model = "nvidia-l40" }, func(f *db.CardFilter) { f.Model = db.ModelUnknown }},
			{"host", func(f *db.CardFilter) { f.Host = "host-00000001" }, func(f *db.CardFilter) { f.Host = "host-00000002" }},
			{"account", func(f *db.CardFilter) { f.Account = b.account }, func(f *db.CardFilter) { f.Account = "acc-00000002" }},
			{"state", func(f *db.CardFilter) { f.State = "held" }, func(f *db.CardFilter) { f.State = "free" }},
			{"condition", func(f *db.CardFilter) {}, func(f *db.CardFilter) { f.State = "retired" }},
			{"availability", func(f *db.CardFilter) {}, func(f *db.CardFilter) { f.State = "unavailable" }},
			{"page", func(f *db.CardFilter) {}, func(f *db.CardFilter) { f.After = "card-00000001" }},
		}, func(f db.CardFilter) (int, error) {
			rows, err := b.ListCards(ctx, f)
			if err != nil {
				return 0, err
			}
			_, err = b.CountCards(ctx, f)
			return len(rows), err
		})
	}
}

func TestEveryFilterOfAccountsOperationsAgentsAndTheLogKeepsWhatMatches(t *testing.T) {
	b := newBerthed(t)
	ctx := t.Context()
	filters(t, db.AccountFilter{}, []set[db.AccountFilter]{
		{"text", func(f *db.AccountFilter) { f.Text = "ALPH" }, func(f *db.AccountFilter) { f.Text = "beta" }},
		{"state", func(f *db.AccountFilter) { f.State = "active" }, func(f *db.AccountFilter) { f.State = "suspended" }},
		{"page", func(f *db.AccountFilter) { f.Limit = 1 }, func(f *db.AccountFilter) { f.After = b.account }},
	}, func(f db.AccountFilter) (int, error) {
		rows, err := b.ListAccounts(ctx, f)
		if err != nil {
			return 0, err
		}
		_, err = b.CountAccounts(ctx, f)
		return len(rows), err
	})
	filters(t, db.AgentFilter{}, []set[db.AgentFilter]{
		{"text", func(f *db.AgentFilter) { f.Text = "AGENT-0000" }, func(f *db.AgentFilter) { f.Text = "x" }},
		{"zone", func(f *db.AgentFilter) { f.Zone = "eu-west-2a" }, func(f *db.AgentFilter) { f.Zone = "hikube-1" }},
		{"state", func(f *db.AgentFilter) { f.State = "active" }, func(f *db.AgentFilter) { f.State = "revoked" }},
		{"expiry", func(f *db.AgentFilter) {}, func(f *db.AgentFilter) { f.State = "expired" }},
		{"page", func(f *db.AgentFilter) { f.Limit = 1 }, func(f *db.AgentFilter) { f.After = "agent-00000001" }},
	}, func(f db.AgentFilter) (int, error) {
		rows, err := b.ListAgents(ctx, f)
		if err != nil {
			return 0, err
		}
		_, err = b.CountAgents(ctx, f)
		return len(rows), err
	})
	b.change(t, func(tx *db.Tx) error {
		return tx.InsertOperation(ctx, db.Operation{
			ID: "op-00000001", VM: b.vm, Account: b.account, Kind: services.OpStop, State: services.OpRunning, CreatedAt: time.Now(), Deadline: time.Now(),
		})
	})
	filters(t, db.OperationFilter{}, []set[db.OperationFilter]{
		{"text", func(f *db.OperationFilter) { f.Text = "WEB" }, func(f *db.OperationFilter) { f.Text = "other" }},
		{"account", func(f *db.OperationFilter) { f.Account = b.account }, func(f *db.OperationFilter) { f.Account = "acc-00000002" }},
		{"zone", func(f *db.OperationFilter) { f.Zone = "eu-west-2a" }, func(f *db.OperationFilter) { f.Zone = "hikube-1" }},
		{"state", func(f *db.OperationFilter) { f.State = "open" }, func(f *db.OperationFilter) { f.State = "stuck" }},
		{"page", func(f *db.OperationFilter) { f.Limit = 1 }, func(f *db.OperationFilter) { f.After = "op-00000001" }},
	}, func(f db.OperationFilter) (int, error) {
		rows, err := b.ListOperations(ctx, f)
		if err != nil {
			return 0, err
		}
		_, err = b.CountOperations(ctx, f)
		return len(rows), err
	})
	now := time.Now()
	b.change(t, func(tx *db.Tx) error {
		return tx.InsertEvent(ctx, db.Event{At: now, Kind: "gpu.allocated", Actor: "a@example.test", Address: "192.0.2.7"}, db.Subject{
			Account: b.account, GPU: b.gpu, VM: b.vm, Card: b.cards[0], Host: b.hosts[0],
		})
	})
	filters(t, db.AuditFilter{}, []set[db.AuditFilter]{
		{"account", func(f *db.AuditFilter) { f.Account = b.account }, func(f *db.AuditFilter) { f.Account = "acc-00000002" }},
		{"actor", func(f *db.AuditFilter) { f.Actor = "a@example.test" }, func(f *db.AuditFilter) { f.Actor = "host" }},
		{"family", func(f *db.AuditFilter) { f.Family = "gpu" }, func(f *db.AuditFilter) { f.Family = "vm" }},
		{"GPU", func(f *db.AuditFilter) { f.GPU = b.gpu }, func(f *db.AuditFilter) { f.GPU = "fgpu-00000002" }},
		{"card", func(f *db.AuditFilter) { f.Card = b.cards[0] }, func(f *db.AuditFilter) { f.Card = b.cards[1] }},
		{"host", func(f *db.AuditFilter) { f.Host = b.hosts[0] }, func(f *db.AuditFilter) { f.Host = b.hosts[1] }},
		{"VM", func(f *db.AuditFilter) { f.VM = b.vm }, func(f *db.AuditFilter) { f.VM = "i-00000002" }},
		{"begin", func(f *db.AuditFilter) { f.From = now.Add(-time.Hour) }, func(f *db.AuditFilter) { f.From = now.Add(time.Hour) }},
		{"end", func(f *db.AuditFilter) { f.Until = now.Add(time.Hour) }, func(f *db.AuditFilter) { f.Until = now.Add(-time.Hour) }},
		{"page", func(f *db.AuditFilter) { f.Limit = 1 }, func(f *db.AuditFilter) { f.Before = 1 }},
	}, func(f db.AuditFilter) (int, error) {
		rows, err := b.ListAudit(ctx, f)
		return len(rows), err
	})
}

func TestQuotasCountWhatIsUsedAndPending(t *testing.T) {
	b := newBerthed(t)
	ctx := t.Context()
	five, zero := 5, 0
	b.change(t, func(tx *db.Tx) error {
		for item, limit := range map[string]*int{"nvidia-l40": &five, "nvidia-h100": &zero, "nvidia-a100-80": nil} {
			if err := tx.SetQuota(ctx, b.account, "eu-west-2", item, limit); err != nil {
				return err
			}
		}
		for item, limit := range map[string]*int{"vcores": &five, "vms": nil} {
			if err := tx.SetLimit(ctx, b.account, "eu-west-2", item, limit); err != nil {
				return err
			}
		}
		return nil
	})
	rows, err := b.ListQuotas(ctx, db.QuotaFilter{Account: b.account})
	if err != nil || len(rows) != 5 {
		t.Fatalf("%d quotas, %v", len(rows), err)
	}
	want := map[string]struct {
		max           *int
		used, pending int
	}{
		"nvidia-l40": {&five, 1, 0}, "nvidia-h100": {&zero, 0, 0}, "nvidia-a100-80": {nil, 0, 0}, "vcores": {&five, 8, 8}, "vms": {nil, 1, 1},
	}
	for _, q := range rows {
		w := want[q.Item]
		alone, err := b.Quota(ctx, b.account, "eu-west-2", q.Item)
		if err != nil || alone.Used != q.Used || (alone.Max == nil) != (q.Max == nil) {
			t.Errorf("%s alone: %+v, %v; in the list %+v", q.Item, alone, err, q)
		}
		if q.Used != w.used || q.Pending != w.pending || (q.Max == nil) != (w.max == nil) || q.Max != nil && *q.Max != *w.max {
			t.Errorf("%s: %+v, want %+v", q.Item, q, w)
		}
	}
	for item, none := range map[string]bool{"nvidia-l40s": true, "memory": false} {
		q, err := b.Quota(ctx, b.account, "hikube", item)
		if err != nil || (q.Max != nil) != none || none && *q.Max != 0 {
			t.Errorf("%s without a row: %+v, %v", item, q, err)
		}
	}
	filters(t, db.QuotaFilter{Item: "vcores"}, []set[db.QuotaFilter]{
		{"account", func(f *db.QuotaFilter) { f.Account = b.account }, func(f *db.QuotaFilter) { f.Account = "acc-00000002" }},
		{"text", func(f *db.QuotaFilter) { f.Text = "alpha" }, func(f *db.QuotaFilter) { f.Text = "beta" }},
		{"region", func(f *db.QuotaFilter) { f.Region = "eu-west-2" }, func(f *db.QuotaFilter) { f.Region = "hikube" }},
		{"page", func(f *db.QuotaFilter) { f.Limit = 1 }, func(f *db.QuotaFilter) { f.After = "acc-00000001 eu-west-2 vcores" }},
	}, func(f db.QuotaFilter) (int, error) {
		rows, err := b.ListQuotas(ctx, f)
		if err != nil {
			return 0, err
		}
		_, err = b.CountQuotas(ctx, f)
		return len(rows), err
	})
}

func TestEveryChangeOfHandsOfACardIsKept(t *testing.T) {
	b := newBerthed(t)
	ctx := t.Context()
	b.change(t, func(tx *db.Tx) error { return tx.Repoint(ctx, b.gpu, b.cards[1]) })
	first, err := b.Holdings(ctx, b.cards[0], 10)
	if err != nil || len(first) != 1 || first[0].EndedAt == nil || first[0].GPU != b.gpu || first[0].AccountName != "Alpha" {
		t.Errorf("the card left: %+v, %v", first, err)
	}
	second, err := b.Holdings(ctx, b.cards[1], 10)
	if err != nil || len(second) != 1 || second[0].EndedAt != nil {
		t.Errorf("the card taken: %+v, %v", second, err)
	}
	b.change(t, func(tx *db.Tx) error { return tx.Repoint(ctx, b.gpu, b.cards[0]) })
	if again, err := b.Holdings(ctx, b.cards[0], 10); err != nil || len(again) != 2 || again[0].EndedAt != nil {
		t.Errorf("the card taken again: %+v, %v", again, err)
	}
}

func TestOperatorsListsPageWithoutLossThoughRowsAreAlike(t *testing.T) {
	b := newBerthed(t)
	b.crowd(t, 60)
	ctx := t.Context()
	for _, sort := range []string{"", "created", "serial", "-model", "zone", "state", "-state"} {
		list := func(after string, limit int) ([]string, error) {
			rows, err := b.ListCards(ctx, db.CardFilter{Sort: sort, After: services.CardID(after), Limit: limit})
			return ids(rows, func(c db.CardRow) string { return string(c.ID) }), err
		}
		whole, err := list("", 0)
		if err != nil || len(whole) != 62 {
			t.Fatalf("sorted by %q: %d rows, %v; want 62", sort, len(whole), err)
		}
		if got := pages(t, list); !slices.Equal(got, whole) {
			t.Errorf("sorted by %q: page by page %v, at once %v", sort, got, whole)
		}
	}
}
