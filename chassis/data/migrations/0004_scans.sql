-- Events that come from time passing. What was told already: each cause once. A cause is forgotten when it can no longer
-- hold.
create table scan_told (
    account_id uuid not null,
    event text collate "C" not null,
    entity_id uuid not null,
    cause text collate "C" not null,
    told_at timestamptz not null,
    primary key (account_id, event, entity_id, cause)
);

-- How long an account wants to wait before it is told, where that is not the default.
create table scan_threshold (
    account_id uuid not null,
    event text collate "C" not null,
    amount integer not null,
    updated_at timestamptz not null,
    primary key (account_id, event)
);

-- When an account is looked through again.
create table scan_turn (
    account_id uuid not null,
    next_at timestamptz not null,
    -- Grows when someone asks for a look: one that is under way then is not the one that was asked for.
    asked bigint not null default 0,
    -- Of a look that takes more than one turn: when it began, how far it came, and whether a part of it failed.
    started_at timestamptz,
    event text collate "C" not null default '',
    entity_id uuid not null default '00000000-0000-0000-0000-000000000000',
    cause text collate "C" not null default '',
    failed boolean not null default false,
    -- How far the remembered causes have been gone through.
    swept_event text collate "C" not null default '',
    swept_entity uuid not null default '00000000-0000-0000-0000-000000000000',
    swept_cause text collate "C" not null default '',
    primary key (account_id)
);
