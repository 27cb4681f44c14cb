-- no-transaction
-- Pages of the clients or suppliers in a country, whose total is counted.
create index concurrently if not exists relation_of_country
    on relations.relation (account_id, role, country, created_at desc, id desc);
