package db_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"berth/db"
	"berth/services"
)

// operate adds an operation of the VM, made some minutes after the first.
func (b *berthed) operate(t *testing.T, vm services.VMID, minute int, state services.OperationState) services.OperationID {
	t.Helper()
	at := time.Date(2026, 1, 1, 0, minute, 0, 0, time.UTC)
	o := db.Operation{
		ID: services.OperationID(fmt.Sprintf("op-%08x", minute)), VM: vm, Account: b.account, Kind: services.OpStop, State: services.OpRunning,
		Deadline: at.Add(time.Hour), CreatedAt: at,
	}
	b.change(t, func(tx *db.Tx) error {
		if err := tx.InsertOperation(t.Context(), o); err != nil {
			return err
		}
		if o.State = state; state != services.OpRunning && state != services.OpStuck {
			o.EndedAt = &at
		}
		return tx.SaveOperation(t.Context(), o)
	})
	return o.ID
}

func TestOnlyOperationsThatMatterAreShown(t *testing.T) {
	b := newBerthed(t)
	b.crowd(t, 5)
	ctx := t.Context()
	machine := func(i int) services.VMID { return services.VMID(fmt.Sprintf("i-1%07x", i)) }
	b.operate(t, machine(1), 1, services.OpDone)
	b.operate(t, machine(1), 2, services.OpCancelled)
	b.operate(t, machine(2), 3, services.OpFailed)
	b.operate(t, machine(2), 4, services.OpDone) // what failed was done after all
	failed := b.operate(t, machine(3), 5, services.OpFailed)
	stuck := b.operate(t, machine(4), 6, services.OpStuck)
	running := b.operate(t, machine(5), 7, services.OpRunning)

	shown, err := b.OpenOperations(ctx, b.account)
	of := func(o db.Operation) services.OperationID { return o.ID }
	if diff := cmp.Diff([]services.OperationID{running, stuck, failed}, ids(shown, of)); err != nil || diff != "" {
		t.Errorf("shown: %v %s", err, diff)
	}
	if others, err := b.OpenOperations(ctx, "acc-00000002"); err != nil || len(others) > 0 {
		t.Errorf("another account is shown %v, %v", others, err)
	}
	unfinished, err := b.UnfinishedOperations(ctx)
	want := []db.PendingOperation{{ID: stuck, VM: machine(4)}, {ID: running, VM: machine(5)}} // the oldest deadline first
	if diff := cmp.Diff(want, unfinished); err != nil || diff != "" {
		t.Errorf("to look after: %v %s", err, diff)
	}
	for vm, want := range map[services.VMID]services.OperationID{machine(2): "op-00000004", machine(3): failed, machine(4): stuck} {
		if o, ok, err := b.LastOperation(ctx, vm); err != nil || !ok || o.ID != want || o.Open() != (want == stuck) {
			t.Errorf("the last of %s: %s (open: %v), %v, %v; want %s", vm, o.ID, o.Open(), ok, err, want)
		}
	}
	if _, ok, err := b.OpenOperation(ctx, machine(3)); ok || err != nil {
		t.Errorf("what failed is open: %v, %v", ok, err)
	}
	if _, err := b.AccountOperation(ctx, "acc-00000002", stuck); services.KindOf(err) != services.KindNotFound {
		t.Errorf("of another account: %v", err)
	}
}

func TestAnOperationThatEndedMakesRoomForTheNext(t *testing.T) {
	b := newBerthed(t)
	for minute, state := range []services.OperationState{services.OpDone, services.OpFailed, services.OpCancelled, services.OpRunning} {
		b.operate(t, b.vm, minute, state)
	}
	err := b.Tx(t.Context(), func(tx *db.Tx) error {
		return tx.InsertOperation(t.Context(), db.Operation{ID: "op-00000009", VM: b.vm, Account: b.account, Kind: services.OpStop, State: services.OpRunning})
	})
	if !services.HasCode(err, services.CodeBusy) {
		t.Errorf("beside one that is open: %v", err)
	}
}
