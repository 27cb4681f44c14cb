-- How many events in a row led to the call that an event tells of.
alter table outbox add column depth integer not null default 0;
