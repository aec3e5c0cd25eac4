package db

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/lib/pq"

	"berth/services"
)

// Event is something that happened.
type Event struct {
	At        time.Time
	Kind      string // "gpu.allocated", "vm.stopped", ...
	Actor     string // e-mail of a user, services.ActorHost or services.ActorConsole
	RequestID string
	Address   string // of the client that asked; empty: no person
	Data      map[string]any
}

func (e Event) data() ([]byte, error) {
	if e.Data == nil {
		return []byte("{}"), nil
	}
	b, err := json.Marshal(e.Data)
	if err != nil {
		return nil, fmt.Errorf("encode data of event %s: %w", e.Kind, err)
	}
	return b, nil
}

// Subject says what an event is about; empty fields are none.
type Subject struct {
	Account services.AccountID
	GPU     services.GPUID
	VM      services.VMID
	Card    services.CardID
	Host    services.HostID
	From    string
	To      string
}

// InsertEvent writes an event that is no change of a GPU's state.
func (t *Tx) InsertEvent(ctx context.Context, e Event, s Subject) error {
	data, err := e.data()
	if err != nil {
		return err
	}
	_, err = t.exec(ctx, "insert event", `
		insert into events (at, kind, account_id, actor, gpu_id, vm_id, card_id, host_id, from_state, to_state, data, request_id, address)
		values ($1, $2, nullif($3, ''), $4, nullif($5, ''), nullif($6, ''), nullif($7, ''), nullif($8, ''), nullif($9, ''), nullif($10, ''), $11, $12, $13)`,
		e.At, e.Kind, string(s.Account), e.Actor, string(s.GPU), string(s.VM), string(s.Card), string(s.Host), s.From, s.To, data, e.RequestID, e.Address)
	return err
}

// Announce tells open pages that something of a VM changed which is no event.
func (t *Tx) Announce(ctx context.Context, account services.AccountID, vm services.VMID) error {
	_, err := t.exec(ctx, "announce change", `
		select pg_notify('berth_events', cast(json_build_object('account', cast($1 as text), 'vm', cast($2 as text), 'kind', 'vm.seen') as text))`,
		account, vm)
	return err
}

// EventRow is an event as read, with the names of what it is about.
type EventRow struct {
	ID        int64          `db:"id"`
	At        time.Time      `db:"at"`
	Kind      string         `db:"kind"`
	Actor     string         `db:"actor"`
	GPU       services.GPUID `db:"gpu_id"`
	GPUName   string         `db:"gpu_name"`
	VM        services.VMID  `db:"vm_id"`
	VMName    string         `db:"vm_name"`
	From      string         `db:"from_state"`
	To        string         `db:"to_state"`
	Data      JSON           `db:"data"`
	RequestID string         `db:"request_id"`
}

// EventFilter narrows and pages an account's events, newest first.
type EventFilter struct {
	Account services.AccountID
	GPU     services.GPUID
	VM      services.VMID
	Kinds   []string
	Family  string // what kinds begin with: "gpu", "vm"; empty: all
	Before  int64  // id; 0: from the newest
	Limit   int
}

// ListEvents gives one page of events.
func (s Store) ListEvents(ctx context.Context, f EventFilter) ([]EventRow, error) {
	w := &conditions{}
	w.add("e.account_id = ?", f.Account)
	w.addIf(f.GPU != "", "e.gpu_id = ?", f.GPU)
	w.addIf(f.VM != "", "e.vm_id = ?", f.VM)
	w.addIf(len(f.Kinds) > 0, "e.kind = any(?)", pq.Array(f.Kinds))
	w.addIf(f.Family != "", "e.kind like ?", f.Family+".%")
	w.addIf(f.Before > 0, "e.id < ?", f.Before)
	var rows []EventRow
	err := s.all(ctx, &rows, "list events", `
		select e.id, e.at, e.kind, e.actor, coalesce(e.gpu_id, '') as gpu_id, coalesce(g.name, '') as gpu_name,
		       coalesce(e.vm_id, '') as vm_id, coalesce(v.name, '') as vm_name,
		       coalesce(e.from_state, '') as from_state, coalesce(e.to_state, '') as to_state, e.data, e.request_id
		from events e left join gpus g on g.id = e.gpu_id left join vms v on v.id = e.vm_id`+
		w.sql()+` order by e.id desc`+w.limit(f.Limit), w.args...)
	return rows, err
}

