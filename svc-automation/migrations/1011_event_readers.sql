-- Who may read which events.

-- The key that fired an event; empty for those of services.
alter table event add column actor text not null default '';

alter table webhook_endpoint
    -- The key that the endpoint belongs to; empty for none.
    add column key_id text not null default '',
    -- What it may read at most: the scopes of whoever made it. Null: not known, or everything.
    add column scopes text[];

-- What keys may do, as the gateway told it: after a key was narrowed or has ended. One that is not here has its scopes still.
create table key_scopes (
    account_id uuid not null,
    key_id text not null,
    scopes text[] not null,
    updated_at timestamptz not null,
    constraint key_scopes_key primary key (account_id, key_id)
);
comment on table key_scopes is 'unaudited: what the gateway told of keys, which keeps its own log of them';

-- Endpoints of before belong to the key that made them, where the log still knows it.
update webhook_endpoint set key_id = coalesce((
    select entry.actor from audit entry
    where entry.account_id = webhook_endpoint.account_id and entry.entity_type = 'webhook_endpoint'
        and entry.entity_id = webhook_endpoint.id::text
    order by entry.at, entry.id limit 1), '');
