-- no-transaction
-- The tasks of a project.
create index concurrently if not exists task_of_project
    on work.task (account_id, project_id, created_at desc, id desc)
    where project_id is not null;
