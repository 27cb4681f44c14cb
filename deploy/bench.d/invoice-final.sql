-- A new final invoice of three rows: the write transaction of chassis/src/write.rs around what
-- svc-billing/src/document/operations/create.rs does: read the settings and the seller, insert. Ids are made as in
-- create.sql; the event goes to a listener that nobody serves.
-- Then what its PDF asks of the database, as `print` of svc-billing/src/document/rpc.rs: the invoice is read whole, with
-- its collections, seller and buyer, and a second transaction notes the PDF and the answer that repeats get. The PDF is
-- not made here.
\set ms :ms + 1
\set id_high (:ms << 16) | 28672 | random(0, 4095)
\set id_low random(-9223372036854775808, -4611686018427387905)
\set event_low random(-9223372036854775808, -4611686018427387905)
\set key random(1000000000000000, 4611686018427387903)
\set slot random(0, 7)
begin;
insert into idempotency (account_id, route, key, fingerprint, created_at) values (:account, :route, :key, :fingerprint, now())
         on conflict (account_id, route, key) do update
            set fingerprint = excluded.fingerprint, response = null, created_at = excluded.created_at
            where idempotency.created_at <= now() - interval '24 hours';
select (select country from billing.account where account_id = :account) as country, settings.account_id is not null as provisioned, rates.codes, rates.amounts, rates.types, payment_days, quote_days, default_tax_code, language, invoice_prefix, quote_prefix, workorder_prefix, number_padding from (values (:account::uuid)) wanted (id) left join billing.settings on settings.account_id = :account cross join (select array_agg(code) as codes, array_agg(amount) as amounts, array_agg(type) as types from (select code, amount, type from billing.tax_rate where account_id = :account and context = 'sales' order by code) rate) rates;
select name, primary_color, secondary_color, company_name, address, zipcode, city, country, email, phone, website, company_registration_number, vat_number, iban, bic, bank_account_name, footer, logo.format, logo.bytes from billing.identity left join billing.identity_logo logo on logo.account_id = identity.account_id and logo.identity_id = identity.id where identity.account_id = :account and is_default;
with taken as (insert into counter (account_id, name, value) select :account, :counter, 1 where ''::text = '' on conflict (account_id, name) do update set value = counter.value + 1 returning value), numbered as (select case when ''::text <> '' then ''::text else (select :prefix || lpad(value::text, greatest(:padding, length(value::text)), '0') from taken) end as number), inserted as (insert into billing.document (account_id, id, kind, version, content_version, is_final, number, number_given, title, invoice_date, due_date, currency, language, total_excl, vat_rate, vat_amount, total_incl, row_count, client_id, client_company_name, client_firstname, client_lastname, payment_status, paid_at, open_amount, credits, external_id, token, finalized_at, seller, buyer, einvoice_missing, search_text, created_at, updated_at, subscription_id, period_from, period_to, invoice_date_given, due_date_given) select :account, encode(int8send(:id_high) || int8send(:id_low), 'hex')::uuid, :kind, 1, 1, :is_final, number, ''::text <> '', :title, :today, :today, :currency, :language, :total_excl, :vat_rate, :vat_amount, :total_incl, 3::integer, :client, :company_name, :firstname, :lastname, :status_now, null::timestamptz, :open_amount, null::uuid, ''::text, int8send(:id_low) || int8send(:event_low), now(), :seller, :buyer, :missing, :search_text || lower(number), now(), now(), null::uuid, null::date, null::date, false::boolean, false::boolean from numbered on conflict do nothing returning number), stored as (insert into billing.document_row (account_id, document_id, position, name, description, quantity, unit, unit_price, vat_rate, vat_code, category) select :account, encode(int8send(:id_high) || int8send(:id_low), 'hex')::uuid, position - 1, name, description, quantity, unit, unit_price, vat_rate, vat_code, category from unnest(:names::text[], :descriptions::text[], :quantities::numeric[], :units::text[], :prices::numeric[], :rates::numeric[], :codes::text[], :categories::text[]) with ordinality as r (name, description, quantity, unit, unit_price, vat_rate, vat_code, category, position) where exists (select from inserted)) select number from inserted;
with events as (
            insert into outbox (account_id, listener, entity_type, entity_id, sequence, id, type, data, depth, occurred_at, next_at)
            select :account, listener, entity_type, entity_id, sequence, id, type, data, depth, now(), now()
            from unnest(:listeners::text[], :entity_types::text[], array[encode(int8send(:id_high) || int8send(:id_low), 'hex')]::uuid[], :sequences::bigint[], array[encode(int8send(:id_high) || int8send(:event_low), 'hex')]::uuid[], :event_types::text[], :event_data::text[], :depths::integer[])
                as event (listener, entity_type, entity_id, sequence, id, type, data, depth)
        ), totals as (
            insert into total (account_id, list, bucket, slot, entries)
            select :account, list, bucket, slot, entries
            from unnest(:lists::text[], :buckets::date[], array[:slot, :slot]::smallint[], :entries::bigint[]) as t (list, bucket, slot, entries)
            order by list, bucket, slot
            on conflict (account_id, list, bucket, slot) do update set entries = total.entries + excluded.entries
        ), trail as (
            insert into audit (account_id, id, at, actor, request_id, method, entity_type, entity_id, message, image)
            select :account, id, now(), :actor, :request_id, :route, entity_type, entity_id, message, image
            from unnest(array[encode(int8send(:id_high) || int8send(:event_low), 'hex')]::uuid[], :entry_types::text[], array[encode(int8send(:id_high) || int8send(:id_low), 'hex')]::text[], :entry_messages::text[], array[:response]::bytea[])
                as entry (id, entity_type, entity_id, message, image)
        )
        update idempotency set response = :response where account_id = :account and route = :route and key = :key;
