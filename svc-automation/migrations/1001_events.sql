-- The events that this service has heard of or that an integration fired, each id once.
create table event (
    account_id uuid not null,
    id uuid not null,
    type text not null,
    entity_type text not null,
    -- Ours are UUIDs, an integration's may be anything; empty when the event is about no record.
    entity_id text not null,
    -- The order among the events of one entity; null for an event that an integration fired.
    sequence bigint,
    -- JSON text of an object.
    data text not null,
    occurred_at timestamptz not null,
    received_at timestamptz not null,
    primary key (account_id, id)
);
