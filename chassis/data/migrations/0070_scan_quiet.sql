-- How long an account needs no turn: nothing that a scan looks for comes before `quiet_until`, as long as the account's log
-- ends at `quiet_position` and its time zone is `quiet_zone`. It holds for one `next_at` only, `quiet_next_at`, because the
-- release before sets another without these columns. Null, or not valid any more: the next turn is at `next_at`.
alter table scan_turn add column quiet_until timestamptz;
alter table scan_turn add column quiet_next_at timestamptz;
alter table scan_turn add column quiet_position bigint;
alter table scan_turn add column quiet_zone text;
