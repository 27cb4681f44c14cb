-- How far the log of an account was compared with its records. An account without a row was never compared.
create table snapshot (
    account_id uuid primary key,
    -- Where the pass is: the kind of records, and the last one that was compared. Null: no pass is under way.
    kind text collate "C",
    after text collate "C" not null,
    -- What entries of `audit` up to this id tell was stored before the last pass began.
    seen uuid not null,
    -- When the next pass can begin, if programs of the release before have written to `audit` since.
    next_at timestamptz not null,
    began_at timestamptz not null,
    ended_at timestamptz,
    -- How many entries the last pass has written.
    logged bigint not null
);

comment on table snapshot is 'unaudited: how far the log was compared';
