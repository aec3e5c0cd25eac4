package db_test

import (
	"errors"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/lib/pq"

	"berth/db"
	"berth/services"
)

// refusal is a write that a constraint refuses.
type refusal struct{ constraint, query string }

const (
	addGPU = `insert into gpus (id, account_id, kind, name, model_id, region_id, zone_id, card_id, state, vm_id, state_since, created_at) values `
	addOp  = `insert into operations (id, vm_id, account_id, kind, state, deadline, created_at, ended_at) values `
)

// tenants' are the GPUs, VMs and operations.
var tenants = map[string]refusal{
	"two open GPUs on one card": {"gpus_one_card", addGPU +
		`('fgpu-00000002', 'acc-00000001', 'flexible', 'x', 'nvidia-l40', 'eu-west-2', 'eu-west-2a', 'card-00000001', 'allocated', null, now(), '2026-01-01')`},
	"GPUs of two models on one VM": {"gpus_one_model", `with a as (update gpus set state = 'attached', vm_id = 'i-00000001') ` + addGPU +
		`('fgpu-00000002', 'acc-00000001', 'flexible', 'x', 'nvidia-h100', 'eu-west-2', 'eu-west-2a', 'card-00000002', 'attached', 'i-00000001', now(), '2026-01-01')`},
	"an allocated GPU with a VM":   {"gpus_check1", `update gpus set vm_id = 'i-00000001'`},
	"an attached GPU without one":  {"gpus_check1", `update gpus set state = 'attached'`},
	"an attaching GPU without one": {"gpus_check1", `update gpus set state = 'attaching'`},
	"a detaching GPU without one":  {"gpus_check1", `update gpus set state = 'detaching'`},
	"a built-in GPU without one":   {"gpus_check1", `update gpus set kind = 'built-in', state = null`},
	"an open GPU without a state":  {"gpus_check", `update gpus set state = null`},
	"a released GPU with a state":  {"gpus_check", `update gpus set released_at = now()`},
	"a built-in GPU with a state": {"gpus_check", addGPU +
		`('fgpu-00000002', 'acc-00000001', 'built-in', 'x', 'nvidia-l40', 'eu-west-2', 'eu-west-2a', 'card-00000002', 'attached', 'i-00000001', now(), '2026-01-01')`},
	"a GPU's state that is none":  {"gpus_state_check", `update gpus set state = 'lost', vm_id = 'i-00000001'`},
	"a GPU's kind that is none":   {"gpus_kind_check", `update gpus set kind = 'node', state = null, vm_id = 'i-00000001'`},
	"a GPU without a name":        {"gpus_name_check", `update gpus set name = ''`},
	"a GPU by a VM's identifier":  {"gpus_id_check", `update gpus set id = 'i-00000002'`},
	"a GPU of a card that is not": {"gpus_card_id_fkey", `update gpus set card_id = 'card-99999999'`},
	"a GPU on a VM of another zone": {"gpus_vm_id_account_id_zone_id_fkey",
		`update gpus set state = 'attached', vm_id = 'i-00000001', zone_id = 'eu-west-2b'`},
	"a GPU on a VM of another account": {"gpus_vm_id_account_id_zone_id_fkey",
		`with b as (insert into accounts (id, name, created_at) values ('acc-00000002', 'Beta', now()))
		 update gpus set state = 'attached', vm_id = 'i-00000001', account_id = 'acc-00000002'`},

	"a VM that is deleted and wanted running": {"vms_check", `update vms set deleted_at = now()`},
	"a VM that is absent and not deleted":     {"vms_check", `update vms set desired_power = 'absent'`},
	"a VM's wanted power that is none":        {"vms_desired_power_check", `update vms set desired_power = 'starting'`},
	"a VM's power that is none":               {"vms_power_check", `update vms set power = 'sleeping'`},
	"a VM without cores":                      {"vms_vcores_check", `update vms set vcores = 0`},
	"a VM without memory":                     {"vms_memory_mib_check", `update vms set memory_mib = 0`},
	"a VM with a name of 101 letters":         {"vms_name_check", `update vms set name = repeat('é', 101)`},
	"a VM's performance that is none":         {"vms_performance_check", `update vms set performance = 'best'`},
	"a VM's tenancy that is none":             {"vms_tenancy_check", `update vms set tenancy = 'shared'`},
	"a VM of fewer starts than none":          {"vms_run_check", `update vms set run = -1`},
	"a VM of fewer reboots than none":         {"vms_reboots_check", `update vms set reboots = -1`},
	"a VM by a GPU's identifier":              {"vms_id_check", `update vms set id = 'fgpu-00000002'`},
	"a VM of an image that is not":            {"vms_image_id_fkey", `update vms set image_id = 'os-2'`},

	"two open operations of one VM": {"operations_one_open", addOp +
		`('op-00000001', 'i-00000001', 'acc-00000001', 'stop', 'running', now(), '2026-01-01', null), ('op-00000002', 'i-00000001', 'acc-00000001', 'stop', 'stuck', now(), '2026-01-01', null)`},
	"an operation that ended and runs":        {"operations_check", addOp + `('op-00000001', 'i-00000001', 'acc-00000001', 'stop', 'running', now(), '2026-01-01', now())`},
	"an operation that is done and goes on":   {"operations_check", addOp + `('op-00000001', 'i-00000001', 'acc-00000001', 'stop', 'done', now(), '2026-01-01', null)`},
	"an operation's state that is none":       {"operations_state_check", addOp + `('op-00000001', 'i-00000001', 'acc-00000001', 'stop', 'lost', now(), '2026-01-01', now())`},
	"an operation's kind that is none":        {"operations_kind_check", addOp + `('op-00000001', 'i-00000001', 'acc-00000001', 'sell', 'running', now(), '2026-01-01', null)`},
	"an operation by another's identifier":    {"operations_id_check", addOp + `('i-00000001', 'i-00000001', 'acc-00000001', 'stop', 'running', now(), '2026-01-01', null)`},
	"an idempotency key of more than allowed": {"idempotency_keys_key_check", `insert into idempotency_keys values ('usr-00000001', repeat('k', 201), '', '', now())`},
}

