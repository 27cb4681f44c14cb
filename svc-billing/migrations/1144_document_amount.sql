-- no-transaction
-- Documents by their total.
create index concurrently if not exists document_amount
    on billing.document (account_id, kind, total_incl desc, id desc);
