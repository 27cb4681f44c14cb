-- no-transaction
-- Pages of the deals of a priority, whose total is counted.
create index concurrently if not exists deal_of_priority
    on crm.deal (account_id, priority, created_at desc, id desc);
