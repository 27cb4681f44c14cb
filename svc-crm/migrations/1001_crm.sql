-- Which accounts have had their defaults. Its row is also the lock of who changes pipelines or sources.
create table crm.setup (
    account_id uuid not null,
    created_at timestamptz not null,
    constraint setup_key primary key (account_id)
);

create table crm.pipeline (
    account_id uuid not null,
    id uuid not null,
    name text not null,
    active boolean not null,
    -- From 1, without gaps.
    position integer not null,
    created_at timestamptz not null,
    updated_at timestamptz not null,
    constraint pipeline_key primary key (account_id, id)
);

create table crm.phase (
    account_id uuid not null,
    id uuid not null,
    pipeline_id uuid not null,
    name text not null,
    -- Within its pipeline: from 1, without gaps.
    position integer not null,
    created_at timestamptz not null,
    updated_at timestamptz not null,
    constraint phase_key primary key (account_id, id),
    -- What deals refer to, so that none is in a phase of another pipeline.
    constraint phase_of_pipeline unique (account_id, pipeline_id, id),
    constraint phase_pipeline foreign key (account_id, pipeline_id) references crm.pipeline (account_id, id)
);

create table crm.source (
    account_id uuid not null,
    name text not null,
    position integer not null,
    created_at timestamptz not null,
    updated_at timestamptz not null,
    constraint source_key primary key (account_id, name)
);

create table crm.deal (
    account_id uuid not null,
    id uuid not null,
    version bigint not null,
    title text not null,
    amount numeric(14, 2),
    status text collate "C" not null constraint deal_status_known check (status in ('open', 'won', 'lost')),
    priority text collate "C" not null
        constraint deal_priority_known check (priority in ('low', 'medium', 'high')),
    pipeline_id uuid not null,
    phase_id uuid not null,
    client_id uuid not null,
    expected_close_date date,
    -- The name of a source, '' when it was never set.
    source text not null,
    phase_since timestamptz not null,
    won_at timestamptz,
    lost_at timestamptz,
    -- What a search looks through, in lower case.
    search_text text not null,
    created_at timestamptz not null,
    updated_at timestamptz not null,
    constraint deal_key primary key (account_id, id),
    constraint deal_phase foreign key (account_id, pipeline_id, phase_id)
        references crm.phase (account_id, pipeline_id, id)
);

create index deal_newest on crm.deal (account_id, created_at desc, id desc);
create index deal_of_status on crm.deal (account_id, status, created_at desc, id desc);
create index deal_of_pipeline on crm.deal (account_id, pipeline_id, created_at desc, id desc);
create index deal_of_phase on crm.deal (account_id, phase_id, created_at desc, id desc);
create index deal_of_client on crm.deal (account_id, client_id, created_at desc, id desc);
create index deal_search on crm.deal using gin (account_id, search_text public.gin_trgm_ops);

-- Where a deal stood from a moment on; `version` is the deal's own. The name of the phase is the one it had then.
create table crm.deal_step (
    account_id uuid not null,
    deal_id uuid not null,
    version bigint not null,
    pipeline_id uuid not null,
    phase_id uuid not null,
    phase_name text not null,
    status text collate "C" not null,
    -- The quote whose acceptance the entry tells of.
    quote_id uuid,
    at timestamptz not null,
    constraint deal_step_key primary key (account_id, deal_id, version),
    constraint deal_step_deal foreign key (account_id, deal_id) references crm.deal (account_id, id) on delete cascade
);

-- Quotes whose acceptance was heard of, so that to hear of one twice tells nobody twice.
create table crm.accepted_quote (
    account_id uuid not null,
    quote_id uuid not null,
    heard_at timestamptz not null,
    constraint accepted_quote_key primary key (account_id, quote_id)
);
