package db

import (
	"context"
	"time"

	"berth/services"
)

// Operation is a change of a VM that takes several steps.
type Operation struct {
	ID        services.OperationID    `db:"id"`
	VM        services.VMID           `db:"vm_id"`
	Account   services.AccountID      `db:"account_id"`
	Kind      services.OperationKind  `db:"kind"`
	State     services.OperationState `db:"state"`
	Step      int                     `db:"step"`
	Spec      *JSON                   `db:"spec"`
	Reason    string                  `db:"reason"`
	Detail    string                  `db:"detail"`
	Actor     string                  `db:"actor"`
	Deadline  time.Time               `db:"deadline"`
	CreatedAt time.Time               `db:"created_at"`
	EndedAt   *time.Time              `db:"ended_at"`
	VMName    string                  `db:"vm_name"`
}

// Open reports whether the operation has still to end.
func (o Operation) Open() bool { return o.EndedAt == nil }

const operationColumns = `o.id, o.vm_id, o.account_id, o.kind, o.state, o.step, o.spec, o.reason, o.detail, o.actor, o.deadline,
	o.created_at, o.ended_at, v.name as vm_name`

const operationTables = ` from operations o join vms v on v.id = o.vm_id `

// InsertOperation adds an open operation; a VM has one at most.
func (t *Tx) InsertOperation(ctx context.Context, o Operation) error {
	_, err := t.exec(ctx, "insert operation", `
		insert into operations (id, vm_id, account_id, kind, state, step, spec, actor, deadline, created_at)
		values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)`,
		o.ID, o.VM, o.Account, o.Kind, o.State, o.Step, o.Spec, o.Actor, o.Deadline, o.CreatedAt)
	return err
}

// SaveOperation writes how far an operation is.
func (t *Tx) SaveOperation(ctx context.Context, o Operation) error {
	_, err := t.exec(ctx, "save operation", `
		update operations set state = $2, step = $3, reason = $4, detail = $5, deadline = $6, ended_at = $7 where id = $1`,
		o.ID, o.State, o.Step, o.Reason, o.Detail, o.Deadline, o.EndedAt)
	return err
}

// OpenOperation finds the open operation of a VM.
func (s Store) OpenOperation(ctx context.Context, vm services.VMID) (o Operation, ok bool, err error) {
	ok, err = s.found(ctx, &o, "find open operation", `select `+operationColumns+operationTables+`
		where o.vm_id = $1 and o.ended_at is null`, vm)
	return o, ok, err
}

// LastOperation finds the newest operation of a VM.
func (s Store) LastOperation(ctx context.Context, vm services.VMID) (o Operation, ok bool, err error) {
	ok, err = s.found(ctx, &o, "find last operation", `select `+operationColumns+operationTables+`
		where o.vm_id = $1 order by o.ended_at is null desc, o.created_at desc limit 1`, vm)
	return o, ok, err
}

// AccountOperation finds an operation of an account.
func (s Store) AccountOperation(ctx context.Context, account services.AccountID, id services.OperationID) (Operation, error) {
	var o Operation
	ok, err := s.found(ctx, &o, "find operation", `select `+operationColumns+operationTables+`
		where o.id = $1 and o.account_id = $2`, id, account)
	if err == nil && !ok {
		err = services.NotFound("operation", string(id))
	}
	return o, err
}

// OpenOperations lists an account's operations that have still to end, or whose
// VM's last one failed.
func (s Store) OpenOperations(ctx context.Context, account services.AccountID) ([]Operation, error) {
	var ops []Operation
	err := s.all(ctx, &ops, "list open operations", `
		select `+operationColumns+operationTables+`
		where o.account_id = $1 and (o.state in ('running', 'stuck') or o.state = 'failed' and v.deleted_at is null and not exists (
			select 1 from operations n where n.vm_id = o.vm_id and n.created_at > o.created_at))
		order by o.created_at desc limit 50`, account)
	return ops, err
}

