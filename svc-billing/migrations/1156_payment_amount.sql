-- no-transaction
-- Payments by their amount.
create index concurrently if not exists payment_amount
    on billing.payment (account_id, amount desc, id desc);
