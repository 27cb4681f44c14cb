-- Where deep pages of a list begin: runs of consecutive entries in the order (created_at, id). A segment ends with the entry
-- (last_created_at, last_id), which may be gone by now, and begins after the segment before it. The newest entries are in no
-- segment. Whoever adds or removes an entry within a segment changes `entries` in the same transaction. Segments of level 1
-- each have the entries of several consecutive ones of level 0, so that finding a position reads few rows.
create table list_segment (
    account_id uuid not null,
    list text collate "C" not null,
    level smallint not null,
    last_created_at timestamptz not null,
    last_id uuid not null,
    entries bigint not null,
    primary key (account_id, list, level, last_created_at, last_id)
) with (fillfactor = 50);

-- Lists whose segments are right, and if the list is that of a filter, its counter as well. Programs of the release before
-- keep neither: what entries of `audit` after this id tell is not in them.
create table prepared_list (
    account_id uuid not null,
    list text collate "C" not null,
    seen uuid not null,
    primary key (account_id, list)
);

-- Grows whenever the segments of the list get other ends. A write that has read the ends before is refused.
alter table total add column epoch bigint not null default 0;

comment on table list_segment is 'unaudited: how many entries parts of a list have';
comment on table prepared_list is 'unaudited: which lists have segments';
