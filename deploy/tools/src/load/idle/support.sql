insert into support.status (account_id, id, name, active, position, created_at, updated_at)
select account_id, id, (array['new', 'waiting', 'closed'])[n], true, n, old, old from idle_record
on conflict do nothing;

insert into support.ticket (account_id, id, version, number, subject, status, priority, client_name, client_email, source,
    reply_secret, message_count, search_text, created_at, updated_at, closed_at)
select account_id, id, 1, 'T-00001', 'Idle', 'closed', 0, 'Idle', '', 'api', uuid_send(id), 0, 'idle', old, old, old
from idle_record where n = 1
on conflict do nothing;

-- It is looked at again tomorrow.
insert into support.domain (account_id, host, domain, subdomain, receiving, verified, selector, private_key, found,
    created_at, updated_at, check_at)
select account_id, 'idle-' || i || '.example.com', 'example.com', 'idle-' || i, false, false, 'idle', '', '{}', old, old,
    now() + interval '1 day'
from idle
on conflict do nothing;
