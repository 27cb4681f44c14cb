-- no-transaction
-- Pages of the tickets of a channel, whose total is counted.
create index concurrently if not exists ticket_of_channel
    on support.ticket (account_id, channel_id, created_at desc, id desc);
