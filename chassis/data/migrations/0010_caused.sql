-- How deep in a chain of automation a record was made. What starts with it later, when nobody calls, is as deep. Only
-- records that automation made are here.
create table caused (
    account_id uuid not null,
    entity_id text collate "C" not null,
    depth integer not null,
    primary key (account_id, entity_id)
);
comment on table caused is 'unaudited: which records automation made';
