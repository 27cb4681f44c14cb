-- Clients as a payment provider knows them, with their mandates. Texts that are not known yet are ''.
create table billing.debtor (
    account_id uuid not null,
    client_id uuid not null,
    provider text collate "C" not null,
    customer_id text not null,
    mandate_id text not null,
    mandate_status text collate "C" not null
        constraint debtor_mandate_status_known check (mandate_status in ('none', 'pending', 'valid', 'invalid')),
    verified_at timestamptz,
    authorized_at timestamptz,
    -- When a collection with this mandate first succeeded.
    activated_at timestamptz,
    created_at timestamptz not null,
    updated_at timestamptz not null,
    constraint debtor_key primary key (account_id, client_id, provider)
);

-- Payments through a provider, from the wish on. One on an invoice is also a row of `payment`, with the same id.
create table billing.online_payment (
    account_id uuid not null,
    id uuid not null,
    purpose text collate "C" not null
        constraint online_payment_purpose_known check (purpose in ('verification', 'checkout', 'collection')),
    client_id uuid,
    document_id uuid,
    provider text collate "C" not null,
    -- The secret of the links that need no key.
    token bytea not null,
    amount numeric(14, 2) not null,
    currency text not null,
    description text not null,
    customer_id text not null,
    mandate_id text not null,
    return_url text not null,
    status text collate "C" not null,
    -- Whether it may still be paid; follows from the status.
    is_open boolean not null,
    -- Whether we want it canceled.
    closing boolean not null,
    external_id text not null,
    checkout_url text not null,
    refunded numeric(14, 2) not null,
    charged_back numeric(14, 2) not null,
    failure text not null,
    paid_at timestamptz,
    -- When the provider was asked for what is known.
    asked_at timestamptz not null,
    created_at timestamptz not null,
    updated_at timestamptz not null,
    constraint online_payment_key primary key (account_id, id)
);

-- An invoice cannot be paid twice: nothing new begins while something is open, being canceled or not.
create unique index online_payment_open on billing.online_payment (account_id, document_id)
    where is_open and document_id is not null;
create unique index online_payment_verification on billing.online_payment (account_id, client_id, provider)
    where is_open and not closing and purpose = 'verification';
create unique index online_payment_token on billing.online_payment (account_id, token);
create index online_payment_of_document on billing.online_payment (account_id, document_id, id desc)
    where document_id is not null;
create index online_payment_of_client on billing.online_payment (account_id, client_id, purpose, id desc);

-- What is to be asked of a provider. The id is the key of the request: a wish whose answer never came is repeated with
-- the same one. Gone when it is fulfilled.
create table billing.wish (
    account_id uuid not null,
    id uuid not null,
    kind text collate "C" not null
        constraint wish_kind_known check (kind in ('customer', 'payment', 'cancel', 'refund', 'ask')),
    -- A client for a customer, else an online payment.
    subject uuid not null,
    provider text collate "C" not null,
    -- Of a refund.
    amount numeric(14, 2) not null,
    attempts integer not null,
    next_at timestamptz not null,
    last_error text not null,
    created_at timestamptz not null,
    constraint wish_key primary key (account_id, id)
);

create unique index wish_subject on billing.wish (account_id, kind, subject);
create index wish_due on billing.wish (account_id, provider, next_at);

-- The embedded provider. Its ids carry the account and these secrets.
create table billing.sandbox_customer (
    account_id uuid not null,
    id uuid not null,
    reference text not null,
    name text not null,
    created_at timestamptz not null,
    constraint sandbox_customer_key primary key (account_id, id)
);

create table billing.sandbox_mandate (
    account_id uuid not null,
    id uuid not null,
    customer_id uuid not null,
    status text collate "C" not null,
    -- Whether the next collection is to fail.
    refuses_next boolean not null,
    created_at timestamptz not null,
    constraint sandbox_mandate_key primary key (account_id, id)
);

create index sandbox_mandate_of on billing.sandbox_mandate (account_id, customer_id, created_at desc, id desc);

create table billing.sandbox_payment (
    account_id uuid not null,
    id uuid not null,
    reference text not null,
    sequence text collate "C" not null
        constraint sandbox_payment_sequence_known check (sequence in ('one_off', 'first', 'recurring')),
    customer_id uuid,
    mandate_id uuid,
    amount numeric(14, 2) not null,
    currency text not null,
    description text not null,
    return_url text not null,
    webhook_url text not null,
    status text collate "C" not null,
    refunded numeric(14, 2) not null,
    charged_back numeric(14, 2) not null,
    failure text not null,
    paid_at timestamptz,
    -- Whether a collection that is under way is going to fail.
    fails boolean not null,
    -- When it ends by itself: an open one expires, a collection is paid or fails.
    ends_at timestamptz not null,
    created_at timestamptz not null,
    constraint sandbox_payment_key primary key (account_id, id)
);

create index sandbox_payment_reference on billing.sandbox_payment (account_id, reference);
create index sandbox_payment_of on billing.sandbox_payment (account_id, customer_id, id desc);
create index sandbox_payment_live on billing.sandbox_payment (account_id, ends_at) where status in ('open', 'pending');
