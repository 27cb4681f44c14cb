-- no-transaction
-- Pages of the projects with a status, whose total is counted.
create index concurrently if not exists project_of_status
    on work.project (account_id, status, created_at desc, id desc);
