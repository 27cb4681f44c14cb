insert into work.task (account_id, id, title, category, notes, completed_at, created_at, updated_at)
select account_id, id, 'Idle', 'task', '', old, old, old from idle_record where n = 1
on conflict do nothing;
