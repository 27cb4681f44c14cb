-- Invoices, quotes and workorders are one kind of row: `kind` says which list a row belongs to. Texts that were never set
-- are ''.
create table billing.document (
    account_id uuid not null,
    id uuid not null,
    kind text collate "C" not null
        constraint document_kind_known check (kind in ('invoice', 'quote', 'workorder')),
    -- Grows with every change; of what is printed only `content_version` tells.
    version bigint not null,
    content_version bigint not null,
    is_final boolean not null,
    number text collate "C" not null,
    -- Whether the caller chose the number: then it stays when the document becomes final.
    number_given boolean not null,
    title text not null,
    invoice_date date not null,
    due_date date not null,
    currency text not null,
    language text not null,
    total_excl numeric(14, 2) not null,
    vat_rate numeric(9, 4) not null,
    vat_amount numeric(14, 2) not null,
    total_incl numeric(14, 2) not null,
    row_count integer not null,
    client_id uuid,
    client_company_name text not null,
    client_firstname text not null,
    client_lastname text not null,
    payment_status text not null,
    paid_at timestamptz,
    paid_amount numeric(14, 2) not null default 0,
    open_amount numeric(14, 2) not null default 0,
    overpaid_amount numeric(14, 2) not null default 0,
    sent_at timestamptz,
    project_number text,
    -- The invoice that this one credits.
    credits uuid,
    external_id text not null,
    -- The secret of the links that need no key.
    token bytea not null,
    finalized_at timestamptz,
    accepted_at timestamptz,
    -- The last day on which the page of a quote was opened.
    viewed_on date,
    -- Seller and buyer as they were when the document became final.
    seller jsonb,
    buyer jsonb,
    -- What the e-invoice lacks.
    einvoice_missing text[] not null,
    -- The `content_version` of which there is a PDF.
    pdf_version bigint,
    pdf_error text not null default '',
    -- What a search looks through, in lower case.
    search_text text not null,
    created_at timestamptz not null,
    updated_at timestamptz not null,
    constraint document_key primary key (account_id, id),
    constraint document_final_has_parties check (not is_final or (seller is not null and buyer is not null))
) with (fillfactor = 80);

create unique index document_number on billing.document (account_id, kind, number);
create unique index document_external_id on billing.document (account_id, kind, external_id) where external_id <> '';
create unique index document_token on billing.document (account_id, token);
create index document_newest on billing.document (account_id, kind, created_at desc, id desc);
create index document_dated on billing.document (account_id, kind, invoice_date desc, id desc);
create index document_of_status on billing.document (account_id, kind, payment_status, created_at desc, id desc);
create index document_of_client on billing.document (account_id, client_id, kind, created_at desc, id desc);
create index document_credits on billing.document (account_id, credits) where credits is not null;
create index document_search on billing.document using gin (account_id, kind, search_text public.gin_trgm_ops);

create table billing.document_row (
    account_id uuid not null,
    document_id uuid not null,
    position integer not null,
    name text not null,
    description text not null,
    quantity numeric(16, 4) not null,
    unit text not null,
    unit_price numeric(16, 4) not null,
    vat_rate numeric(7, 4) not null,
    vat_code text not null,
    -- The VAT category of EN 16931.
    category text collate "C" not null,
    -- The credit invoice that takes the row back.
    credited_by uuid,
    constraint document_row_key primary key (account_id, document_id, position),
    constraint document_row_of foreign key (account_id, document_id)
        references billing.document (account_id, id) on delete cascade
);

-- What happened to a document.
create table billing.document_history (
    account_id uuid not null,
    document_id uuid not null,
    id uuid not null,
    at timestamptz not null,
    event text not null,
    actor text not null,
    data text not null,
    -- The mail that was queued with it.
    mail_id uuid,
    constraint document_history_key primary key (account_id, document_id, id),
    constraint document_history_of foreign key (account_id, document_id)
        references billing.document (account_id, id) on delete cascade
);

create table billing.payment (
    account_id uuid not null,
    document_id uuid not null,
    id uuid not null,
    amount numeric(14, 2) not null,
    date date not null,
    status text collate "C" not null,
    type text collate "C" not null,
    method text collate "C" not null,
    external_id text not null,
    provider text not null,
    payment_data text not null,
    feedback_data text not null,
    created_at timestamptz not null,
    updated_at timestamptz not null,
    constraint payment_key primary key (account_id, document_id, id),
    constraint payment_of foreign key (account_id, document_id) references billing.document (account_id, id)
);

create unique index payment_external_id on billing.payment (account_id, document_id, external_id)
    where external_id <> '';

-- The clients that have paid an invoice: the first one is an event of its own.
create table billing.paying_client (
    account_id uuid not null,
    client_id uuid not null,
    since timestamptz not null,
    constraint paying_client_key primary key (account_id, client_id)
);
