-- The tenants' side: VMs, GPUs, what is under way, and what happened.
-- +goose Up

create extension if not exists btree_gist;

create table vms (
    id            text primary key check (id ~ '^i-[0-9a-f]{8}$'),
    account_id    text not null references accounts (id),
    zone_id       text not null references zones (id),
    name          text not null check (length(name) between 1 and 100),
    type          text not null,                     -- as the user named it
    vcores        integer not null check (vcores > 0),
    memory_mib    integer not null check (memory_mib > 0),
    generation    text not null,
    performance   text not null check (performance in ('highest', 'high', 'medium')),
    inference     boolean not null default false,    -- its type has GPUs built in
    tenancy       text not null check (tenancy in ('default', 'dedicated')),
    image_id      text not null references images (id),
    ssh_key       text not null default '',
    user_data     text not null default '',
    host_id       text not null references hosts (id),
    -- What should be. Each wanted start has a number of its own, so that a
    -- power-off from inside is not undone; reboots are counted likewise.
    desired_power text   not null check (desired_power in ('running', 'stopped', 'absent')),
    run           bigint not null default 0 check (run >= 0),
    reboots       bigint not null default 0 check (reboots >= 0),
    revision      bigint not null default 0,         -- of its agent's desired state, when this row last changed it
    -- What was seen.
    power         text   not null default 'pending' check (power in ('pending', 'starting', 'running', 'stopping', 'stopped', 'absent')),
    seen_run      bigint not null default 0,
    seen_reboots  bigint not null default 0,
    power_since   timestamptz not null,
    problem       jsonb,                             -- what keeps it from what is wanted, as the agent says
    created_at    timestamptz not null,
    deleted_at    timestamptz,
    unique (id, account_id, zone_id),
    check ((deleted_at is not null) = (desired_power = 'absent'))
);
create index vms_by_account on vms (account_id, created_at desc, id desc) where deleted_at is null;
create index vms_by_account_name on vms (account_id, lower(name), id) where deleted_at is null;
create index vms_by_host on vms (host_id) where deleted_at is null;

-- Hosts that must confirm that a VM is gone from them: it was deleted, or it
-- moved and must not run twice.
create table evictions (
    vm_id      text not null references vms (id),
    host_id    text not null references hosts (id),
    keep_disk  boolean not null,
    revision   bigint not null,
    created_at timestamptz not null,
    primary key (vm_id, host_id)
);
create index on evictions (host_id);

create table gpus (
    id                    text primary key check (id ~ '^fgpu-[0-9a-f]{8}$'),
    account_id            text not null references accounts (id),
    kind                  text not null check (kind in ('flexible', 'built-in')),
    name                  text not null check (length(name) between 1 and 100),
    model_id              text not null references models (id),
    region_id             text not null references regions (id),
    zone_id               text not null references zones (id),
    generation            text not null default '',  -- empty: any
    card_id               text not null references cards (id),
    state                 text check (state in ('allocated', 'attaching', 'attached', 'detaching')),
    vm_id                 text,
    delete_on_vm_deletion boolean not null default false,
    state_since           timestamptz not null,
    -- The VM's last start that was seen when a change was planned, and the
    -- desired revision that carries it: a report of an older one confirms nothing.
    planned_run           bigint not null default 0,
    revision              bigint not null default 0,
    created_at            timestamptz not null,
    released_at           timestamptz,

    -- A released GPU has no state; a built-in one never has.
    check ((state is not null) = (kind = 'flexible' and released_at is null)),
    -- The VM is named from attaching on, and never on an allocated GPU.
    check (released_at is not null or (vm_id is null) = (kind = 'flexible' and state = 'allocated')),
    -- A GPU and its VM share the account and the zone.
    foreign key (vm_id, account_id, zone_id) references vms (id, account_id, zone_id),
    -- One card, one open GPU. Deferrable, so that two GPUs can exchange cards.
    constraint gpus_one_card exclude using btree (card_id with =) where (released_at is null) deferrable initially immediate,
    -- All open GPUs of a VM are of one model.
    constraint gpus_one_model exclude using gist (vm_id with =, model_id with <>) where (vm_id is not null and released_at is null)
);
create index gpus_by_account on gpus (account_id, created_at desc, id desc) where released_at is null;
create index gpus_by_account_name on gpus (account_id, lower(name), id) where released_at is null;
create index gpus_by_account_model on gpus (account_id, region_id, model_id) where released_at is null;
create index gpus_by_vm on gpus (vm_id) where released_at is null;

