-- Where things are, what is offered there, and who may have it.
-- +goose Up

create table regions (
    id   text primary key check (id ~ '^[a-z0-9][a-z0-9-]{0,62}$')
);

create table zones (
    id        text primary key check (id ~ '^[a-z0-9][a-z0-9-]{0,62}$'),
    region_id text not null references regions (id),
    storage   text not null check (storage in ('shared', 'local'))
);
create index on zones (region_id);

-- A catalogue entry. Its memory is data, never read out of a name.
create table models (
    id            text primary key check (id ~ '^[a-z0-9][a-z0-9-]{0,62}$'),
    architecture  text    not null default '',
    vram_mib      integer check (vram_mib > 0),      -- null: no source gives it
    memory_gb     integer check (memory_gb > 0),     -- as its maker names it, 10^9 bytes; null: unknown
    memory_type   text    not null default '',       -- 'HBM3'
    int8_tops     integer check (int8_tops > 0),
    use_cases     text[]  not null default '{}',     -- keys of translated names
    resource_name text    not null default '',       -- of the Kubernetes device plugin
    driver_branch text    not null default ''        -- the oldest NVIDIA branch that knows the model
);

-- What a card says of itself leads to its model by this table alone.
create table model_pci_ids (
    pci_id   text primary key check (pci_id ~ '^[0-9a-f]{4}:[0-9a-f]{4}$'), -- vendor:device
    model_id text not null references models (id)
);

-- A model offered as flexible GPU in a region. A null limit or an empty
-- generation list does not bind.
create table offers (
    model_id       text not null references models (id),
    region_id      text not null references regions (id),
    max_vcores     integer check (max_vcores > 0),
    max_memory_mib integer check (max_memory_mib > 0),
    generations    text[] not null default '{}',     -- oldest first
    primary key (model_id, region_id)
);

-- Named VM types. One with GPUs built in is an inference type.
create table vm_types (
    name        text primary key check (name ~ '^[a-z0-9][a-z0-9.-]{0,62}$'),
    vcores      integer not null check (vcores > 0),
    memory_mib  integer not null check (memory_mib > 0),
    generation  text    not null default '',         -- empty: any
    gpu_model   text references models (id),
    gpu_count   integer not null default 0 check (gpu_count >= 0),
    position    integer not null,
    check ((gpu_model is null) = (gpu_count = 0))
);

create table images (
    id       text primary key check (id ~ '^[a-z0-9][a-z0-9.-]{0,62}$'),
    name     text    not null,
    position integer not null
);

create table accounts (
    id         text primary key check (id ~ '^acc-[0-9a-f]{8}$'),
    name       text not null check (length(name) between 1 and 100),
    created_at timestamptz not null
);

create table users (
    id            text primary key check (id ~ '^usr-[0-9a-f]{8}$'),
    email         text not null check (length(email) between 3 and 254),
    password_hash text not null,                     -- argon2id, PHC string
    admin         boolean not null default false,    -- of the platform
    locale        text not null default '',          -- empty: by browser
    created_at    timestamptz not null
);
create unique index users_email on users (lower(email));

create table members (
    account_id text not null references accounts (id),
    user_id    text not null references users (id),
    role       text not null check (role in ('owner', 'member', 'viewer')),
    primary key (account_id, user_id)
);
create index on members (user_id);

-- The cookie's value is never stored, only its SHA-256.
create table sessions (
    token_hash bytea primary key,
    user_id    text not null references users (id),
    account_id text references accounts (id),        -- the account looked at
    region_id  text references regions (id),         -- the region looked at; null: all
    created_at timestamptz not null,
    expires_at timestamptz not null
);
create index on sessions (user_id);
create index on sessions (expires_at);

-- Failed sign-ins by e-mail as typed, to slow guessing down.
create table sign_in_failures (
    email text        not null,
    at    timestamptz not null
);
create index on sign_in_failures (email, at);

-- How many open GPUs of a model an account may have in a region. No row: none.
-- A null max is unlimited, 0 is none.
create table quotas (
    account_id text not null references accounts (id),
    region_id  text not null references regions (id),
    model_id   text not null references models (id),
    max        integer check (max >= 0),
    primary key (account_id, region_id, model_id)
);

-- +goose Down
drop table quotas, sign_in_failures, sessions, members, users, accounts,
    images, vm_types, offers, model_pci_ids, models, zones, regions;
