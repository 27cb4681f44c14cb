-- What the answers show of every record: how many changes it has had, counted from 1. Deals have it already, and all of
-- them have the time of the last one.
alter table crm.pipeline add column version bigint not null default 1;
alter table crm.phase add column version bigint not null default 1;
alter table crm.source add column version bigint not null default 1;

-- How many events a deal has had because time passed. They change nothing of the deal, so its version does not count
-- them; the versions of its events count both.
alter table crm.deal add column timed_events bigint not null default 0;
