-- Each endpoint is a queue of its own. One that does not answer in time is left alone with everything that it is still to be
-- told.
alter table webhook_endpoint
    -- Attempts in a row that had no answer in time.
    add column unanswered integer not null default 0,
    -- Until when it is left alone.
    add column retry_at timestamptz;

-- What an endpoint is told next.
create index webhook_delivery_queue on webhook_delivery (account_id, endpoint_id, next_at, id) where next_at is not null;