// operators' are the hosts, the cards and what is offered.
var operators = map[string]refusal{
	"an agent by another's identifier": {"agents_id_check", `update agents set id = 'host-00000001'`},
	"a second authority":               {"authorities_id_check", `insert into authorities values (2, '', '', now())`},
	"a drift's kind that is none":      {"drifts_kind_check", `insert into drifts values ('agent-00000001', 'odd', 'x', '', now(), now())`},
	"two hosts of one name":            {"hosts_agent_id_name_key", `update hosts set name = 'host'`},
	"a host without a name":            {"hosts_name_check", `update hosts set name = '' where id = 'host-00000001'`},
	"a host's mode that is none":       {"hosts_mode_check", `update hosts set mode = 'closed'`},
	"a host of fewer cores than none":  {"hosts_vcores_check", `update hosts set vcores = -1`},
	"a host of less memory than none":  {"hosts_memory_mib_check", `update hosts set memory_mib = -1`},
	"a host by another's identifier":   {"hosts_id_check", `update hosts set id = 'card-00000001'`},
	"two cards of one identity":        {"cards_identity_key", `update cards set identity = 'same'`},
	"two cards of one key on a host":   {"cards_host_id_key_key", `update cards set host_id = 'host-00000001', key = 'same'`},
	"a card's condition that is none":  {"cards_condition_check", `update cards set condition = 'tired'`},
	"a ready card of an unknown model": {"cards_check", `update cards set model_id = null`},
	"a card by another's identifier":   {"cards_id_check", `update cards set id = 'host-00000001' where id = 'card-00000002'`},
	"a card under a host that is not":  {"cards_host_id_fkey", `update cards set host_id = 'host-99999999'`},
	"a region without a name":          {"regions_id_check", `insert into regions values ('')`},
	"a zone with a name in capitals":   {"zones_id_check", `insert into zones values ('EU', 'eu-west-2', 'local')`},
	"a zone's storage that is none":    {"zones_storage_check", `update zones set storage = 'none'`},
	"a model with a name of two lines": {"models_id_check", `insert into models (id) values (E'a\nb')`},
	"a model of no memory":             {"models_memory_gb_check", `update models set memory_gb = 0`},
	"a model of no usable memory":      {"models_vram_mib_check", `update models set vram_mib = 0`},
	"a model of no speed":              {"models_int8_tops_check", `update models set int8_tops = 0`},
	"PCI ids in capitals":              {"model_pci_ids_pci_id_check", `insert into model_pci_ids values ('10DE:26B5', 'nvidia-l40')`},
	"PCI ids of two models":            {"model_pci_ids_pkey", `insert into model_pci_ids values ('10de:26b5', 'nvidia-h100')`},
	"an offer of at most no cores":     {"offers_max_vcores_check", `update offers set max_vcores = 0`},
	"an offer of at most no memory":    {"offers_max_memory_mib_check", `update offers set max_memory_mib = 0`},
	"a type without cores":             {"vm_types_vcores_check", `update vm_types set vcores = 0`},
	"a type without memory":            {"vm_types_memory_mib_check", `update vm_types set memory_mib = 0`},
	"a type with GPUs of no model":     {"vm_types_check", `update vm_types set gpu_count = 1, gpu_model = null`},
	"a type of fewer GPUs than none":   {"vm_types_gpu_count_check", `update vm_types set gpu_count = -1, gpu_model = 'nvidia-h100'`},
	"a type without a name":            {"vm_types_name_check", `update vm_types set name = '' where position = 0`},
	"an image without a name":          {"images_id_check", `update images set id = '' where position = 1`},
	"two accounts of one name": {"accounts_name_once", `
		insert into accounts (id, name, created_at) select 'acc-0000000' || n, case n when 8 then 'Twice' else 'TWICE' end, now() from generate_series(8, 9) n`},
	"an account without a name":          {"accounts_name_check", `update accounts set name = ''`},
	"an account by a user's identifier":  {"accounts_id_check", `update accounts set id = 'usr-00000002'`},
	"a user by an account's identifier":  {"users_id_check", `update users set id = 'acc-00000001'`},
	"a user without an address":          {"users_email_check", `update users set email = '@'`},
	"two users of one address":           {"users_email", `insert into users values ('usr-00000002', 'A@EXAMPLE.test', 'x', false, '', now())`},
	"a role that is none":                {"members_role_check", `insert into members values ('acc-00000001', 'usr-00000001', 'guest')`},
	"a retired card that is held":        {"cards_retired_check", `update cards set condition = 'retired' where gpu_id is not null`},
	"a way back of a card not prepared":  {"cards_undo_check", `update cards set undo = 'disabled' where condition = 'ready'`},
	"a way back to what is no condition": {"cards_undo_check", `update cards set condition = 'cleaning', undo = 'ready'`},
	"a GPU that holds a card twice": {"holdings_open",
		`insert into holdings (card_id, gpu_id, account_id) select card_id, gpu_id, account_id from holdings where ended_at is null`},
	"two tokens of one number": {"enrolment_tokens_id", `
		insert into enrolment_tokens (token_hash, zone_id, created_at, expires_at, id) overriding system value
		select hash, 'eu-west-2a', '2026-01-01', '2026-01-02', 1000 from unnest(array['a', 'b']::bytea[]) hash`},
	"a limit below none":       {"limits_max_check", `insert into limits values ('acc-00000001', 'eu-west-2', 'vms', -1)`},
	"a limit of nothing known": {"limits_resource_check", `insert into limits values ('acc-00000001', 'eu-west-2', 'disks', 1)`},
	"an offer that pays":       {"offers_hourly_price_check", `update offers set hourly_price = -0.01`},
	"a type that pays":         {"vm_types_hourly_price_check", `update vm_types set hourly_price = -1`},
	"a quota below none":       {"quotas_max_check", `insert into quotas values ('acc-00000001', 'eu-west-2', 'nvidia-l40', -1)`},
}

