-- A task is completed or opened again: the write transaction of chassis/src/write.rs around `set_completed` of
-- svc-work/src/task/store.rs. No event goes with it. The tasks were filled in with ids that can be computed
-- (deploy/tools/src/load/tasks.rs).
\set id_low -9223372036854775807 + random(1, :tasks)
\set event_low random(-9223372036854775808, -4611686018427387905)
\set key random(1000000000000000, 4611686018427387903)
\set turn random(0, 1)
begin;
insert into idempotency (account_id, route, key, fingerprint, created_at) values (:account, :route, :key, :fingerprint, now())
         on conflict (account_id, route, key) do update
            set fingerprint = excluded.fingerprint, response = null, created_at = excluded.created_at
            where idempotency.created_at <= now() - interval '24 hours';
update work.task set completed_at = case when (:turn = 1) then coalesce(completed_at, now()) end, updated_at = case when (completed_at is not null) = (:turn = 1) then updated_at else now() end where account_id = :account and id = encode(int8send(:id_high) || int8send(:id_low), 'hex')::uuid returning id, title, category, notes, deadline_on, deadline_at, duration_minutes, client_id, project_id, deal_id, completed_at, created_at, updated_at \gset
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
            from unnest(array[encode(int8send(:id_high) || int8send(:event_low), 'hex')]::uuid[], :entry_types::text[], array[encode(int8send(:id_high) || int8send(:id_low), 'hex')]::text[], :entry_messages::text[], array[:response]::bytea[])
                as entry (id, entity_type, entity_id, message, image)
        )
        update idempotency set response = :response where account_id = :account and route = :route and key = :key;
commit;
