-- Records of other services that nothing here may refer to any more, because they are being removed. Each row of an account
-- has all of them: a write that refers to such records locks one row, so that concurrent writers seldom wait for each other,
-- and whoever withdraws a record locks all rows, and so waits for the writes before.
create table reference_guard (
    account_id uuid not null,
    slot smallint not null,
    -- Side by side: a record, what names its withdrawal, and when that ends.
    records uuid[] not null,
    names uuid[] not null,
    ends timestamptz[] not null,
    -- The latest of the ends.
    last_end timestamptz not null,
    -- Null, and so refused, of a write that refers to one of the records.
    allowed boolean not null,
    primary key (account_id, slot)
) with (fillfactor = 50);

comment on table reference_guard is 'unaudited: what nothing may refer to for a moment';
