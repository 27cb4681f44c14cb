-- no-transaction
-- Tasks that are due at a moment.
create index concurrently if not exists task_due_at
    on work.task (account_id, deadline_at)
    where deadline_at is not null;
