-- Domains are looked at again by themselves: when next, and since when a verified one lacks what it needs. Those that are
-- there already are due at once.
alter table support.domain
    add column check_at timestamptz not null default '1970-01-01T00:00:00Z',
    add column missing_since timestamptz;
