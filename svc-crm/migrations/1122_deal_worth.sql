-- no-transaction
-- Deals by their amount.
create index concurrently if not exists deal_worth
    on crm.deal (account_id, amount desc, id desc);
