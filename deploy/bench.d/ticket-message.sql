-- A reply on a ticket: the write transaction of chassis/src/write.rs around what `create` of
-- svc-support/src/message/operations.rs does: lock the ticket, read its channel, insert the message, read the statuses,
-- update the ticket. The tickets were filled in with ids that can be computed (deploy/tools/src/load/tickets.rs) and
-- without an address, so no mail goes with it. The event goes to a listener that nobody serves.
\set id_low -9223372036854775807 + random(1, :tickets)
\set ms :ms + 1
\set message_high (:ms << 16) | 28672 | random(0, 4095)
\set message_low random(-9223372036854775808, -4611686018427387905)
\set event_low random(-9223372036854775808, -4611686018427387905)
\set key random(1000000000000000, 4611686018427387903)
begin;
insert into idempotency (account_id, route, key, fingerprint, created_at) values (:account, :route, :key, :fingerprint, now())
         on conflict (account_id, route, key) do update
            set fingerprint = excluded.fingerprint, response = null, created_at = excluded.created_at
            where idempotency.created_at <= now() - interval '24 hours';
select id, version, number, subject, status, priority, client_name, client_email, client_id, source, channel_id, reply_secret, message_count, last_message_at, created_at, updated_at, closed_at from support.ticket where account_id = :account and id = encode(int8send(:id_high) || int8send(:id_low), 'hex')::uuid for update \gset
\set next :version + 1
\set messages :message_count + 1
\set sequence :next * 1000
select id, name, email, from_email, from_name, inbound_key, forwarding_emails, active, position, created_at, updated_at from support.channel where account_id = :account and active order by id is distinct from :channel_id, position, name, id limit 1;
insert into support.message (account_id, id, ticket_id, inbound, note, body, html, author_name, author_email, author_user_id, recipients, cc, message_id, mail_id, attachments, size, created_at, automatic) values (:account, encode(int8send(:message_high) || int8send(:message_low), 'hex')::uuid, encode(int8send(:id_high) || int8send(:id_low), 'hex')::uuid, :no, :no, :body, :html, :author, ''::text, null::bigint, :none, :none, ''::text, null::uuid, :attachments, :size, now(), :no);
select name from support.status where account_id = :account and active order by position, name;
update support.ticket set version = :next, subject = :subject, status = :status, priority = :priority, client_name = :client_name, client_email = :client_email, client_id = :client_id, message_count = :messages, last_message_at = now(), search_text = lower(:number || chr(10) || :subject || chr(10) || :client_name || chr(10)), updated_at = now(), closed_at = null::timestamptz where account_id = :account and id = encode(int8send(:id_high) || int8send(:id_low), 'hex')::uuid;
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
