-- Every record counts its changes from 1.
alter table billing.subscription add column version bigint not null default 1;
alter table billing.product add column version bigint not null default 1;
alter table billing.tax_rate add column version bigint not null default 1;
alter table billing.payment_term add column version bigint not null default 1;
alter table billing.identity add column version bigint not null default 1;
-- What is shown of a mandate, which the latest verification is part of.
alter table billing.debtor add column version bigint not null default 1;

-- Tax rates and payment terms that were removed. One that is added again with the same code goes on counting, so that no
-- version of it means two things.
create table billing.removed_setting (
    account_id uuid not null,
    kind text collate "C" not null constraint removed_setting_kind_known check (kind in ('tax_rate', 'payment_term')),
    -- The id in the log.
    id text collate "C" not null,
    -- That of the removal.
    version bigint not null,
    constraint removed_setting_key primary key (account_id, kind, id)
);

comment on table billing.removed_setting is 'unaudited: goes with the removal of a setting';
