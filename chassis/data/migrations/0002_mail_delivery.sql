-- Mail is put together when it is delivered: what it is made of is kept instead of the finished text. Rows of before
-- keep their finished text. Of a sent mail both are forgotten after a while.
alter table mail
    alter column message drop not null,
    add column content bytea,
    -- Who has it already.
    add column accepted text[] not null default '{}',
    -- Who cannot have it: what the server said, by address.
    add column refused jsonb not null default '{}';

-- What became of the mails about a thing.
create index mail_about on mail (account_id, reference, created_at);
create index mail_kept on mail (account_id, done_at)
    where status = 'sent' and (message is not null or content is not null);

-- Keys that mail is signed with (DKIM), one for each domain that an account sends from.
create table mail_key (
    account_id uuid not null,
    domain text not null,
    selector text not null,
    private_key text not null,
    created_at timestamptz not null,
    primary key (account_id, domain)
);
