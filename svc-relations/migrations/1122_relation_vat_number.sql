-- no-transaction
-- Clients and suppliers by their VAT number, without dots and hyphens.
create index concurrently if not exists relation_vat_number
    on relations.relation (account_id, role, translate(vat_number, '.-', ''))
    where vat_number <> '';
