-- Every record has a version, which counts the changes that its answer shows, and the time of the last one.
alter table support.status add column version bigint not null default 1;
alter table support.channel add column version bigint not null default 1;
alter table support.domain add column version bigint not null default 1;
alter table support.message
    add column version bigint not null default 1,
    -- Of rows that do not name it, long before they were made: their creation counts.
    add column updated_at timestamptz not null default 'epoch',
    -- What the version has counted of its mail: the queue knows how the mail stands, and may say the same twice.
    add column mail_status text collate "C" not null default 'queued';

-- How many events a ticket has had because time passed. They change nothing of the ticket, so its version does not count
-- them; the versions of its events count both.
alter table support.ticket add column timed_events bigint not null default 0;
