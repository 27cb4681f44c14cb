-- no-transaction
-- Pages of the deals from a source, whose total is counted.
create index concurrently if not exists deal_of_source
    on crm.deal (account_id, source, created_at desc, id desc);
