-- no-transaction
-- The list in the order of the last changes, and what was changed since a moment.
create index concurrently if not exists ticket_updated
    on support.ticket (account_id, updated_at desc, id desc);
