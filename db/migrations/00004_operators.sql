-- What operators see and decide: readiness, topology, histories, maintenance,
-- further quotas, prices, and the trend of capacity.
-- +goose Up

create extension if not exists pg_trgm;

alter table hosts
    add column numa       jsonb   not null default '[]',    -- nodes with socket, cores and memory, as reported
    add column ready      boolean not null default true,    -- no readiness check failed; else its cards are not offered
    add column version    text    not null default '',      -- of its agent, kept here to filter by
    add column mode_since timestamptz not null default now(),
    add column mode_actor text    not null default '',
    add column silent_since timestamptz;                    -- no report vouches for it, and an event said so
create index hosts_falling_silent on hosts (confirmed_until) where silent_since is null;
create index hosts_by_name on hosts (lower(name), id);
create index hosts_by_zone on hosts (zone_id, lower(name), id);
create index hosts_by_mode on hosts (mode, lower(name), id);
create index hosts_by_readiness on hosts (ready, lower(name), id);
create index hosts_by_version on hosts (version, lower(name), id);
create index hosts_by_text on hosts using gin (lower(name || ' ' || id) gin_trgm_ops);
create index hosts_leaving on hosts (id) where mode <> 'accepting';
create index hosts_unready on hosts (lower(name), id) where not ready;

alter table cards
    add column driver          text   not null default '',  -- of its GPU function, as last seen
    add column vbios           text   not null default '',
    add column firmware        text   not null default '',
    add column parents         text[] not null default '{}',-- bridges above it, from the root complex down
    add column problem         jsonb,                       -- what its host says keeps it from what is wanted
    add column condition_since timestamptz not null default now(),
    add column condition_actor text   not null default '',
    -- While an operator's enabling or return is under way (condition cleaning):
    -- the condition that rolling it back leads to.
    add column undo            text,
    drop constraint cards_condition_check,
    add constraint cards_condition_check
        check (condition in ('ready', 'cleaning', 'quarantined', 'disabled', 'missing', 'needs_review', 'retired')),
    add constraint cards_undo_check
        check (undo is null or undo in ('disabled', 'quarantined', 'needs_review') and condition = 'cleaning'),
    add constraint cards_retired_check check (condition <> 'retired' or gpu_id is null);
-- What lists show and sort by: a card that is gone is missing, whatever was decided of it.
alter table cards add column status text not null generated always as
    (case when missing_since is not null and condition <> 'retired' then 'missing' else condition end) stored,
    add column held boolean not null generated always as (gpu_id is not null) stored;
create index cards_by_age on cards (created_at, id);
create index cards_by_zone on cards (zone_id, created_at, id);
create index cards_by_model on cards (model_id, created_at, id);
create index cards_by_status on cards (status, id);
create index cards_by_serial on cards (serial, id);
create index cards_by_driver on cards (driver, id);
create index cards_by_place on cards (zone_id, id);
create index cards_by_name on cards (coalesce(model_id, ''), id);
create index cards_by_text on cards using gin
    (lower(id || ' ' || serial || ' ' || uuid || ' ' || pci_address || ' ' || coalesce(gpu_id, '')) gin_trgm_ops);
create index cards_of_model on cards (model_id, host_id) where status <> 'retired';
create index cards_held on cards (gpu_id) where gpu_id is not null;
create index cards_out on cards (created_at, id) where status not in ('ready', 'retired');
-- Few values, so that counting reads a small index and never the cards.
create index cards_counted on cards (host_id, zone_id, model_id, status, held);

-- Who had which card, from when until when. Kept by the trigger that mirrors a
-- card's holder, so that no change of hands is left out.
create table holdings (
    id         bigint generated always as identity primary key,
    card_id    text not null references cards (id),
    gpu_id     text not null references gpus (id),
    account_id text not null references accounts (id),
    began_at   timestamptz not null default now(),
    ended_at   timestamptz
);
create index holdings_by_card on holdings (card_id, id desc);
create unique index holdings_open on holdings (card_id, gpu_id) where ended_at is null;
insert into holdings (card_id, gpu_id, account_id, began_at)
    select card_id, id, account_id, created_at from gpus where released_at is null;

-- +goose StatementBegin
create or replace function mirror_card_holder() returns trigger language plpgsql as $$
begin
    if tg_op <> 'INSERT' and old.released_at is null
       and (tg_op = 'DELETE' or new.card_id <> old.card_id or new.released_at is not null) then
        update cards set gpu_id = null where id = old.card_id and gpu_id = old.id;
        update holdings set ended_at = now() where card_id = old.card_id and gpu_id = old.id and ended_at is null;
    end if;
    if tg_op <> 'DELETE' and new.released_at is null
       and (tg_op = 'INSERT' or new.card_id <> old.card_id or old.released_at is not null) then
        update cards set gpu_id = new.id where id = new.card_id;
        insert into holdings (card_id, gpu_id, account_id) values (new.card_id, new.id, new.account_id);
    end if;
    return null;
end $$;
-- +goose StatementEnd

alter table vms
    -- Its host's maintenance stopped it: it starts by itself when that ends.
    add column resume boolean not null default false;
create index vms_to_resume on vms (host_id) where resume and deleted_at is null;
create index vms_by_text on vms using gin (lower(name || ' ' || id) gin_trgm_ops);
create index gpus_by_text on gpus using gin (lower(name || ' ' || id) gin_trgm_ops);
create index gpus_counted on gpus (account_id, region_id, zone_id, model_id, kind, state) where released_at is null;
create index vms_counted on vms (account_id, zone_id, power) where deleted_at is null;

