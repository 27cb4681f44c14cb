-- What the business sells. Texts that were never set are ''.
create table billing.product (
    account_id uuid not null,
    id uuid not null,
    name text not null,
    code text not null,
    price numeric,
    vat_rate text not null,
    unit text not null,
    active boolean not null,
    -- What a search looks through, in lower case.
    search_text text not null,
    created_at timestamptz not null,
    updated_at timestamptz not null,
    constraint product_key primary key (account_id, id)
);

create unique index product_code on billing.product (account_id, code) where code <> '';
create index product_newest on billing.product (account_id, created_at desc, id desc);
create index product_search on billing.product using gin (account_id, search_text public.gin_trgm_ops);

-- How an account makes its documents. The row also says that the account has its defaults, and is what everyone who
-- changes the account's settings locks first.
create table billing.settings (
    account_id uuid not null,
    payment_days integer not null,
    quote_days integer not null,
    -- The code of a tax rate for sales.
    default_tax_code text not null,
    language text not null constraint settings_language_known check (language in ('nl', 'en')),
    invoice_prefix text not null,
    quote_prefix text not null,
    workorder_prefix text not null,
    number_padding integer not null,
    created_at timestamptz not null,
    updated_at timestamptz not null,
    constraint settings_key primary key (account_id)
);

-- The category of EN 16931 follows from the type.
create table billing.tax_rate (
    account_id uuid not null,
    context text collate "C" not null constraint tax_rate_context_known check (context in ('sales', 'purchase')),
    code text collate "C" not null,
    label text not null,
    type text collate "C" not null,
    amount numeric not null,
    created_at timestamptz not null,
    updated_at timestamptz not null,
    constraint tax_rate_key primary key (account_id, context, code)
);

create table billing.payment_term (
    account_id uuid not null,
    code text collate "C" not null,
    days integer not null,
    label text not null,
    created_at timestamptz not null,
    updated_at timestamptz not null,
    constraint payment_term_key primary key (account_id, code)
);

-- Who the seller is on documents, and how they look. Texts that were never set are ''.
create table billing.identity (
    account_id uuid not null,
    id uuid not null,
    name text not null,
    primary_color text not null,
    secondary_color text not null,
    company_name text not null,
    address text not null,
    zipcode text not null,
    city text not null,
    country text not null,
    email text not null,
    phone text not null,
    website text not null,
    company_registration_number text not null,
    vat_number text not null,
    iban text not null,
    bic text not null,
    bank_account_name text not null,
    footer text not null,
    is_default boolean not null,
    -- Made with the account and never changed: its name follows the account's.
    is_untouched boolean not null,
    created_at timestamptz not null,
    updated_at timestamptz not null,
    constraint identity_key primary key (account_id, id)
);

create unique index identity_default on billing.identity (account_id) where is_default;

-- Apart from the identities, so that their lists do not read the pictures.
create table billing.identity_logo (
    account_id uuid not null,
    identity_id uuid not null,
    format text not null constraint identity_logo_format_known check (format in ('png', 'jpeg', 'svg')),
    bytes bytea not null,
    updated_at timestamptz not null,
    constraint identity_logo_key primary key (account_id, identity_id),
    constraint identity_logo_identity foreign key (account_id, identity_id)
        references billing.identity (account_id, id) on delete cascade
);
