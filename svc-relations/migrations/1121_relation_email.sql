-- no-transaction
-- Clients and suppliers by their address, in any case.
create index concurrently if not exists relation_email
    on relations.relation (account_id, role, lower(email))
    where email <> '';
