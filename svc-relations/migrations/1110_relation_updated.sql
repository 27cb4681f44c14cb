-- no-transaction
-- The list in the order of the last changes, and what was changed since a moment.
create index concurrently if not exists relation_updated
    on relations.relation (account_id, role, updated_at desc, id desc);
