-- no-transaction
-- Pages of the completed tasks, whose total is counted.
create index concurrently if not exists task_completed
    on work.task (account_id, created_at desc, id desc)
    where completed_at is not null;
