-- What every service keeps beside its own tables. Runs in the service's own schema.

-- The accounts this service was told of.
create table account (
    account_id uuid primary key,
    name text not null,
    country text not null,
    timezone text not null,
    currency text not null,
    created_at timestamptz not null,
    updated_at timestamptz not null
);

-- One row for each idempotency key in use. The unique insert is the queue: a twin waits for the first to end.
create table idempotency (
    account_id uuid not null,
    route text not null,
    key text not null,
    fingerprint bytea not null,
    response bytea,
    created_at timestamptz not null,
    primary key (account_id, route, key)
);

-- Events that a listener has not taken yet. The key is the order of delivery: per entity, by sequence.
create table outbox (
    account_id uuid not null,
    listener text not null,
    entity_type text not null,
    entity_id uuid not null,
    sequence bigint not null,
    id uuid not null,
    type text not null,
    data text not null,
    occurred_at timestamptz not null,
    attempts integer not null default 0,
    next_at timestamptz not null,
    dead_at timestamptz,
    last_error text not null default '',
    primary key (account_id, listener, entity_type, entity_id, sequence)
);

-- How many entries a list has. Several slots, so that writers rarely meet; by day of creation, so that a deep page can
-- start near its place. The bucket 0001-01-01 holds the sum of all days.
create table total (
    account_id uuid not null,
    list text not null,
    bucket date not null,
    slot smallint not null,
    entries bigint not null,
    primary key (account_id, list, bucket, slot)
) with (fillfactor = 50);

-- Numbers without gaps: the row is locked until the transaction that took a number ends.
create table counter (
    account_id uuid not null,
    name text not null,
    value bigint not null,
    primary key (account_id, name)
) with (fillfactor = 50);

-- Who works on which part of the background work. The fence grows with every change of owner.
create table lease (
    worker text not null,
    partition smallint not null,
    owner uuid not null,
    until timestamptz not null,
    fence bigint not null,
    primary key (worker, partition)
);

-- The processes that want a share of a worker's partitions, with or without one.
create table replica (
    worker text not null,
    owner uuid not null,
    until timestamptz not null,
    primary key (worker, owner)
);

-- Mail that is to be delivered, and what became of it.
create table mail (
    account_id uuid not null,
    id uuid not null,
    sender text not null,
    recipients text[] not null,
    message bytea not null,
    reference text not null,
    status text not null,
    attempts integer not null default 0,
    next_at timestamptz not null,
    last_error text not null default '',
    created_at timestamptz not null,
    done_at timestamptz,
    primary key (account_id, id)
);
create index mail_waiting on mail (account_id, next_at) where status = 'queued';
