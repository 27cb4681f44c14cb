-- no-transaction
-- Pages of the payments with a status, whose total is counted.
create index concurrently if not exists payment_of_status
    on billing.payment (account_id, status, created_at desc, id desc);
