-- no-transaction
-- Pages of the tickets from a source, whose total is counted.
create index concurrently if not exists ticket_of_source
    on support.ticket (account_id, source, created_at desc, id desc);
