-- no-transaction
-- Pages of the credit invoices, whose total is counted.
create index concurrently if not exists document_credit
    on billing.document (account_id, kind, created_at desc, id desc)
    where credits is not null;
