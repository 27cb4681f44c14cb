-- What an account has in the schema of every service. Tables that a release does not have yet are left out, so that
-- releases can be compared.
select to_regclass('log') is not null as has_log, to_regclass('snapshot') is not null as has_snapshot,
    exists (select from pg_attribute where attrelid = to_regclass('scan_turn') and attname = 'quiet_until') as has_quiet
\gset

insert into account (account_id, name, country, timezone, currency, created_at, updated_at)
select account_id, 'idle-' || i, 'NL', 'Europe/Amsterdam', 'EUR', old, old from idle
on conflict do nothing;

-- Not old enough to be purged.
insert into idempotency (account_id, route, key, fingerprint, response, created_at)
select account_id, '/idle', 'idle', sha256('idle'), '\x', now() from idle
on conflict do nothing;

\if :has_log
    insert into log (account_id, id, at, actor, request_id, method, kind, record_id, version, change, message, image,
        image_hash, event, sequence, data)
    select account_id, id, old, 'idle', 'idle', '/idle', 'idle', id::text, 1, 'created', 'idle.Idle',
        decode(repeat('61', 200), 'hex'), sha256('idle'), 'idle.created', 1000, '{}'
    from idle_record
    on conflict do nothing;

    insert into feed (account_id, position, id, hash)
    select account_id, n, id, sha256('idle') from idle_record
    on conflict do nothing;

    insert into feed_head (account_id, position, hash, at)
    select account_id, 3, sha256('idle'), old from idle
    on conflict do nothing;

    -- All of them have read everything.
    insert into reader (account_id, name, position, target, since)
    select account_id, name, 3, 3, old from idle cross join unnest(:'readers'::text[]) as name
    on conflict do nothing;
\else
    insert into audit (account_id, id, at, actor, request_id, method, entity_type, entity_id, message, image)
    select account_id, id, old, 'idle', 'idle', '/idle', 'idle', id::text, 'idle.Idle', decode(repeat('61', 200), 'hex')
    from idle_record
    on conflict do nothing;
\endif

-- The log was compared with the records.
\if :has_snapshot
    insert into snapshot (account_id, kind, after, seen, next_at, began_at, ended_at, logged)
    select account_id, null, '', 'ffffffff-ffff-ffff-ffff-ffffffffffff', old, old, old, 0 from idle
    on conflict do nothing;
\endif

-- A scan of an account is work, and some accounts are scanned while it is measured: as many as come in that time. Where
-- turns depend on what comes, nothing comes here, so that after its last turn an account rests for :rest.
\if :scans
    \if :has_quiet
        insert into scan_turn (account_id, next_at, quiet_next_at, quiet_until, quiet_position, quiet_zone)
        select account_id, last + interval '1 hour', last + interval '1 hour', last + :'rest'::interval, 3,
            'Europe/Amsterdam'
        from (select account_id, now() - :'rest'::interval * random() as last from idle) turn
        on conflict (account_id) do update
            set next_at = excluded.next_at, quiet_next_at = excluded.quiet_next_at, quiet_until = excluded.quiet_until,
                quiet_position = excluded.quiet_position, quiet_zone = excluded.quiet_zone;
    \else
        insert into scan_turn (account_id, next_at)
        select account_id, now() + interval '1 hour' * random() from idle
        on conflict (account_id) do update set next_at = excluded.next_at;
    \endif
\endif

-- Sent, and its content not old enough to be forgotten.
\if :mails
    insert into mail (account_id, id, sender, recipients, reference, status, next_at, created_at, done_at, content)
    select account_id, id, 'idle@example.com', '{idle@example.com}', 'idle', 'sent', recent, recent, recent, '\x61'
    from idle_record where n = 1
    on conflict do nothing;
\endif
