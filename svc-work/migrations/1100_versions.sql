-- How often a record was changed, counted from 1. Constant defaults: no row is written again, and the release before this
-- one, which does not know the columns, can still insert.
alter table work.hour add column version bigint not null default 1;
alter table work.task add column version bigint not null default 1;
alter table work.note add column version bigint not null default 1;
alter table work.file add column version bigint not null default 1;
-- Of rows that do not name it, long before they were made: their creation counts.
alter table work.file add column updated_at timestamptz not null default 'epoch';