// What must never be in the books is refused by the schema, whoever writes.
func TestTheSchemaRefusesWhatMustNeverBe(t *testing.T) {
	b := newBerthed(t)
	b.change(t, func(tx *db.Tx) error {
		return tx.InsertUser(t.Context(), db.User{ID: "usr-00000001", Email: "a@example.test", PasswordHash: "x"}, time.Now())
	})
	cases := maps.Clone(tenants)
	maps.Copy(cases, operators)
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			tx, err := b.raw.BeginTxx(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = tx.Rollback() }()
			_, err = tx.ExecContext(t.Context(), c.query)
			e, ok := errors.AsType[*pq.Error](err)
			if !ok || e.Code.Class() != "23" || e.Constraint != c.constraint {
				t.Errorf("got %v, want %s to refuse it", err, c.constraint)
			}
		})
	}
}

// A constraint that is new needs a case above. Primary and foreign keys say
// what they hold by themselves.
func TestEveryConstraintHasACaseThatBreaksIt(t *testing.T) {
	b := newBerthed(t)
	var schema []string
	if err := b.raw.SelectContext(t.Context(), &schema, `
		select conname from pg_constraint where connamespace = 'public'::regnamespace and contype in ('c', 'x', 'u')
		union select indexrelid::regclass::text from pg_index join pg_class c on c.oid = indexrelid
		where c.relnamespace = 'public'::regnamespace and indisunique and not indisprimary
		order by 1`); err != nil {
		t.Fatal(err)
	}
	if len(schema) < 60 {
		t.Fatalf("only %d constraints were found", len(schema))
	}
	broken := map[string]bool{"vms_id_account_id_zone_id_key": true} // holds where vms_pkey does; it is there for a foreign key
	for _, cases := range []map[string]refusal{tenants, operators} {
		for _, c := range cases {
			broken[c.constraint] = true
		}
	}
	lacking := slices.DeleteFunc(schema, func(name string) bool { return broken[name] })
	if diff := cmp.Diff([]string{}, lacking); diff != "" {
		t.Errorf("constraints that no case breaks: %s", diff)
	}
}

