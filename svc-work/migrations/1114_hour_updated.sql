-- no-transaction
-- The list in the order of the last changes, and what was changed since a moment.
create index concurrently if not exists hour_updated
    on work.hour (account_id, project_id, updated_at desc, id desc);
