-- no-transaction
-- Payments by their day.
create index concurrently if not exists payment_dated
    on billing.payment (account_id, date desc, id desc);
