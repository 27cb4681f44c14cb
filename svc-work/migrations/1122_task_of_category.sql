-- no-transaction
-- Pages of the tasks of a category, whose total is counted.
create index concurrently if not exists task_of_category
    on work.task (account_id, category, created_at desc, id desc);
