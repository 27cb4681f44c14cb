-- Files whose bytes are kept before the transaction that lists them: noted first, and forgotten in that transaction. What
-- is still here after a day was never listed, and its bytes go.
create table file_write (
    account_id uuid not null,
    -- As other services are told of it: service, area and name.
    key text collate "C" not null,
    began_at timestamptz not null,
    -- The bytes are being removed: it can no longer be listed.
    abandoned boolean not null default false,
    primary key (account_id, key)
);

comment on table file_write is 'unaudited: files on their way';
