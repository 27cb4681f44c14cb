-- no-transaction
-- Pages of the drafts, whose total is counted.
create index concurrently if not exists document_unfinished
    on billing.document (account_id, kind, created_at desc, id desc)
    where not is_final;
