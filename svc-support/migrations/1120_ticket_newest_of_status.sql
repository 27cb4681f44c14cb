-- no-transaction
-- Pages of the tickets with a status, whose total is counted.
create index concurrently if not exists ticket_newest_of_status
    on support.ticket (account_id, status, created_at desc, id desc);
