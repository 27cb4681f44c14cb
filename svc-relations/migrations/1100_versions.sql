-- What the answers show of every record: how many changes it has had, counted from 1. Clients and suppliers have it
-- already, and all of them have the time of the last one.
alter table relations.custom_field add column version bigint not null default 1;
