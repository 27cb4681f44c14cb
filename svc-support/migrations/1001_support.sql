-- Where tickets can stand. Tickets know a status by its name, which never changes.
create table support.status (
    account_id uuid not null,
    id uuid not null,
    name text collate "C" not null,
    active boolean not null,
    position integer not null,
    created_at timestamptz not null,
    updated_at timestamptz not null,
    constraint status_key primary key (account_id, id),
    constraint status_name unique (account_id, name)
);

-- The ways that mail comes in and goes out.
create table support.channel (
    account_id uuid not null,
    id uuid not null,
    name text not null,
    -- In lower case; '' when none is configured.
    email text collate "C" not null,
    from_email text not null,
    from_name text not null,
    -- What tells its inbound address from others.
    inbound_key bytea not null,
    forwarding_emails text[] not null,
    active boolean not null,
    position integer not null,
    created_at timestamptz not null,
    updated_at timestamptz not null,
    constraint channel_key primary key (account_id, id)
);

create unique index channel_email on support.channel (account_id, email) where email <> '';

create table support.ticket (
    account_id uuid not null,
    id uuid not null,
    version bigint not null,
    number text collate "C" not null,
    subject text not null,
    status text collate "C" not null,
    priority smallint not null,
    client_name text not null,
    client_email text not null,
    client_id uuid,
    source text not null,
    channel_id uuid,
    -- What tells its reply address from others: whoever knows it can write to the ticket.
    reply_secret bytea not null,
    message_count bigint not null,
    last_message_at timestamptz,
    -- What a search looks through, in lower case.
    search_text text not null,
    created_at timestamptz not null,
    updated_at timestamptz not null,
    closed_at timestamptz,
    constraint ticket_key primary key (account_id, id),
    constraint ticket_number unique (account_id, number),
    constraint ticket_reply_secret unique (account_id, reply_secret)
);

create index ticket_newest on support.ticket (account_id, created_at desc, id desc);
create index ticket_of_status on support.ticket (account_id, status);
create index ticket_search on support.ticket using gin (account_id, search_text public.gin_trgm_ops);

create table support.message (
    account_id uuid not null,
    id uuid not null,
    ticket_id uuid not null,
    inbound boolean not null,
    note boolean not null,
    body text not null,
    html text not null,
    author_name text not null,
    author_email text not null,
    author_user_id bigint,
    recipients text[] not null,
    cc text[] not null,
    -- Of the mail that it is or was sent as, without angle brackets; '' when there is none.
    message_id text collate "C" not null,
    -- The mail in the queue that it was sent as.
    mail_id uuid,
    -- Id, name, content_type and size of each.
    attachments jsonb not null,
    -- Bytes of body and html, so that a list knows how much it shows.
    size integer not null,
    created_at timestamptz not null,
    constraint message_key primary key (account_id, id),
    constraint message_ticket foreign key (account_id, ticket_id) references support.ticket (account_id, id)
);

create index message_of_ticket on support.message (account_id, ticket_id, created_at, id);
-- No mail is taken in twice, and none of our own at all.
create unique index message_once on support.message (account_id, message_id) where message_id <> '';

-- The domains that an account sends mail from, with the key that it is signed with.
create table support.domain (
    account_id uuid not null,
    -- The name that addresses end with: subdomain and domain.
    host text collate "C" not null,
    domain text not null,
    subdomain text not null,
    receiving boolean not null,
    verified boolean not null,
    selector text not null,
    private_key text not null,
    -- The purposes of the records that the last look found.
    found text[] not null,
    checked_at timestamptz,
    created_at timestamptz not null,
    updated_at timestamptz not null,
    constraint domain_key primary key (account_id, host)
);

-- Whose mail comes in for a domain: a mail brings no account, so this is the one table that finds one. Small, and the
-- same for everyone (a reference table where the others are distributed); only verified domains are in it, each once.
create table support.mail_route (
    host text collate "C" primary key,
    account_id uuid not null,
    created_at timestamptz not null
);