// What a request can meet in spite of earlier checks has a word for users.
func TestARefusalThatUsersMeetHasItsCode(t *testing.T) {
	gpu := func(b *berthed, change func(*db.GPU)) func(*db.Tx) error {
		g := db.GPU{
			ID: "fgpu-00000002", Account: b.account, Kind: services.GPUFlexible, Name: "two", Model: "nvidia-l40", Region: "eu-west-2", Zone: "eu-west-2a",
			Card: b.cards[1], State: services.GPUAllocated, StateSince: time.Now(),
		}
		change(&g)
		return func(tx *db.Tx) error { return tx.InsertGPU(t.Context(), g) }
	}
	operation := func(id services.OperationID, b *berthed) db.Operation {
		return db.Operation{ID: id, VM: b.vm, Account: b.account, Kind: services.OpStop, State: services.OpRunning, CreatedAt: time.Now()}
	}
	b := newBerthed(t)
	for name, c := range map[string]struct {
		do   func(*db.Tx) error
		kind services.Kind
		code services.Code
	}{
		"a GPU on a card that is held": {gpu(b, func(g *db.GPU) { g.Card = b.cards[0] }), services.KindCapacity, services.CodeNoCapacity},
		"a GPU moved to such a card": {func(tx *db.Tx) error {
			if err := gpu(b, func(*db.GPU) {})(tx); err != nil {
				return err
			}
			return tx.Repoint(t.Context(), "fgpu-00000002", b.cards[0])
		}, services.KindCapacity, services.CodeNoCapacity},
		"a GPU beside one of another model": {func(tx *db.Tx) error {
			if _, err := tx.MoveGPU(t.Context(), db.Move{
				GPU: b.gpu, From: []services.GPUState{services.GPUAllocated}, To: services.GPUAttaching, VM: b.vm,
				Event: db.Event{At: time.Now(), Kind: "gpu.attach", Actor: services.ActorConsole},
			}); err != nil {
				return err
			}
			return gpu(b, func(g *db.GPU) { g.Model, g.State, g.VM = "nvidia-h100", services.GPUAttaching, b.vm })(tx)
		}, services.KindInvalid, services.CodeModelMismatch},
		"an operation beside another": {func(tx *db.Tx) error {
			if err := tx.InsertOperation(t.Context(), operation("op-00000001", b)); err != nil {
				return err
			}
			return tx.InsertOperation(t.Context(), operation("op-00000002", b))
		}, services.KindConflict, services.CodeBusy},
		"a VM of an image that is gone": {func(tx *db.Tx) error {
			v, err := tx.AccountVM(t.Context(), b.account, b.vm)
			if err != nil {
				return err
			}
			v.ID, v.Image = "i-00000002", "gone"
			return tx.InsertVM(t.Context(), v)
		}, services.KindInvalid, services.CodeInvalidValue},
	} {
		err := b.Tx(t.Context(), c.do)
		if services.KindOf(err) != c.kind || !services.HasCode(err, c.code) {
			t.Errorf("%s: got %v of kind %v, want %s of kind %v", name, err, services.KindOf(err), c.code, c.kind)
		}
		if _, ok := errors.AsType[*pq.Error](err); !ok {
			t.Errorf("%s: the log does not learn the cause: %v", name, err)
		}
	}
	err := b.Tx(t.Context(), gpu(b, func(g *db.GPU) { g.Name = "" }))
	if services.KindOf(err) != services.KindInternal {
		t.Errorf("what no request can break: got %v of kind %v, want an internal error", err, services.KindOf(err))
	}
}
