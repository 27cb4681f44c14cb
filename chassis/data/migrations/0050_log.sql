-- One log for each account of what was changed, by whom and when, with the record after the change and the event that
-- the change tells. It takes the place of `audit` and `outbox`, which the release before this one may still write.
create table log (
    account_id uuid not null,
    -- Contains the time. Also the id of the event.
    id uuid not null,
    at timestamptz not null,
    actor text not null,
    request_id text not null,
    method text not null,
    kind text collate "C" not null,
    record_id text collate "C" not null,
    -- Counts the changes of the record. Entries of before the log count 0, -1, -2, … into the past.
    version bigint not null,
    -- `created`, `updated` or `deleted`; null: the entry only tells an event.
    change text,
    -- The record after the change: the name of a protobuf message and its bytes. The bytes are forgotten some day, their
    -- SHA-256 is not.
    message text not null,
    image bytea,
    image_hash bytea,
    -- The type of the event, its place among the record's events, its data, and how many events led to it.
    event text collate "C",
    sequence bigint,
    data text,
    depth integer not null default 0,
    primary key (account_id, id)
);
create unique index log_of_record on log (account_id, record_id, kind, version) where change is not null;

-- Entries without a position.
create table pending (
    account_id uuid not null,
    id uuid not null,
    at timestamptz not null,
    primary key (account_id, id)
);

-- The order of the entries: 1, 2, 3, … without gaps. The hash covers the entry and the hash before it.
create table feed (
    account_id uuid not null,
    position bigint not null,
    id uuid not null,
    hash bytea not null,
    primary key (account_id, position)
);

-- The end of each account's order.
create table feed_head (
    account_id uuid primary key,
    position bigint not null,
    hash bytea not null,
    at timestamptz not null
) with (fillfactor = 50);

-- How far each listener has read.
create table reader (
    account_id uuid not null,
    name text collate "C" not null,
    position bigint not null,
    -- The last position with an event for it.
    target bigint not null,
    -- When the first event that it has not read happened.
    since timestamptz not null,
    primary key (account_id, name)
) with (fillfactor = 50);
create index reader_behind on reader (account_id, name) where target > position;

-- Events that a listener has refused, and later ones of the same record. The listener's position is beyond them, or
-- skips them.
create table reader_exception (
    account_id uuid not null,
    reader text collate "C" not null,
    position bigint not null,
    -- The log entry.
    id uuid not null,
    kind text collate "C" not null,
    record_id text collate "C" not null,
    at timestamptz not null,
    attempts integer not null,
    next_at timestamptz not null,
    dead_at timestamptz,
    last_error text not null,
    primary key (account_id, reader, position)
);
create index reader_exception_of_record on reader_exception (account_id, reader, kind, record_id, position)
    where dead_at is null;

-- How far this service has read the logs of others.
create table received (
    account_id uuid not null,
    source text collate "C" not null,
    position bigint not null,
    -- The position before the last change of the row.
    before bigint not null,
    primary key (account_id, source)
) with (fillfactor = 50);

comment on table log is 'unaudited: the log itself';
comment on table pending is 'unaudited: the log itself';
comment on table feed is 'unaudited: the log itself';
comment on table feed_head is 'unaudited: the log itself';
comment on table reader is 'unaudited: how far listeners have read';
comment on table reader_exception is 'unaudited: what listeners have refused';
comment on table received is 'unaudited: how far this service has read';

-- The log is written and read by those who serve; only the owner of the schema forgets images.
do $$
declare
    other text;
    kept text;
begin
    for other, kept in
        select distinct grantee, table_name from information_schema.role_table_grants
        where table_schema = current_schema() and table_name in ('log', 'feed') and grantee <> current_user
            and privilege_type in ('UPDATE', 'DELETE', 'TRUNCATE')
    loop
        execute format('revoke update, delete, truncate on %I from %I', kept, other);
    end loop;
end
$$;
