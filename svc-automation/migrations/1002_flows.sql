alter table event add column depth integer not null default 0;
create index event_newest on event (account_id, received_at desc, id desc);
create index event_of_type on event (account_id, type, received_at desc, id desc);
create index event_of_entity on event (account_id, entity_type, entity_id, received_at desc, id desc);

-- What happens by itself. The definition is in the versions; what lists and triggers need of it is here too.
create table flow (
    account_id uuid not null,
    id uuid not null,
    name text not null,
    description text not null,
    category text not null,
    trigger_type text collate "C" not null
        constraint flow_trigger_known check (trigger_type in ('event', 'custom', 'schedule', 'manual')),
    trigger_key text collate "C" not null,
    active boolean not null,
    step_count integer not null,
    version bigint not null,
    -- Which of the ready-made flows it was made from; '' for none. A deleted one is not made again.
    ready_made text not null,
    -- When an active scheduled flow starts next.
    next_start_at timestamptz,
    deleted boolean not null default false,
    created_at timestamptz not null,
    updated_at timestamptz not null,
    constraint flow_key primary key (account_id, id)
);

create unique index flow_name on flow (account_id, name) where not deleted;
create index flow_newest on flow (account_id, deleted, created_at desc, id desc);
create index flow_triggered on flow (account_id, trigger_key)
    where active and not deleted and trigger_type in ('event', 'custom');
create index flow_scheduled on flow (account_id, next_start_at) where next_start_at is not null;
create index flow_ready_made on flow (account_id, ready_made) where ready_made <> '';

-- Never changed: a run keeps the version that it started with.
create table flow_version (
    account_id uuid not null,
    flow_id uuid not null,
    version bigint not null,
    -- As its author wrote it, and as JSON.
    source text not null,
    definition text not null,
    created_at timestamptz not null,
    constraint flow_version_key primary key (account_id, flow_id, version)
);

create table run (
    account_id uuid not null,
    id uuid not null,
    flow_id uuid not null,
    flow_version bigint not null,
    flow_name text not null,
    trigger_type text collate "C" not null,
    trigger_key text not null,
    entity_type text not null,
    entity_id text not null,
    event_id uuid,
    -- What the steps see of the event, as JSON: the event itself may be forgotten before the run ends.
    event text not null,
    depth integer not null,
    status text collate "C" not null,
    -- The step that is next or being taken, or was the last; '' before the first.
    step text not null,
    attempts integer not null default 0,
    max_attempts integer not null default 0,
    actions_done integer not null default 0,
    -- A step failed and the run went on: it ends as partial.
    failed_steps integer not null default 0,
    error text not null default '',
    -- When the executor has to look at it; null when only a person or nobody can move it.
    next_at timestamptz,
    created_at timestamptz not null,
    updated_at timestamptz not null,
    started_at timestamptz,
    finished_at timestamptz,
    constraint run_key primary key (account_id, id)
);

create index run_newest on run (account_id, created_at desc, id desc);
create index run_of_status on run (account_id, status, created_at desc, id desc);
create index run_of_flow on run (account_id, flow_id, created_at desc, id desc);
create index run_due on run (account_id, next_at, id) where next_at is not null;
create index run_ended on run (account_id, finished_at) where finished_at is not null;
create index run_open on run (account_id) where finished_at is null;

-- The steps of a run that have begun.
create table run_step (
    account_id uuid not null,
    run_id uuid not null,
    step text not null,
    ordinal integer not null,
    kind text not null,
    outcome text not null,
    attempts integer not null,
    -- What it sends, rendered once and the same at every attempt: the idempotency key stands for it.
    input text,
    answer text,
    error text not null default '',
    -- The last attempt may have had its effect although it failed.
    uncertain boolean not null default false,
    decided_by text not null default '',
    reason text not null default '',
    started_at timestamptz not null,
    ended_at timestamptz,
    constraint run_step_key primary key (account_id, run_id, step)
);
