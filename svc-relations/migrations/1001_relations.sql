-- Clients and suppliers are one kind of row: `role` says which list a row belongs to. Texts that were never set are ''.
create table relations.relation (
    account_id uuid not null,
    id uuid not null,
    role text collate "C" not null constraint relation_role_known check (role in ('client', 'supplier')),
    version bigint not null,
    type text collate "C" not null constraint relation_type_known check (type in ('company', 'private')),
    company_name text not null,
    firstname text not null,
    lastname text not null,
    email text not null,
    phone text not null,
    address text not null,
    zipcode text not null,
    city text not null,
    country text not null,
    company_registration_number text not null,
    vat_number text not null,
    website text not null,
    iban text not null,
    bank_account_name text not null,
    bic text not null,
    external_id text not null,
    payment_term integer,
    quote_expiration_days integer,
    email_invoices text not null,
    email_reminders text not null,
    mail_salutation text not null,
    debtor_number text not null,
    -- What a search looks through, in lower case.
    search_text text not null,
    created_at timestamptz not null,
    updated_at timestamptz not null,
    constraint relation_key primary key (account_id, id)
);

create unique index relation_external_id on relations.relation (account_id, role, external_id)
    where external_id <> '';
create index relation_newest on relations.relation (account_id, role, created_at desc, id desc);
create index relation_newest_of_type on relations.relation (account_id, role, type, created_at desc, id desc);
create index relation_search on relations.relation
    using gin (account_id, role, search_text public.gin_trgm_ops);

-- Persons who work for companies; both are clients.
create table relations.link (
    account_id uuid not null,
    company_id uuid not null,
    client_id uuid not null,
    function text not null,
    department text not null,
    created_at timestamptz not null,
    updated_at timestamptz not null,
    constraint link_key primary key (account_id, company_id, client_id),
    constraint link_company foreign key (account_id, company_id) references relations.relation (account_id, id),
    constraint link_client foreign key (account_id, client_id) references relations.relation (account_id, id)
);

create index link_of_client on relations.link (account_id, client_id, company_id);

-- Fields that the business added to its records. The collation makes the order the same everywhere.
create table relations.custom_field (
    account_id uuid not null,
    entity text collate "C" not null,
    key text collate "C" not null,
    label text not null,
    type text not null,
    options text[] not null,
    created_at timestamptz not null,
    updated_at timestamptz not null,
    constraint custom_field_key primary key (account_id, entity, key)
);
