-- no-transaction
-- The tickets of a client.
create index concurrently if not exists ticket_of_client
    on support.ticket (account_id, client_id, created_at desc, id desc)
    where client_id is not null;
