-- Automation is told what a key or a credential may do when that has become less: its webhook endpoints get no more than
-- that. Null when there is nothing to tell.
alter table api_key add column tell_at timestamptz;
alter table credential add column tell_at timestamptz;

-- Of those of before everything is told once: their endpoints have not been bound to any scopes yet.
update api_key set tell_at = created_at;
update credential set tell_at = created_at;

create index api_key_to_tell on api_key (account_id, tell_at) where tell_at is not null;
create index credential_to_tell on credential (account_id, tell_at) where tell_at is not null;
