-- no-transaction
-- The runs about a record.
create index concurrently if not exists run_about
    on automation.run (account_id, entity_id, created_at desc, id desc)
    where entity_id <> '';
