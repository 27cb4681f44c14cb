-- Texts that were never set are ''. Ids of other services' records are checked before they are stored.
create table work.project (
    account_id uuid not null,
    id uuid not null,
    version bigint not null,
    number text not null,
    name text not null,
    status text collate "C" not null constraint project_status_known
        check (status in ('planned', 'active', 'on_hold', 'completed', 'cancelled')),
    client_id uuid,
    budget numeric(14, 2),
    start_date date,
    end_date date,
    quote_id uuid,
    -- What a search looks through, in lower case.
    search_text text not null,
    created_at timestamptz not null,
    updated_at timestamptz not null,
    constraint project_key primary key (account_id, id)
);

-- A quote becomes one project.
create unique index project_quote on work.project (account_id, quote_id) where quote_id is not null;
create index project_newest on work.project (account_id, created_at desc, id desc);
create index project_of_client on work.project (account_id, client_id, created_at desc, id desc)
    where client_id is not null;
create index project_search on work.project using gin (account_id, search_text public.gin_trgm_ops);

-- Time spent on projects. Hours and minutes are the same time, each as it is shown.
create table work.hour (
    account_id uuid not null,
    id uuid not null,
    project_id uuid not null,
    date date not null,
    hours numeric(4, 2) not null,
    minutes integer not null,
    status text collate "C" not null constraint hour_status_known
        check (status in ('draft', 'submitted', 'approved', 'rejected')),
    activity_name text not null,
    -- Why it was rejected.
    reason text not null,
    created_at timestamptz not null,
    updated_at timestamptz not null,
    constraint hour_key primary key (account_id, id),
    constraint hour_project foreign key (account_id, project_id) references work.project (account_id, id)
);

create index hour_of_project on work.hour (account_id, project_id, created_at desc, id desc);

create table work.task (
    account_id uuid not null,
    id uuid not null,
    title text not null,
    category text collate "C" not null constraint task_category_known check (category in ('task', 'call', 'meeting')),
    notes text not null,
    -- A day or a moment, as it was set.
    deadline_on date,
    deadline_at timestamptz,
    duration_minutes integer,
    client_id uuid,
    project_id uuid,
    deal_id uuid,
    -- Open as long as it is null.
    completed_at timestamptz,
    created_at timestamptz not null,
    updated_at timestamptz not null,
    constraint task_key primary key (account_id, id),
    constraint task_project foreign key (account_id, project_id) references work.project (account_id, id)
) with (fillfactor = 90);

create index task_newest on work.task (account_id, created_at desc, id desc);

create table work.note (
    account_id uuid not null,
    id uuid not null,
    body text not null,
    client_id uuid,
    invoice_id uuid,
    project_id uuid,
    deal_id uuid,
    created_at timestamptz not null,
    updated_at timestamptz not null,
    constraint note_key primary key (account_id, id),
    constraint note_project foreign key (account_id, project_id) references work.project (account_id, id)
);

create index note_newest on work.note (account_id, created_at desc, id desc);
create index note_of_client on work.note (account_id, client_id, created_at desc, id desc)
    where client_id is not null;
create index note_of_invoice on work.note (account_id, invoice_id, created_at desc, id desc)
    where invoice_id is not null;
create index note_of_project on work.note (account_id, project_id, created_at desc, id desc)
    where project_id is not null;
create index note_of_deal on work.note (account_id, deal_id, created_at desc, id desc)
    where deal_id is not null;

-- Files of this service and of others. A deleted row stays, without its name: an event that comes twice must not bring
-- the file back.
create table work.file (
    account_id uuid not null,
    id uuid not null,
    name text not null,
    content_type text not null,
    size bigint not null,
    -- Where the bytes are: service/area/name.
    key text collate "C" not null,
    source_type text collate "C" not null,
    source_id uuid,
    -- Of a generated file: a higher version of the same source takes the place of a lower one.
    source_version bigint,
    created_at timestamptz not null,
    deleted_at timestamptz,
    -- When the bytes of a deleted file were removed.
    removed_at timestamptz,
    constraint file_id primary key (account_id, id)
);

create unique index file_place on work.file (account_id, key) where deleted_at is null;
create index file_newest on work.file (account_id, created_at desc, id desc) where deleted_at is null;
create index file_of_source on work.file (account_id, source_type, source_id)
    where deleted_at is null and source_version is not null;
create index file_leaving on work.file (account_id, deleted_at)
    where deleted_at is not null and removed_at is null;
