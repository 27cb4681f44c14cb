-- What the scans ask of a client or a deal: whether it has an open task, and when the last one was completed.
create index task_of_client on work.task (account_id, client_id, completed_at) where client_id is not null;
create index task_of_deal on work.task (account_id, deal_id, completed_at) where deal_id is not null;
