-- no-transaction
-- Pages of the subscriptions with a term, whose total is counted.
create index concurrently if not exists subscription_of_term
    on billing.subscription (account_id, term, created_at desc, id desc);
