-- no-transaction
-- Pages of the active and of the other products, whose totals are counted.
create index concurrently if not exists product_of_active
    on billing.product (account_id, active, created_at desc, id desc);
