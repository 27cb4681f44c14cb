-- no-transaction
-- The list in the order of the last changes, and what was changed since a moment.
create index concurrently if not exists run_updated
    on automation.run (account_id, updated_at desc, id desc);
