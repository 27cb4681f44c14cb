-- no-transaction
-- Payments by their own ids, in which order they are compared with the log.
create index concurrently if not exists payment_id on billing.payment (account_id, id);
