-- no-transaction
-- Payments by their references, whichever invoice they are on.
create index concurrently if not exists payment_reference
    on billing.payment (account_id, external_id)
    where external_id <> '';