// AuditRow is an event as operators read it: of any account, with where it came from.
type AuditRow struct {
	EventRow
	Account     services.AccountID `db:"account_id"`
	AccountName string             `db:"account_name"`
	Card        services.CardID    `db:"card_id"`
	Host        services.HostID    `db:"host_id"`
	HostName    string             `db:"host_name"`
	Address     string             `db:"address"`
}

// AuditFilter narrows and pages all events, newest first.
type AuditFilter struct {
	Account services.AccountID
	Actor   string // an e-mail, services.ActorHost or services.ActorConsole
	Family  string // what kinds begin with: "gpu", "host", ...
	GPU     services.GPUID
	VM      services.VMID
	Card    services.CardID
	Host    services.HostID
	From    time.Time // zero: from the first
	Until   time.Time // before it; zero: to the last
	Before  int64     // id; 0: from the newest
	Limit   int
}

func (f AuditFilter) where() *conditions {
	w := &conditions{}
	w.addIf(f.Account != "", "e.account_id = ?", f.Account)
	w.addIf(f.Actor != "", "e.actor = ?", f.Actor)
	w.addIf(f.Family != "", "split_part(e.kind, '.', 1) = ?", f.Family)
	w.addIf(f.GPU != "", "e.gpu_id = ?", f.GPU)
	w.addIf(f.VM != "", "e.vm_id = ?", f.VM)
	w.addIf(f.Card != "", "e.card_id = ?", f.Card)
	w.addIf(f.Host != "", "e.host_id = ?", f.Host)
	w.addIf(!f.From.IsZero(), "e.at >= ?", f.From)
	w.addIf(!f.Until.IsZero(), "e.at < ?", f.Until)
	w.addIf(f.Before > 0, "e.id < ?", f.Before)
	return w
}

// ListAudit gives one page of events of all accounts.
func (s Store) ListAudit(ctx context.Context, f AuditFilter) ([]AuditRow, error) {
	w := f.where()
	var rows []AuditRow
	err := s.all(ctx, &rows, "list all events", `
		select e.id, e.at, e.kind, e.actor, coalesce(e.gpu_id, '') as gpu_id, coalesce(g.name, '') as gpu_name,
		       coalesce(e.vm_id, '') as vm_id, coalesce(v.name, '') as vm_name,
		       coalesce(e.from_state, '') as from_state, coalesce(e.to_state, '') as to_state, e.data, e.request_id,
		       coalesce(e.account_id, '') as account_id, coalesce(a.name, '') as account_name, coalesce(e.card_id, '') as card_id,
		       coalesce(e.host_id, '') as host_id, coalesce(h.name, '') as host_name, e.address
		from (select e.* from events e`+w.sql()+` order by e.id desc`+w.limit(f.Limit)+`) e
		left join gpus g on g.id = e.gpu_id left join vms v on v.id = e.vm_id
		left join accounts a on a.id = e.account_id left join hosts h on h.id = e.host_id order by e.id desc`, w.args...)
	return rows, err
}

// countedEvents is how many events are counted at most: the log grows without end.
const countedEvents = 200_000

// CountAudit counts the events of all accounts that match, whatever the page;
// ok is false where there are more than are counted.
func (s Store) CountAudit(ctx context.Context, f AuditFilter) (n int, ok bool, err error) {
	f.Before = 0
	w := f.where()
	err = s.one(ctx, &n, "count all events", `
		select count(*) from (select e.id from events e`+w.sql()+` order by e.id desc`+w.limit(countedEvents+1)+`) e`, w.args...)
	return n, n <= countedEvents, err
}

func textArray[T ~string](values []T) pq.StringArray {
	a := make(pq.StringArray, 0, len(values))
	for _, v := range values {
		a = append(a, string(v))
	}
	return a
}
