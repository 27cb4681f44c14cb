-- no-transaction
-- Pages of the payments of a type, whose total is counted.
create index concurrently if not exists payment_of_type
    on billing.payment (account_id, type, created_at desc, id desc);
