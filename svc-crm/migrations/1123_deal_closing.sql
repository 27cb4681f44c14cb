-- no-transaction
-- Deals by the day on which they are expected to close.
create index concurrently if not exists deal_closing
    on crm.deal (account_id, expected_close_date desc, id desc);
