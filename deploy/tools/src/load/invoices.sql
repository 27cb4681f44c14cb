-- Adds the invoices :from to :to of :count new ones to an account, oldest first: three rows each, over :days days, with
-- the counters of lists and numbers as the service keeps them. One transaction, so that an interrupted fill leaves
-- nothing half done.
--
-- A twentieth is open, a fiftieth a draft, the rest is paid or partly so. Every :searched_every-th has the searched word
-- in its title. Every :changed_every-th was changed just now, the others never. Days are those of the counters, which are
-- UTC's. :used is the last number that is taken; :clients has the ids that the invoices are spread over.

-- The search index takes what is new in large portions, and a crash of the machine may lose the end.
set statement_timeout = 0;
set synchronous_commit = off;
set maintenance_work_mem = '512MB';
set gin_pending_list_limit = '128MB';

with series as (
    select i, :used + i as serial,
        date_trunc('milliseconds', date_trunc('day', now(), 'UTC') - interval '1 day' * :days * (:count - i + 1) / :count)
            as created_at,
        i % array_length(:'clients'::uuid[], 1) as person, i % 9 + 1 as quantity, i % 90 + 10.50 as price,
        case when i % 50 = 1 then 'draft' when i % 20 = 0 then 'open' when i % 50 = 2 then 'partially_paid'
            else 'paid' end as status
    from generate_series(:from, :to) i
), parts as materialized (
    select *, status <> 'draft' as is_final, (created_at at time zone 'UTC')::date as day,
        encode(int8send((floor(extract(epoch from created_at) * 1000)::bigint << 16) | 28672 | (i % 4096))
            || substring(uuid_send(gen_random_uuid()) from 9), 'hex')::uuid as id,
        case when status = 'draft' then 'DRAFT-' || serial else
            'INV-' || to_char(created_at at time zone 'UTC', 'YYYY') || '-' || lpad(serial::text, greatest(5,
            length(serial::text)), '0') end as number,
        case when i % :searched_every = 0 then :'searched' else 'Levering' end || ' ' || lpad(i::text, 6, '0') as title,
        'Handel ' || lpad(person::text, 6, '0') || ' B.V.' as company,
        round(quantity * 4.25, 2) as low, price + 127.50 as high
    from series
), amounts as materialized (
    select *, low + high as excl, round(low * 0.09, 2) + round(high * 0.21, 2) as vat from parts
), documents as (
    insert into billing.document (account_id, id, kind, version, content_version, is_final, number, number_given, title,
        invoice_date, due_date, currency, language, total_excl, vat_rate, vat_amount, total_incl, row_count, client_id,
        client_company_name, client_firstname, client_lastname, payment_status, paid_at, paid_amount, open_amount,
        external_id, token, finalized_at, seller, buyer, einvoice_missing, pdf_version, search_text, created_at,
        updated_at)
    select :'account', id, 'invoice', 1, 1, is_final, number, false, title, day, day + 14, 'EUR', 'nl', excl,
        round(vat * 100 / excl, 2), vat, excl + vat, 3, (:'clients'::uuid[])[person + 1], company, 'Sanne',
        'de Vries', status, case status when 'paid' then date_trunc('day', created_at) end,
        case status when 'paid' then excl + vat when 'partially_paid' then 10 else 0 end,
        case status when 'open' then excl + vat when 'partially_paid' then excl + vat - 10 else 0 end,
        'order-' || serial, uuid_send(gen_random_uuid()), case when is_final then created_at end,
        case when is_final then '{"party": {"name": "Bakkerij De Korenbloem B.V.", "contact": "",
            "address": "Prinsengracht 12", "zipcode": "1015 DV", "city": "Amsterdam", "country": "NL",
            "email": "info@korenbloem.example", "phone": "+31 20 555 0112", "website": "https://korenbloem.example",
            "registration_number": "68112340", "vat_number": "NL854231675B01", "debtor_number": ""},
            "bank": {"iban": "NL91ABNA0417164300", "bic": "ABNANL2A", "holder": "Bakkerij De Korenbloem B.V."}}'::jsonb end,
        case when is_final then '{"name": "Handel 000001 B.V.", "contact": "Sanne de Vries",
            "address": "Prinsengracht 1", "zipcode": "1015 DV", "city": "Utrecht", "country": "NL",
            "email": "info1@example.com", "phone": "+31 20 123 4567", "website": "", "registration_number": "",
            "vat_number": "", "debtor_number": "D-00001"}'::jsonb end,
        '{}', case when is_final then 1 end,
        lower(title) || E'\n' || lower(company) || E'\nsanne de vries\norder-' || serial || E'\n' || lower(number),
        created_at, case when i % :changed_every = 0 then date_trunc('milliseconds', now()) else created_at end
    from amounts order by i
), rows as (
    insert into billing.document_row (account_id, document_id, position, name, description, quantity, unit, unit_price,
        vat_rate, vat_code, category)
    select :'account', id, r.position, r.name, '', r.quantity, r.unit, r.price, r.rate, 'VAT' || r.rate, 'S'
    from parts cross join lateral (values (0, 'Zuurdesembrood', parts.quantity, 'stuk', 4.25, 9),
        (1, 'Bezorging', 1, '', parts.price, 21), (2, 'Advies', 1.5, 'uur', 85, 21))
        as r (position, name, quantity, unit, price, rate)
), unprepared as (
    -- Segments lack what is added here; the service makes them anew.
    delete from prepared_list where account_id = :'account'
), totals as (
    insert into total (account_id, list, bucket, slot, entries)
    select :'account'::uuid, concat_ws('/', 'invoice', 'payment_status', status), '0001-01-01'::date, 0, count(*) from parts
    group by status
    union all select :'account'::uuid, 'invoice/generation_mode/' || case when is_final then 'final' else 'draft' end,
        '0001-01-01'::date, 0, count(*) from parts group by 2
    union all select :'account'::uuid, 'invoice/open/true', '0001-01-01'::date, 0, count(*) from parts
    where status in ('open', 'partially_paid')
    union all select :'account'::uuid, 'invoice', coalesce(day, '0001-01-01'), 0, count(*) from parts
    group by grouping sets ((day), ())
    on conflict (account_id, list, bucket, slot) do update set entries = total.entries + excluded.entries
)
insert into counter (account_id, name, value)
select :'account', 'invoice/' || case when is_final then to_char(day, 'YYYY') else 'draft' end, max(serial)
from parts group by 2 on conflict (account_id, name) do update set value = greatest(counter.value, excluded.value);
