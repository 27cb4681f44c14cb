-- no-transaction
-- Pages of the open tasks, whose total is counted.
create index concurrently if not exists task_open
    on work.task (account_id, created_at desc, id desc)
    where completed_at is null;
