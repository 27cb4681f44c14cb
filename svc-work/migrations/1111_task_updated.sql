-- no-transaction
-- The list in the order of the last changes, and what was changed since a moment.
create index concurrently if not exists task_updated
    on work.task (account_id, updated_at desc, id desc);
