-- no-transaction
-- Clients by their debtor number, in any case.
create index concurrently if not exists relation_debtor_number
    on relations.relation (account_id, role, lower(debtor_number))
    where debtor_number <> '';
