-- What the scans look through: tickets that somebody still has to do something about.
create index ticket_unsettled on support.ticket (account_id, id) where status not in ('solved', 'closed');
