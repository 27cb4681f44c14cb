-- no-transaction
-- The list in the order of the last changes, and what was changed since a moment.
create index concurrently if not exists document_updated
    on billing.document (account_id, kind, updated_at desc, id desc);
