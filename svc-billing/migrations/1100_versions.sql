-- Documents have a version; payments count their changes from 1 too.
alter table billing.payment add column version bigint not null default 1;

-- The version that the entry of an online payment had when it was removed from its invoice; 0 otherwise. Money that arrives
-- later brings the entry back, and it goes on counting, so that no version of it means two things.
alter table billing.online_payment add column removed_version bigint not null default 0;

-- How many events time alone has caused. They need a place in the order of the document's events, but change nothing of it.
alter table billing.document add column time_events bigint not null default 0;

-- The state of the mail as the document's version shows it, so that an attempt that changes nothing of it is no change.
alter table billing.document_history add column mail_status text collate "C";
alter table billing.document_history add column mail_error text;
