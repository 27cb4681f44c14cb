-- A deal to another phase: the write transaction of chassis/src/write.rs around what `shift` of
-- svc-crm/src/deal/operations.rs does: lock the deal, read the pipelines, update with an entry of its history. The deals
-- were filled in with ids that can be computed (deploy/tools/src/load/deals.rs). The event goes to a listener that nobody
-- serves. One of four moves goes to the phase where the deal is.
\set id_low -9223372036854775807 + random(1, :deals)
\set event_low random(-9223372036854775808, -4611686018427387905)
\set key random(1000000000000000, 4611686018427387903)
\set which random(1, :phase_count)
begin;
insert into idempotency (account_id, route, key, fingerprint, created_at) values (:account, :route, :key, :fingerprint, now())
         on conflict (account_id, route, key) do update
            set fingerprint = excluded.fingerprint, response = null, created_at = excluded.created_at
            where idempotency.created_at <= now() - interval '24 hours';
select id, version, title, client_id, pipeline_id, phase_id, amount, priority, status, expected_close_date, source, phase_since, won_at, lost_at, created_at, updated_at from crm.deal where account_id = :account and id = encode(int8send(:id_high) || int8send(:id_low), 'hex')::uuid for update \gset
\set next :version + 1
\set sequence :next * 1000
select pipeline.id, pipeline.name, pipeline.active, phase.id, phase.name, phase.position from crm.pipeline pipeline join crm.phase phase on phase.account_id = pipeline.account_id and phase.pipeline_id = pipeline.id where pipeline.account_id = :account order by pipeline.position, pipeline.id, phase.position, phase.id;
with step as (insert into crm.deal_step (account_id, deal_id, version, pipeline_id, phase_id, phase_name, status, at, quote_id) select :account, encode(int8send(:id_high) || int8send(:id_low), 'hex')::uuid, :next, :pipeline_id, (:phases::uuid[])[:which], name, :status, now(), null::uuid from crm.phase where account_id = :account and id = (:phases::uuid[])[:which] and :is_step) update crm.deal set version = :next, title = :title, client_id = :client_id, pipeline_id = :pipeline_id, phase_id = (:phases::uuid[])[:which], amount = :amount, priority = :priority, status = :status, expected_close_date = :expected_close_date, source = :source, phase_since = now(), won_at = null::timestamptz, lost_at = null::timestamptz, updated_at = now(), search_text = lower(:title) where account_id = :account and id = encode(int8send(:id_high) || int8send(:id_low), 'hex')::uuid;
with events as (
            insert into outbox (account_id, listener, entity_type, entity_id, sequence, id, type, data, depth, occurred_at, next_at)
            select :account, listener, entity_type, entity_id, sequence, id, type, data, depth, now(), now()
            from unnest(:listeners::text[], :entity_types::text[], array[encode(int8send(:id_high) || int8send(:id_low), 'hex')]::uuid[], array[:sequence]::bigint[], array[encode(int8send(:id_high) || int8send(:event_low), 'hex')]::uuid[], :event_types::text[], :event_data::text[], :depths::integer[])
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
            from unnest(array[encode(int8send(:id_high) || int8send(:event_low), 'hex')]::uuid[], :entry_types::text[], array[encode(int8send(:id_high) || int8send(:id_low), 'hex')]::text[], :entry_messages::text[], array[:response]::bytea[])
                as entry (id, entity_type, entity_id, message, image)
        )
        update idempotency set response = :response where account_id = :account and route = :route and key = :key;
commit;
