-- A new client: the write transaction of chassis/src/write.rs around the insert of svc-relations/src/relation/store.rs.
-- The service makes ids and times itself and sends them; pgbench can only compute numbers, so two of them become the
-- id here: the time (growing by itself from `ms`, for the same locality as the service's UUIDv7) and a random half.
-- The event goes to a listener that nobody serves: delivering it would take CPU from what is measured.
\set ms :ms + 1
\set id_high (:ms << 16) | 28672 | random(0, 4095)
\set id_low random(-9223372036854775808, -4611686018427387905)
\set event_low random(-9223372036854775808, -4611686018427387905)
\set key random(1000000000000000, 4611686018427387903)
\set number random(100000, 999999)
\set slot random(0, 7)
begin;
insert into idempotency (account_id, route, key, fingerprint, created_at) values (:account, :route, :key, :fingerprint, now())
         on conflict (account_id, route, key) do update
            set fingerprint = excluded.fingerprint, response = null, created_at = excluded.created_at
            where idempotency.created_at <= now() - interval '24 hours';
with number as (insert into counter (account_id, name, value) values (:account, 'debtor', 1) on conflict (account_id, name) do update set value = counter.value + 1 returning value) insert into relations.relation (account_id, role, id, type, company_name, firstname, lastname, email, phone, address, zipcode, city, country, company_registration_number, vat_number, website, iban, bank_account_name, bic, external_id, payment_term, quote_expiration_days, email_invoices, email_reminders, mail_salutation, search_text, created_at, updated_at, version, debtor_number) select :account, :role, encode(int8send(:id_high) || int8send(:id_low), 'hex')::uuid, :type, :number, :firstname, :lastname, :email, :phone, :address, :zipcode, :city, :country, ''::text, ''::text, ''::text, ''::text, ''::text, ''::text, ''::text, :payment_term, null::integer, ''::text, ''::text, ''::text, :number::text || :search_text || lower(debtor_number), now(), now(), 1, debtor_number from (select case when value is null then '' else 'D-' || lpad(value::text, greatest(5, length(value::text)), '0') end as debtor_number from number) numbered on conflict (account_id, role, external_id) where external_id <> '' do nothing returning debtor_number;
with events as (
            insert into outbox (account_id, listener, entity_type, entity_id, sequence, id, type, data, depth, occurred_at, next_at)
            select :account, listener, entity_type, entity_id, sequence, id, type, data, depth, now(), now()
            from unnest(:listeners::text[], :entity_types::text[], array[encode(int8send(:id_high) || int8send(:id_low), 'hex')]::uuid[], :sequences::bigint[], array[encode(int8send(:id_high) || int8send(:event_low), 'hex')]::uuid[], :event_types::text[], :event_data::text[], :depths::integer[])
                as event (listener, entity_type, entity_id, sequence, id, type, data, depth)
        ), totals as (
            insert into total (account_id, list, bucket, slot, entries)
            select :account, list, bucket, slot, entries
            from unnest(:lists::text[], :buckets::date[], array[:slot, :slot, :slot, :slot]::smallint[], :entries::bigint[]) as t (list, bucket, slot, entries)
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
