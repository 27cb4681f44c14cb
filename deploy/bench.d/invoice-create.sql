-- A new draft of three rows: the write transaction of chassis/src/write.rs around what
-- svc-billing/src/document/operations/create.rs does: read the settings, insert. Ids are made as in create.sql; the event
-- goes to a listener that nobody serves.
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
with taken as (insert into counter (account_id, name, value) select :account, :counter, 1 where ''::text = '' on conflict (account_id, name) do update set value = counter.value + 1 returning value), numbered as (select case when ''::text <> '' then ''::text else (select :prefix || lpad(value::text, greatest(:padding, length(value::text)), '0') from taken) end as number), inserted as (insert into billing.document (account_id, id, kind, version, content_version, is_final, number, number_given, title, invoice_date, due_date, currency, language, total_excl, vat_rate, vat_amount, total_incl, row_count, client_id, client_company_name, client_firstname, client_lastname, payment_status, paid_at, open_amount, credits, external_id, token, finalized_at, seller, buyer, einvoice_missing, search_text, created_at, updated_at, subscription_id, period_from, period_to, invoice_date_given, due_date_given) select :account, encode(int8send(:id_high) || int8send(:id_low), 'hex')::uuid, :kind, 1, 1, :is_final, number, ''::text <> '', :title, :today, :today, :currency, :language, :total_excl, :vat_rate, :vat_amount, :total_incl, 3::integer, :client, :company_name, :firstname, :lastname, :status_now, null::timestamptz, :open_amount, null::uuid, ''::text, int8send(:id_low) || int8send(:event_low), null::timestamptz, null::jsonb, null::jsonb, :missing, :search_text || lower(number), now(), now(), null::uuid, null::date, null::date, false::boolean, false::boolean from numbered on conflict do nothing returning number), stored as (insert into billing.document_row (account_id, document_id, position, name, description, quantity, unit, unit_price, vat_rate, vat_code, category) select :account, encode(int8send(:id_high) || int8send(:id_low), 'hex')::uuid, position - 1, name, description, quantity, unit, unit_price, vat_rate, vat_code, category from unnest(:names::text[], :descriptions::text[], :quantities::numeric[], :units::text[], :prices::numeric[], :rates::numeric[], :codes::text[], :categories::text[]) with ordinality as r (name, description, quantity, unit, unit_price, vat_rate, vat_code, category, position) where exists (select from inserted)) select number from inserted;
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
