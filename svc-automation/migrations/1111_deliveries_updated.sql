-- When a delivery was last changed. Of rows that do not name it, long before they were made: their creation counts.
alter table webhook_delivery add column updated_at timestamptz not null default 'epoch';
