insert into crm.setup (account_id, created_at)
select account_id, old from idle
on conflict do nothing;

insert into crm.pipeline (account_id, id, name, active, position, created_at, updated_at)
select account_id, id, 'Idle', true, 1, old, old from idle_record where n = 1
on conflict do nothing;

insert into crm.phase (account_id, id, pipeline_id, name, position, created_at, updated_at)
select phase.account_id, phase.id, pipeline.id, 'Idle ' || phase.n, phase.n, phase.old, phase.old
from idle_record phase join idle_record pipeline on pipeline.account_id = phase.account_id and pipeline.n = 1
on conflict do nothing;

insert into crm.deal (account_id, id, version, title, status, priority, pipeline_id, phase_id, client_id, source,
    phase_since, won_at, search_text, created_at, updated_at)
select account_id, id, 1, 'Idle', 'won', 'low', id, id, id, '', old, old, 'idle', old, old
from idle_record where n = 1
on conflict do nothing;
