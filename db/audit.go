package db

import (
	"context"
	"fmt"

	"berth/services"
)

// audits are what must never be found, each with what a row of it means. The
// schema's constraints forbid most of it; together they say that the books are right.
var audits = []struct{ means, query string }{
	{"a card has several open GPUs", `select card_id from gpus where released_at is null group by card_id having count(*) > 1`},
	{"a card's holder is not the GPU that points at it", `
		select c.id from cards c left join gpus g on g.card_id = c.id and g.released_at is null
		where c.gpu_id is distinct from g.id`},
	{"an account has more GPUs than its quota", `
		select q.account_id from quotas q join gpus g on g.account_id = q.account_id and g.region_id = q.region_id and g.model_id = q.model_id
		where g.released_at is null group by q.account_id, q.region_id, q.model_id, q.max having count(*) > q.max`},
	{"a GPU and its VM are of different accounts or zones", `
		select g.id from gpus g join vms v on v.id = g.vm_id
		where g.released_at is null and (g.account_id <> v.account_id or g.zone_id <> v.zone_id)`},
	{"a GPU is of another model or zone than its card", `
		select g.id from gpus g join cards c on c.id = g.card_id
		where g.released_at is null and (g.model_id <> c.model_id or g.zone_id <> c.zone_id)`},
	{"a GPU that is held stands on a card that is not ready", `
		select g.id from gpus g join cards c on c.id = g.card_id where g.released_at is null and c.condition = 'cleaning'`},
	{"a GPU is on a deleted VM", `
		select g.id from gpus g join vms v on v.id = g.vm_id where g.released_at is null and v.deleted_at is not null`},
	{"a VM has GPUs on several hosts", `
		select g.vm_id from gpus g join cards c on c.id = g.card_id
		where g.released_at is null and g.vm_id is not null and g.state is distinct from 'detaching'
		group by g.vm_id having count(distinct c.host_id) > 1`},
	{"a card with an account's data is held by another account", `
		select c.id from cards c join gpus g on g.id = c.gpu_id where c.used_by is not null and c.used_by <> g.account_id`},
	{"a card that a VM has, had or gets is not noted as used", `
		select c.id from cards c join gpus g on g.id = c.gpu_id
		where (g.kind = 'built-in' or g.state <> 'allocated') and c.used_by is distinct from g.account_id`},
	{"a free card that is offered has an account's data", `
		select id from cards where gpu_id is null and condition = 'ready' and used_by is not null`},
	{"free, held and unavailable do not add up", `
		select c.zone_id from cards c join hosts h on h.id = c.host_id group by c.zone_id
		having count(*) <> count(*) filter (where c.gpu_id is not null)
			+ count(*) filter (where` + offered + `) + count(*) filter (where c.gpu_id is null and not (` + offered + `))`},
	{"a VM has several open operations", `select vm_id from operations where ended_at is null group by vm_id having count(*) > 1`},
}

// Audit looks for contradictions and gives a sentence for each; none is right.
func (s Store) Audit(ctx context.Context) ([]string, error) {
	var found []string
	for _, a := range audits {
		var rows []string
		if err := s.all(ctx, &rows, "audit", a.query); err != nil {
			return nil, err
		}
		if len(rows) > 0 {
			found = append(found, fmt.Sprintf("%s: %v", a.means, rows))
		}
	}
	return found, nil
}

// History is one change of a GPU's state, as its event tells it.
type History struct {
	GPU  services.GPUID `db:"gpu_id"`
	From string         `db:"from_state"` // empty: it began
	To   string         `db:"to_state"`
}

// Histories lists every change of every flexible GPU in the order of the events.
func (s Store) Histories(ctx context.Context) ([]History, error) {
	var h []History
	err := s.all(ctx, &h, "list histories", `
		select e.gpu_id, coalesce(e.from_state, '') as from_state, e.to_state from events e join gpus g on g.id = e.gpu_id
		where e.to_state is not null and g.kind = 'flexible' order by e.id`)
	return h, err
}

// GPUStates gives the present state of every flexible GPU, "released" for those that are.
func (s Store) GPUStates(ctx context.Context) (map[services.GPUID]string, error) {
	var rows []struct {
		ID    services.GPUID `db:"id"`
		State string         `db:"state"`
	}
	err := s.all(ctx, &rows, "list states of GPUs", `select id, coalesce(state, 'released') as state from gpus where kind = 'flexible'`)
	states := make(map[services.GPUID]string, len(rows))
	for _, r := range rows {
		states[r.ID] = r.State
	}
	return states, err
}

// countable are the tables that Count knows.
var countable = map[string]bool{"gpus": true, "vms": true, "events": true, "operations": true}

// Count counts the rows of a table, closed ones too.
func (s Store) Count(ctx context.Context, table string) (int, error) {
	if !countable[table] {
		return 0, fmt.Errorf("count rows: no table %q", table)
	}
	var n int
	err := s.one(ctx, &n, "count rows of "+table, `select count(*) from `+table)
	return n, err
}
