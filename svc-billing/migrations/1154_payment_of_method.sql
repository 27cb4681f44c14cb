-- no-transaction
-- Pages of the payments by a method, whose total is counted.
create index concurrently if not exists payment_of_method
    on billing.payment (account_id, method, created_at desc, id desc);
