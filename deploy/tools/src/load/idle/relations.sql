insert into relations.relation (account_id, id, role, version, type, company_name, firstname, lastname, email, phone,
    address, zipcode, city, country, company_registration_number, vat_number, website, iban, bank_account_name, bic,
    external_id, email_invoices, email_reminders, mail_salutation, debtor_number, search_text, created_at, updated_at)
select account_id, id, 'client', 1, 'company', 'Idle', '', '', '', '', '', '', '', 'NL', '', '', '', '', '', '', '', '', '',
    '', 'D-00001', 'idle', old, old
from idle_record where n = 1
on conflict do nothing;