-- Each column of a list sorts by what it shows.
create index gpus_by_account_state on gpus (account_id, state, id) where released_at is null;
create index gpus_by_account_zone on gpus (account_id, zone_id, id) where released_at is null;
create index gpus_by_account_kind on gpus (account_id, model_id, id) where released_at is null;
create index vms_by_account_power on vms (account_id, power, id) where deleted_at is null;
create index vms_by_account_type on vms (account_id, type, id) where deleted_at is null;
create index vms_by_account_zone on vms (account_id, zone_id, id) where deleted_at is null;

create index operations_by_vm on operations (vm_id, created_at desc);
create index operations_by_age on operations (created_at desc, id desc);
create index operations_by_state on operations (state, created_at desc, id desc);
create index operations_of_account on operations (account_id, created_at desc, id desc);

alter table accounts
    add column suspended_at     timestamptz,                -- its members read, and change nothing
    add column suspended_reason text not null default '';
create index accounts_by_name on accounts (lower(name), id);
update accounts a set name = a.name || ' (' || a.id || ')'
    where exists (select from accounts b where lower(b.name) = lower(a.name) and (b.created_at, b.id) < (a.created_at, a.id));
create unique index accounts_name_once on accounts (lower(name));
create index accounts_by_text on accounts using gin (lower(name || ' ' || id) gin_trgm_ops);

-- What an account may have in a region besides GPUs. No row, or a null max, is
-- unlimited; 0 is none.
create table limits (
    account_id text not null references accounts (id),
    region_id  text not null references regions (id),
    resource   text not null check (resource in ('vcores', 'memory', 'vms', 'clusters')),
    max        integer check (max >= 0),                    -- memory in GiB
    primary key (account_id, region_id, resource)
);

alter table enrolment_tokens
    add column id         bigint generated always as identity,
    add column created_by text not null default '',
    add column revoked_at timestamptz;
create unique index enrolment_tokens_id on enrolment_tokens (id);

alter table drifts drop constraint drifts_kind_check, add constraint drifts_kind_check check (kind in (
    'empty-report', 'foreign-card', 'foreign-vm', 'foreign-host', 'card-missing', 'unknown-model', 'card-elsewhere', 'vm-missing',
    'broken-report', 'retired-card'));

-- Prices by the hour; null: the console names none.
alter table offers
    add column hourly_price numeric(12, 4) check (hourly_price >= 0);
alter table vm_types
    add column hourly_price numeric(12, 4) check (hourly_price >= 0);

alter table events add column address text not null default ''; -- of the client that asked; empty: no person
create index events_by_card on events (card_id, id desc) where card_id is not null;
create index events_by_host on events (host_id, id desc) where host_id is not null;
create index events_by_actor on events (actor, id desc);
create index events_by_time on events (at, id);
create index events_by_family on events ((split_part(kind, '.', 1)), id desc);

-- Cards by zone and model as they were, one row a minute for two days and one
-- an hour after that.
create table capacity_samples (
    at          timestamptz not null,
    zone_id     text not null references zones (id),
    model_id    text not null,                               -- empty: unknown to the catalogue
    free        integer not null,
    held        integer not null,
    unavailable integer not null,
    primary key (at, zone_id, model_id)
);

-- +goose Down
drop table capacity_samples, limits;
drop index events_by_card, events_by_host, events_by_actor, events_by_time, events_by_family;
alter table events drop column address;
alter table vm_types drop column hourly_price;
alter table offers drop column hourly_price;
delete from drifts where kind = 'retired-card';
alter table drifts drop constraint drifts_kind_check, add constraint drifts_kind_check check (kind in (
    'empty-report', 'foreign-card', 'foreign-vm', 'foreign-host', 'card-missing', 'unknown-model', 'card-elsewhere', 'vm-missing', 'broken-report'));
alter table enrolment_tokens drop column id, drop column created_by, drop column revoked_at;
drop index accounts_by_name, accounts_by_text, accounts_name_once;
alter table accounts drop column suspended_at, drop column suspended_reason;
drop index gpus_by_account_state, gpus_by_account_zone, gpus_by_account_kind, vms_by_account_power, vms_by_account_type, vms_by_account_zone;
drop index operations_by_vm, operations_by_age, operations_by_state, operations_of_account, vms_counted, gpus_counted, gpus_by_text, vms_by_text, vms_to_resume;
alter table vms drop column resume;
-- +goose StatementBegin
create or replace function mirror_card_holder() returns trigger language plpgsql as $$
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
drop table holdings;
drop index cards_by_age, cards_by_zone, cards_by_model, cards_by_status, cards_by_serial, cards_by_place, cards_by_name, cards_by_text, cards_of_model, cards_held, cards_out, cards_counted;
alter table cards drop column status, drop column held;
update cards set condition = 'disabled' where condition = 'retired';
alter table cards
    drop constraint cards_retired_check, drop constraint cards_undo_check, drop constraint cards_condition_check,
    drop column driver, drop column vbios, drop column firmware, drop column parents, drop column problem,
    drop column condition_since, drop column condition_actor, drop column undo,
    add constraint cards_condition_check check (condition in ('ready', 'cleaning', 'quarantined', 'disabled', 'missing', 'needs_review'));
drop index hosts_by_name, hosts_by_zone, hosts_by_mode, hosts_by_text, hosts_leaving, hosts_unready;
alter table hosts drop column numa, drop column ready, drop column version, drop column mode_since, drop column mode_actor,
    drop column silent_since;