// PendingOperation names an operation to look after.
type PendingOperation struct {
	ID services.OperationID `db:"id"`
	VM services.VMID        `db:"vm_id"`
}

// UnfinishedOperations lists all open operations, oldest deadline first.
func (s Store) UnfinishedOperations(ctx context.Context) ([]PendingOperation, error) {
	var pending []PendingOperation
	err := s.all(ctx, &pending, "list open operations", `
		select id, vm_id from operations where ended_at is null order by deadline limit 5000`)
	return pending, err
}

// LockVMRow locks a VM, deleted or not, by a row that an operation needs.
func (t *Tx) LockVMRow(ctx context.Context, id services.VMID) (VM, error) {
	v, ok, err := t.lockVM(ctx, id)
	if err == nil && !ok {
		err = services.NotFound("vm", string(id))
	}
	return v, err
}

// OperationFilter narrows and pages all operations, newest first.
type OperationFilter struct {
	Text    string // part of its VM's name or id
	Account services.AccountID
	Zone    string
	State   string // a state, or "open" for running and stuck; empty: all
	Sort    string // of operationSorts
	After   services.OperationID
	Limit   int
}

// operationSorts are the orders of the list of operations; newest first without one.
var operationSorts = sorts{
	"":        {by: []string{"o.created_at"}, descending: true},
	"created": {by: []string{"o.created_at"}},
}

func (f OperationFilter) where() *conditions {
	w := &conditions{}
	w.addIf(f.Account != "", "o.account_id = ?", f.Account)
	w.addIf(f.Text != "", "o.vm_id in (select id from vms where lower(name || ' ' || id) like lower(?))", contains(f.Text))
	w.addIf(f.Zone != "", "exists (select from vms z where z.id = o.vm_id and z.zone_id = ?)", f.Zone)
	switch f.State {
	case "":
	case "open":
		w.addRaw("o.state in ('running', 'stuck')")
	default:
		w.add("o.state = ?", f.State)
	}
	return w
}

// OperationRow is an operation of a list, with whose it is and where.
type OperationRow struct {
	Operation
	AccountName string          `db:"account_name"`
	Host        services.HostID `db:"host_id"`
	HostName    string          `db:"host_name"`
	Zone        string          `db:"zone_id"`
	Power       services.Power  `db:"power"`
	Problem     *JSON           `db:"problem"` // what its host says keeps the VM
}

// ListOperations gives one page of all accounts' operations.
func (s Store) ListOperations(ctx context.Context, f OperationFilter) ([]OperationRow, error) {
	w := f.where()
	order := w.page("o", "operations o", operationSorts.find(f.Sort), string(f.After))
	var rows []OperationRow
	err := s.all(ctx, &rows, "list operations", `
		select `+operationColumns+`, a.name as account_name, v.host_id, h.name as host_name, v.zone_id, v.power, v.problem
		from (select o.* from operations o`+w.sql()+order+w.limit(f.Limit)+`) o
		join vms v on v.id = o.vm_id join accounts a on a.id = o.account_id join hosts h on h.id = v.host_id`+order, w.args...)
	return rows, err
}

// OperationCount counts operations of a state.
type OperationCount struct {
	State services.OperationState `db:"state"`
	Count int                     `db:"count"`
}

// CountOperations counts the filter's operations by state; paging and State are not looked at.
func (s Store) CountOperations(ctx context.Context, f OperationFilter) ([]OperationCount, error) {
	f.State = ""
	w := f.where()
	var counts []OperationCount
	err := s.all(ctx, &counts, "count operations", `
		select o.state, count(*) as count from operations o`+w.sql()+` group by o.state order by o.state`, w.args...)
	return counts, err
}

// Operation finds an operation of any account.
func (s Store) Operation(ctx context.Context, id services.OperationID) (Operation, error) {
	var o Operation
	ok, err := s.found(ctx, &o, "find operation", `select `+operationColumns+operationTables+`where o.id = $1`, id)
	if err == nil && !ok {
		err = services.NotFound("operation", string(id))
	}
	return o, err
}
