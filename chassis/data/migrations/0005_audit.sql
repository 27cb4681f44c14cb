-- Who changed what, when, and on whose request: written in the transaction of the change. The image is the record after
-- it, a protobuf message of the type beside it; none after a deletion. What it was before is the image of the entry
-- before it.
create table audit (
    account_id uuid not null,
    id uuid not null,
    at timestamptz not null,
    actor text not null,
    request_id text not null,
    method text not null,
    entity_type text not null,
    entity_id text not null,
    message text not null,
    image bytea,
    primary key (account_id, id)
);
create index audit_of_entity on audit (account_id, entity_id, entity_type, id);

-- Dead letters are counted every few seconds.
create index mail_dead on mail (account_id) where status = 'dead';

-- Tables that begin their comment with `unaudited:` hold no records of the business: a change of them alone needs no
-- entry in the log. A debug build refuses a transaction that changes another table and leaves no entry.
comment on table audit is 'unaudited: the log itself';
comment on table idempotency is 'unaudited: answers to repeated calls';
comment on table outbox is 'unaudited: events on their way';
comment on table total is 'unaudited: how many entries a list has';
comment on table counter is 'unaudited: the next numbers';
comment on table lease is 'unaudited: who works on what';
comment on table replica is 'unaudited: who works on what';
comment on table mail is 'unaudited: mails on their way';
comment on table scan_told is 'unaudited: what was told of time passing';
comment on table scan_turn is 'unaudited: when an account is looked through';
