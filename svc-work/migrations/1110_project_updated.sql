-- no-transaction
-- The list in the order of the last changes, and what was changed since a moment.
create index concurrently if not exists project_updated
    on work.project (account_id, updated_at desc, id desc);
