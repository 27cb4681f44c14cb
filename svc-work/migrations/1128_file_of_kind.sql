-- no-transaction
-- Pages of the files of a kind, whose total is counted.
create index concurrently if not exists file_of_kind
    on work.file (account_id, source_type, created_at desc, id desc)
    where deleted_at is null;