commit;
select d.id, d.kind, d.version, d.content_version, d.is_final, d.number, d.number_given, d.title, d.invoice_date, d.due_date, d.currency, d.language, d.total_excl, d.vat_rate, d.vat_amount, d.total_incl, d.row_count, d.client_id, d.client_company_name, d.client_firstname, d.client_lastname, d.payment_status, d.paid_at, d.paid_amount, d.open_amount, d.overpaid_amount, d.sent_at, d.project_number, d.credits, d.external_id, d.token, d.finalized_at, d.accepted_at, d.viewed_on, d.einvoice_missing, d.pdf_version, d.pdf_error, d.created_at, d.updated_at, d.invoice_date_given, d.due_date_given, d.prepaid_amount, d.subscription_id, d.period_from, d.period_to, rows.*, array(select c.id from billing.document c where c.account_id = :account and c.credits = d.id order by c.created_at, c.id), history.* from billing.document d cross join lateral (select array_agg(name), array_agg(description), array_agg(quantity), array_agg(unit), array_agg(unit_price), array_agg(vat_rate), array_agg(vat_code), array_agg(category), array_agg(credited_by) from (select name, description, quantity, unit, unit_price, vat_rate, vat_code, category, credited_by from billing.document_row r where r.account_id = :account and r.document_id = d.id order by r.position) r) rows cross join lateral (select array_agg(at), array_agg(event), array_agg(actor), array_agg(data), array_agg(status), array_agg(last_error) from (select h.at, h.event, h.actor, h.data, m.status, m.last_error from billing.document_history h left join mail m on m.account_id = h.account_id and m.id = h.mail_id where h.account_id = :account and h.document_id = d.id order by h.id desc limit 20) h) history where d.account_id = :account and d.id = encode(int8send(:id_high) || int8send(:id_low), 'hex')::uuid and d.kind = :kind;
select id, purpose, client_id, document_id, provider, token, amount, currency, description, customer_id, mandate_id, return_url, status, closing, external_id, checkout_url, refunded, charged_back, failure, paid_at, asked_at, created_at from billing.online_payment where account_id = :account and document_id = encode(int8send(:id_high) || int8send(:id_low), 'hex')::uuid and purpose = 'collection' order by id;
select name, primary_color, secondary_color, company_name, address, zipcode, city, country, email, phone, website, company_registration_number, vat_number, iban, bic, bank_account_name, footer, logo.format, logo.bytes from billing.identity left join billing.identity_logo logo on logo.account_id = identity.account_id and logo.identity_id = identity.id where identity.account_id = :account and is_default;
select seller, buyer from billing.document where account_id = :account and id = encode(int8send(:id_high) || int8send(:id_low), 'hex')::uuid;
begin;
with events as (
            insert into outbox (account_id, listener, entity_type, entity_id, sequence, id, type, data, depth, occurred_at, next_at)
            select :account, listener, entity_type, entity_id, sequence, id, type, data, depth, now(), now()
            from unnest(:listeners::text[], :file_types::text[], array[encode(int8send(:id_high) || int8send(:event_low), 'hex')]::uuid[], :sequences::bigint[], array[encode(int8send(:id_high) || int8send(:event_low), 'hex')]::uuid[], :file_event_types::text[], :file_data::text[], :depths::integer[])
                as event (listener, entity_type, entity_id, sequence, id, type, data, depth)
        ), totals as (
            insert into total (account_id, list, bucket, slot, entries)
            select :account, list, bucket, slot, entries
            from unnest(:none::text[], :none::date[], :none::smallint[], :none::bigint[]) as t (list, bucket, slot, entries)
            order by list, bucket, slot
            on conflict (account_id, list, bucket, slot) do update set entries = total.entries + excluded.entries
        ), trail as (
            insert into audit (account_id, id, at, actor, request_id, method, entity_type, entity_id, message, image)
            select :account, id, now(), :actor, :request_id, :route, entity_type, entity_id, message, image
            from unnest(:none::uuid[], :none::text[], :none::text[], :none::text[], :none::bytea[])
                as entry (id, entity_type, entity_id, message, image)
        )
        update idempotency set response = null::bytea where account_id = :account and route = null::text and key = null::text;
commit;
begin;
update billing.document set pdf_version = coalesce(1::bigint, pdf_version), pdf_error = ''::text where account_id = :account and id = encode(int8send(:id_high) || int8send(:id_low), 'hex')::uuid and (1::bigint is null or pdf_version is null or pdf_version <= 1::bigint);
with events as (
            insert into outbox (account_id, listener, entity_type, entity_id, sequence, id, type, data, depth, occurred_at, next_at)
            select :account, listener, entity_type, entity_id, sequence, id, type, data, depth, now(), now()
            from unnest(:none::text[], :none::text[], :none::uuid[], :none::bigint[], :none::uuid[], :none::text[], :none::text[], :none::integer[])
                as event (listener, entity_type, entity_id, sequence, id, type, data, depth)
        ), totals as (
            insert into total (account_id, list, bucket, slot, entries)
            select :account, list, bucket, slot, entries
            from unnest(:none::text[], :none::date[], :none::smallint[], :none::bigint[]) as t (list, bucket, slot, entries)
            order by list, bucket, slot
            on conflict (account_id, list, bucket, slot) do update set entries = total.entries + excluded.entries
        ), trail as (
            insert into audit (account_id, id, at, actor, request_id, method, entity_type, entity_id, message, image)
            select :account, id, now(), :actor, :request_id, :route, entity_type, entity_id, message, image
            from unnest(:none::uuid[], :none::text[], :none::text[], :none::text[], :none::bytea[])
                as entry (id, entity_type, entity_id, message, image)
        )
        update idempotency set response = :response where account_id = :account and route = :route and key = :key;
commit;
