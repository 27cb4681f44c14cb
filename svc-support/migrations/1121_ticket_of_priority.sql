-- no-transaction
-- Pages of the tickets of a priority, whose total is counted.
create index concurrently if not exists ticket_of_priority
    on support.ticket (account_id, priority, created_at desc, id desc);
