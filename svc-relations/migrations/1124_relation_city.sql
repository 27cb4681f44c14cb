-- no-transaction
-- Clients and suppliers by their city, in any case.
create index concurrently if not exists relation_city
    on relations.relation (account_id, role, lower(city))
    where city <> '';
