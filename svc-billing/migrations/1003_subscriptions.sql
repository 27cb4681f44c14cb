-- Recurring invoices. Texts that were never set are ''.
create table billing.subscription (
    account_id uuid not null,
    id uuid not null,
    number text collate "C" not null,
    title text not null,
    client_id uuid,
    -- In lower case, a line each: what a search looks through.
    client_names text not null,
    status text collate "C" not null
        constraint subscription_status_known check (status in ('draft', 'active', 'ended')),
    term text collate "C" not null constraint subscription_term_known
        check (term in ('weekly', 'four_weeks', 'monthly', 'quarterly', 'half_yearly', 'yearly')),
    start_date date,
    end_date date,
    first_date date,
    day_of_month integer,
    day_of_week integer,
    -- What every invoice date is computed from: its week or month is the first one, the day is a day in those.
    anchor_date date,
    anchor_day integer,
    last_generated date,
    next_generate date,
    -- When there is something to be done: the day begins, in the account's time zone, on which the next invoice is due
    -- or the end has passed; later than that after a failure.
    due_at timestamptz,
    failures integer not null default 0,
    last_error text not null default '',
    total_excl numeric(14, 2) not null,
    vat_rate numeric(9, 4) not null,
    vat_amount numeric(14, 2) not null,
    total_incl numeric(14, 2) not null,
    line_count integer not null,
    -- What a search looks through, in lower case.
    search_text text not null,
    created_at timestamptz not null,
    updated_at timestamptz not null,
    constraint subscription_key primary key (account_id, id),
    constraint subscription_anchored check (status = 'draft' or next_generate is null or anchor_date is not null)
) with (fillfactor = 80);

create unique index subscription_number on billing.subscription (account_id, number);
create index subscription_newest on billing.subscription (account_id, created_at desc, id desc);
create index subscription_of_client on billing.subscription (account_id, client_id, created_at desc, id desc);
create index subscription_due on billing.subscription (account_id, due_at) where due_at is not null;
create index subscription_search on billing.subscription using gin (account_id, search_text public.gin_trgm_ops);

create table billing.subscription_line (
    account_id uuid not null,
    subscription_id uuid not null,
    position integer not null,
    title text not null,
    quantity numeric(16, 4) not null,
    unit text not null,
    unit_price numeric(16, 4) not null,
    vat_rate numeric(7, 4) not null,
    vat_code text not null,
    -- The VAT category of EN 16931.
    category text collate "C" not null,
    constraint subscription_line_key primary key (account_id, subscription_id, position),
    constraint subscription_line_of foreign key (account_id, subscription_id)
        references billing.subscription (account_id, id) on delete cascade
);

-- The subscription that made an invoice, and the days it bills.
alter table billing.document
    add column subscription_id uuid,
    add column period_from date,
    add column period_to date;

-- However often a period is tried, it has one invoice.
create unique index document_of_subscription on billing.document (account_id, subscription_id, period_from)
    where subscription_id is not null;
