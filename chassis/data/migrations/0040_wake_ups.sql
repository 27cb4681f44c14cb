-- Accounts that may have background work, told by the process that committed to the others. Only hints, so not logged:
-- what is lost in a crash is found by the next look at all accounts. Stays on one node.
create unlogged table wake_up (
    process uuid not null,
    number bigint not null,
    accounts uuid[] not null,
    posted_at timestamptz not null,
    primary key (process, number)
);

-- The accounts of a distributed database, kept on one node to be listed while another is away. A copy.
create table known_account (
    account_id uuid primary key
);
