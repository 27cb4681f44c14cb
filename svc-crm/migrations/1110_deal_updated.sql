-- no-transaction
-- The list in the order of the last changes, and what was changed since a moment.
create index concurrently if not exists deal_updated
    on crm.deal (account_id, updated_at desc, id desc);
