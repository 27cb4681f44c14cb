-- How often a record was changed, counted from 1. Constant defaults: no row is written again, and the release before this
-- one, which does not know the columns, can still insert.
alter table run add column version bigint not null default 1;
alter table webhook_endpoint add column version bigint not null default 1;

-- A flow's version counts all of its changes now, and its definition stays the same in many of them: the one that counts
-- has the highest version that is not above the flow's. The release before looks for the very version of the flow. So
-- there is a copy for it, which goes after an hour.
alter table flow_version add column copied boolean not null default false;

-- Still without the check of the log, because the release before writes no entries for runs.
comment on table run is 'unaudited: everything that a run shows has an entry, see src/run/operations; renderings have none';
