-- The operator's side: agents, hosts and cards.
-- +goose Up

-- The console's own certificate authority; every replica signs with it.
create table authorities (
    id              integer primary key check (id = 1),
    certificate_pem text  not null,
    key_pem         text  not null,
    created_at      timestamptz not null
);

create table agents (
    id               text primary key check (id ~ '^agent-[0-9a-f]{8}$'),
    zone_id          text not null references zones (id),
    certificate_hash bytea not null,                 -- SHA-256 of the newest certificate
    former_hash      bytea,                          -- and of the one before, in case the answer with the newest was lost
    expires_at       timestamptz not null,
    revoked_at       timestamptz,
    version          text   not null default '',
    driver           text   not null default '',
    -- (epoch, sequence) of the last report that was taken.
    epoch            bigint not null default 0,
    sequence         bigint not null default 0,
    reported_at      timestamptz,
    -- The desired state's revision, and the one the agent says it reached.
    desired_revision bigint not null default 1,
    reached_revision bigint not null default 0,
    created_at       timestamptz not null
);

create table enrolment_tokens (
    token_hash bytea primary key,
    zone_id    text not null references zones (id),
    created_at timestamptz not null,
    expires_at timestamptz not null,
    agent_id   text references agents (id)           -- who used it; a token works once
);

create table hosts (
    id              text primary key check (id ~ '^host-[0-9a-f]{8}$'),
    agent_id        text not null references agents (id),
    zone_id         text not null references zones (id),
    name            text not null check (length(name) between 1 and 100),
    generation      text not null,                   -- of the CPUs
    vcores          integer not null check (vcores >= 0),
    memory_mib      bigint  not null check (memory_mib >= 0),
    kernel          text  not null default '',
    findings        jsonb not null default '[]',     -- readiness, as the agent reported it
    mode            text  not null default 'accepting' check (mode in ('accepting', 'draining', 'maintenance')),
    mode_reason     text  not null default '',
    reported_at     timestamptz not null,            -- last mention in any report that was taken
    confirmed_until timestamptz not null,            -- a full report vouches for the host until then
    created_at      timestamptz not null,
    unique (agent_id, name)
);
create index on hosts (zone_id, name);

create table cards (
    id               text primary key check (id ~ '^card-[0-9a-f]{8}$'),
    identity         text not null unique,           -- serial, UUID, or vendor:device:subsystem at host and slot
    key              text not null,                  -- what the agent calls it
    host_id          text not null references hosts (id),
    zone_id          text not null references zones (id),
    model_id         text references models (id),    -- null: its PCI ids are unknown
    vendor_id        text not null,
    device_id        text not null,
    subsystem_id     text not null default '',
    serial           text not null default '',
    uuid             text not null default '',
    pci_address      text not null,                  -- an attribute, never the identity
    iommu_group      integer,
    numa_node        integer,
    functions        jsonb not null default '[]',
    condition        text  not null check (condition in ('ready', 'cleaning', 'quarantined', 'disabled', 'missing', 'needs_review')),
    condition_reason text  not null default '',
    missing_since    timestamptz,                    -- a full report of its host did not list it
    last_seen_at     timestamptz not null,
    -- The number of the newest cleaning order, and the account whose data may
    -- still be on the card. Cleaning clears it.
    clean_order      bigint not null default 0,
    used_by          text references accounts (id),
    gpu_id           text,                           -- the open GPU on it; kept by a trigger on gpus
    created_at       timestamptz not null,
    unique (host_id, key),
    check (condition <> 'ready' or model_id is not null)
);
create index on cards (host_id);
-- What may be given out, found without looking at what is held.
create index cards_free on cards (zone_id, model_id, host_id) where gpu_id is null and condition = 'ready' and missing_since is null;
create index cards_cleaning on cards (host_id) where condition = 'cleaning';

-- Where reality and the books differ. A row stays until the difference is gone.
create table drifts (
    agent_id   text not null references agents (id),
    kind       text not null check (kind in ('empty-report', 'foreign-card', 'foreign-vm', 'foreign-host', 'card-missing', 'unknown-model', 'card-elsewhere', 'vm-missing', 'broken-report')),
    subject    text not null,                        -- host, card or VM it is about
    detail     text not null default '',
    first_seen timestamptz not null,
    last_seen  timestamptz not null,
    primary key (agent_id, kind, subject)
);

-- +goose Down
drop table drifts, cards, hosts, enrolment_tokens, agents, authorities;
