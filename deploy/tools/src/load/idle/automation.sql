-- How far it has read the logs of the others.
\if :has_log
    insert into received (account_id, source, position, before)
    select account_id, source, 3, 3 from idle cross join unnest('{relations,billing,crm,support,work}'::text[]) as source
    on conflict do nothing;
\endif

-- None of these is old enough to be purged.
insert into automation.event (account_id, id, type, entity_type, entity_id, sequence, data, occurred_at, received_at)
select account_id, id, 'idle.created', 'idle', id::text, 1000, '{}', recent, recent from idle_record
on conflict do nothing;

-- It starts tomorrow.
insert into automation.flow (account_id, id, name, description, category, trigger_type, trigger_key, active, step_count,
    version, ready_made, next_start_at, created_at, updated_at)
select account_id, id, 'Idle', '', '', 'schedule', '', true, 1, 1, '', now() + interval '1 day', old, old
from idle_record where n = 1
on conflict do nothing;

insert into automation.run (account_id, id, flow_id, flow_version, flow_name, trigger_type, trigger_key, entity_type,
    entity_id, event, depth, status, step, created_at, updated_at, started_at, finished_at)
select account_id, id, id, 1, 'Idle', 'schedule', '', '', '', '{}', 0, 'completed', 'idle', recent, recent, recent, recent
from idle_record where n = 1
on conflict do nothing;

insert into automation.webhook_delivery (account_id, id, endpoint_id, type, payload, status, attempts, created_at,
    delivered_at)
select account_id, id, id, 'idle.created', '{}', 'delivered', 1, recent, recent from idle_record where n = 1
on conflict do nothing;
