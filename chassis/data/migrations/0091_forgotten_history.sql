-- Records whose earlier states are to be forgotten: those up to this version are shown no more, and compact-log, which has
-- the rights for it, removes their bytes. If the kind is '', these are what names the record, whoever it belongs to: earlier
-- states of other records, and the data of events.
create table forgotten_history (
    account_id uuid not null,
    record_id text collate "C" not null,
    kind text collate "C" not null,
    version bigint not null,
    at timestamptz not null,
    -- When compact-log has removed them.
    removed_at timestamptz,
    primary key (account_id, record_id, kind)
);
create index forgotten_history_left on forgotten_history (account_id, at) where removed_at is null;

comment on table forgotten_history is 'unaudited: what the log forgets';
