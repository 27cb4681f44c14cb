create table webhook_endpoint (
    account_id uuid not null,
    id uuid not null,
    url text not null,
    description text not null,
    -- Empty: all events.
    types text[] not null,
    active boolean not null,
    notify_email text not null,
    secret bytea not null,
    -- The one before; signs along until then.
    old_secret bytea,
    old_secret_until timestamptz,
    failing_since timestamptz,
    disabled_reason text not null default '',
    created_at timestamptz not null,
    updated_at timestamptz not null,
    constraint webhook_endpoint_key primary key (account_id, id)
);
create index webhook_endpoint_newest on webhook_endpoint (account_id, created_at desc, id desc);

create table webhook_delivery (
    account_id uuid not null,
    id uuid not null,
    endpoint_id uuid not null,
    event_id uuid,
    type text not null,
    -- The body, the same at every attempt.
    payload text not null,
    status text collate "C" not null
        constraint webhook_delivery_status_known check (status in ('pending', 'delivered', 'failed')),
    attempts integer not null default 0,
    response_status integer,
    error text not null default '',
    next_at timestamptz,
    created_at timestamptz not null,
    delivered_at timestamptz,
    constraint webhook_delivery_key primary key (account_id, id)
);
create index webhook_delivery_newest on webhook_delivery (account_id, endpoint_id, created_at desc, id desc);
create index webhook_delivery_due on webhook_delivery (account_id, next_at, id) where next_at is not null;
create index webhook_delivery_old on webhook_delivery (account_id, created_at);

-- Signs the requests of steps.
create table signing_secret (
    account_id uuid not null,
    secret bytea not null,
    old_secret bytea,
    old_secret_until timestamptz,
    constraint signing_secret_key primary key (account_id)
);
