-- no-transaction
-- The list in the order of the last changes, and what was changed since a moment.
create index concurrently if not exists payment_updated
    on billing.payment (account_id, updated_at desc, id desc);
