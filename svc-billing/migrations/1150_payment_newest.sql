-- no-transaction
-- Pages of the payments on all invoices, whose total is counted.
create index concurrently if not exists payment_newest
    on billing.payment (account_id, created_at desc, id desc);