alter table cards add foreign key (gpu_id) references gpus (id) deferrable initially deferred;

-- cards.gpu_id mirrors the open GPU that points at a card, whoever writes gpus.
-- The card's row changes with it, so that a taker who waited sees it taken.
-- +goose StatementBegin
create function mirror_card_holder() returns trigger language plpgsql as $$
begin
    if tg_op <> 'INSERT' and old.released_at is null
       and (tg_op = 'DELETE' or new.card_id <> old.card_id or new.released_at is not null) then
        update cards set gpu_id = null where id = old.card_id and gpu_id = old.id;
    end if;
    if tg_op <> 'DELETE' and new.released_at is null
       and (tg_op = 'INSERT' or new.card_id <> old.card_id or old.released_at is not null) then
        update cards set gpu_id = new.id where id = new.card_id;
    end if;
    return null;
end $$;
-- +goose StatementEnd
create trigger mirror_card_holder after insert or update or delete on gpus
    for each row execute function mirror_card_holder();

-- A change of a VM that takes several steps. A step is done when what it waits
-- for is true; whoever finds it so moves on.
create table operations (
    id         text primary key check (id ~ '^op-[0-9a-f]{8}$'),
    vm_id      text not null references vms (id),
    account_id text not null references accounts (id),
    kind       text not null check (kind in ('create', 'start', 'stop', 'reboot', 'stop-start', 'resize', 'delete')),
    state      text not null check (state in ('running', 'stuck', 'done', 'failed', 'cancelled')),
    step       integer not null default 0,
    spec       jsonb,                                -- of a resize: the new type
    reason     text not null default '',             -- key of the sentence why it waits or failed
    detail     text not null default '',             -- what the host says of it
    actor      text not null default '',             -- who asked
    deadline   timestamptz not null,                 -- of the present step
    created_at timestamptz not null,
    ended_at   timestamptz,
    check ((ended_at is null) = (state in ('running', 'stuck')))
);
create unique index operations_one_open on operations (vm_id) where ended_at is null;
create index operations_due on operations (deadline) where ended_at is null;
create index operations_by_account on operations (account_id, created_at desc) where state in ('running', 'stuck', 'failed');

-- What happened. A change of state and its event are one statement.
create table events (
    id         bigint generated always as identity primary key,
    at         timestamptz not null,
    kind       text not null,                        -- "gpu.allocated", "vm.stopped", ...
    account_id text references accounts (id),
    actor      text not null,                        -- e-mail of a user, or "host", "console"
    gpu_id     text references gpus (id),
    vm_id      text references vms (id),
    card_id    text references cards (id),
    host_id    text references hosts (id),
    from_state text,
    to_state   text,
    data       jsonb not null default '{}',
    request_id text not null default ''
);
create index events_by_account on events (account_id, id desc);
create index events_by_gpu on events (gpu_id, id desc) where gpu_id is not null;
create index events_by_vm on events (vm_id, id desc) where vm_id is not null;

-- Each event is announced when its transaction commits: "account gpu vm kind model".
-- +goose StatementBegin
create function announce_event() returns trigger language plpgsql as $$
begin
    perform pg_notify('berth_events', json_build_object(
        'account', new.account_id, 'gpu', new.gpu_id, 'vm', new.vm_id, 'kind', new.kind)::text);
    return null;
end $$;
-- +goose StatementEnd
create trigger announce_event after insert on events for each row execute function announce_event();

-- The first answer to a write, given again to its repeats.
create table idempotency_keys (
    user_id    text not null references users (id),
    key        text not null check (length(key) between 1 and 200),
    request    bytea not null,                       -- SHA-256 of what was asked
    answer     text not null,                        -- identifier of the object to show
    created_at timestamptz not null,
    primary key (user_id, key)
);
create index on idempotency_keys (created_at);

-- +goose Down
drop table idempotency_keys, events, operations;
alter table cards drop constraint cards_gpu_id_fkey;
drop table gpus, evictions, vms;
drop function mirror_card_holder, announce_event;
