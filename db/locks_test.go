package db_test

import (
	"context"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"berth/db"
	"berth/db/dbtest"
	"berth/services"
	"berth/services/catalog"
)

// berthed is an account with a VM and a GPU on the first of two hosts, each
// with a card.
type berthed struct {
	*db.DB
	raw     *sqlx.DB
	account services.AccountID
	vm      services.VMID
	gpu     services.GPUID
	hosts   [2]services.HostID
	cards   [2]services.CardID
}

func newBerthed(t *testing.T) *berthed {
	t.Helper()
	url := dbtest.New(t)
	b := &berthed{account: "acc-00000001", vm: "i-00000001", gpu: "fgpu-00000001"}
	var err error
	if b.DB, err = db.Open(t.Context(), url); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.Close() })
	if b.raw, err = sqlx.ConnectContext(t.Context(), "postgres", url); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.raw.Close() })
	b.change(t, func(tx *db.Tx) error { return tx.AddReference(t.Context(), catalog.Published()) })
	b.change(t, func(tx *db.Tx) error { return b.fill(t.Context(), tx) })
	return b
}

func (b *berthed) change(t *testing.T, f func(*db.Tx) error) {
	t.Helper()
	if err := b.Tx(t.Context(), f); err != nil {
		t.Fatal(err)
	}
}

func (b *berthed) fill(ctx context.Context, tx *db.Tx) error {
	now := time.Now()
	if err := tx.InsertAccount(ctx, b.account, "Alpha", now); err != nil {
		return err
	}
	agent := db.Agent{ID: "agent-00000001", Zone: "eu-west-2a", CertificateHash: []byte{1}, ExpiresAt: now.Add(time.Hour), CreatedAt: now}
	if err := tx.InsertAgent(ctx, agent); err != nil {
		return err
	}
	for i := range b.hosts {
		id := string(rune('1' + i))
		var err error
		if b.hosts[i], err = tx.SaveHost(ctx, db.Host{
			ID: services.HostID("host-0000000" + id), Agent: agent.ID, Zone: agent.Zone, Name: "host " + id, Generation: "v7",
			VCores: 64, MemoryMiB: 1 << 20, Findings: db.JSON("[]"), ReportedAt: now, ConfirmedUntil: now.Add(time.Hour), Ready: true,
		}); err != nil {
			return err
		}
		b.cards[i] = services.CardID("card-0000000" + id)
		if err := tx.InsertCard(ctx, db.Card{
			ID: b.cards[i], Identity: "serial:" + id, Key: id, Host: b.hosts[i], Zone: agent.Zone, Model: "nvidia-l40", VendorID: "10de",
			DeviceID: "26b5", PCIAddress: "0000:3b:00.0", Functions: db.JSON("[]"), Condition: services.CardReady, LastSeenAt: now,
		}); err != nil {
			return err
		}
	}
	if err := tx.InsertVM(ctx, db.VM{
		ID: b.vm, Account: b.account, Zone: agent.Zone, Name: "web", Type: "tinav7.c8r32p1", VCores: 8, MemoryMiB: 32 << 10, Generation: "v7",
		Performance: catalog.Highest, Tenancy: catalog.TenancyDefault, Image: "debian-12", Host: b.hosts[0],
		DesiredPower: services.PowerRunning, CreatedAt: now,
	}); err != nil {
		return err
	}
	return tx.InsertGPU(ctx, db.GPU{
		ID: b.gpu, Account: b.account, Kind: services.GPUFlexible, Name: "one", Model: "nvidia-l40", Region: "eu-west-2", Zone: agent.Zone,
		Card: b.cards[0], State: services.GPUAllocated, StateSince: now,
	})
}

// meanwhile runs second while first's transaction is open and holds what second
// wants: second begins, waits, and goes on when first has committed.
func (b *berthed) meanwhile(t *testing.T, first, second func(*db.Tx) error) {
	t.Helper()
	done := make(chan error, 1)
	b.change(t, func(tx *db.Tx) error {
		if err := first(tx); err != nil {
			return err
		}
		go func() { done <- b.Tx(t.Context(), second) }()
		return b.untilOneWaits(t.Context())
	})
	if err := <-done; err != nil {
		t.Errorf("the one that waited: %v", err)
	}
}

func (b *berthed) untilOneWaits(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	for waiting := 0; waiting == 0; {
		err := b.raw.GetContext(ctx, &waiting, `
			select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`)
		if err != nil {
			return err
		}
	}
	return nil
}

func TestAVMThatMovedWhileItsLockWasWaitedForIsFoundWhereItIs(t *testing.T) {
	b := newBerthed(t)
	ctx := t.Context()
	b.meanwhile(t, func(tx *db.Tx) error {
		v, err := tx.LockVM(ctx, b.account, b.vm)
		if err != nil {
			return err
		}
		v.Host = b.hosts[1]
		return tx.WantVM(ctx, v)
	}, func(tx *db.Tx) error {
		v, err := tx.LockVM(ctx, b.account, b.vm)
		if err == nil && (v.Host != b.hosts[1] || v.HostName != "host 2") {
			t.Errorf("found on %s (%s), want the second host", v.Host, v.HostName)
		}
		return err
	})
}

func TestAGPUWhoseCardWasExchangedWhileItsLockWasWaitedForIsFoundOnTheNewOne(t *testing.T) {
	b := newBerthed(t)
	ctx := t.Context()
	b.meanwhile(t, func(tx *db.Tx) error {
		if _, err := tx.LockGPU(ctx, b.account, b.gpu); err != nil {
			return err
		}
		if _, err := tx.MoveGPU(ctx, db.Move{
			GPU: b.gpu, From: []services.GPUState{services.GPUAllocated}, To: services.GPUAttaching, VM: b.vm,
			Event: db.Event{At: time.Now(), Kind: "gpu.attach", Actor: services.ActorConsole},
		}); err != nil {
			return err
		}
		return tx.Repoint(ctx, b.gpu, b.cards[1])
	}, func(tx *db.Tx) error {
		g, err := tx.LockGPU(ctx, b.account, b.gpu)
		if err == nil && (g.Card != b.cards[1] || g.Host != b.hosts[1] || g.State != services.GPUAttaching || g.VMName != "web") {
			t.Errorf("found %s on card %s of %s with VM %q, want it as it now is", g.State, g.Card, g.Host, g.VMName)
		}
		return err
	})
}
