-- no-transaction
-- The list in the order of the last changes, and what was changed since a moment. It includes the columns of the
-- expression, because Postgres scans nothing but the index only if that has all columns that the query names.
create index concurrently if not exists file_updated
    on work.file (account_id, (greatest(updated_at, created_at)) desc, id desc) include (updated_at, created_at)
    where deleted_at is null;
