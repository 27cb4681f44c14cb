-- No provider tells of a mandate that was withdrawn: each that is valid is asked for again and again.
alter table billing.debtor
    -- When the provider was last asked for the mandates of the client, and answered.
    add column asked_at timestamptz,
    -- When to ask next, as long as the mandate is valid.
    add column ask_at timestamptz not null default 'epoch',
    -- How often the provider has not answered since.
    add column ask_failures integer not null default 0;

create index debtor_ask on billing.debtor (account_id, provider, ask_at) where mandate_status = 'valid';
