-- no-transaction
-- Pages of the subscriptions with a status, whose total is counted.
create index concurrently if not exists subscription_of_status
    on billing.subscription (account_id, status, created_at desc, id desc);
