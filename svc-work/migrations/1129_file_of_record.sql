-- no-transaction
-- The files of a record.
create index concurrently if not exists file_of_record
    on work.file (account_id, source_id, created_at desc, id desc)
    where deleted_at is null and source_id is not null;
