-- no-transaction
-- Tasks that are due on a day.
create index concurrently if not exists task_due_on
    on work.task (account_id, deadline_on)
    where deadline_on is not null;
