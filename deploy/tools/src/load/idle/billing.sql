insert into billing.settings (account_id, payment_days, quote_days, default_tax_code, language, invoice_prefix,
    quote_prefix, workorder_prefix, number_padding, created_at, updated_at)
select account_id, 14, 14, 'VAT21', 'nl', 'INV', 'QUO', 'WOR', 5, old, old from idle
on conflict do nothing;

-- Its next invoice is due in a month.
insert into billing.subscription (account_id, id, number, title, client_id, client_names, status, term, start_date,
    first_date, day_of_month, anchor_date, anchor_day, last_generated, next_generate, due_at, total_excl, vat_rate,
    vat_amount, total_incl, line_count, search_text, created_at, updated_at)
select account_id, id, 'SUB-00001', 'Idle', id, 'idle', 'active', 'quarterly', old::date, old::date, 1, old::date, 1,
    old::date, now()::date + 30, now() + interval '30 days', 10, 21, 2.10, 12.10, 1, 'idle', old, old
from idle_record where n = 1
on conflict do nothing;
