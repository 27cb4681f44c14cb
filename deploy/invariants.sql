-- What must always be true of the data, one row for each rule: its name and how often it is broken. Reads all schemas,
-- so it needs a role that may: the superuser, or one with pg_read_all_data. Used by deploy/invariants.

-- Numbers have no gaps: what a counter has given out, a document has.
with given as (
    select account_id, kind, found[1] as year, found[2]::bigint as number
    from billing.document cross join lateral regexp_match(number, '-(\d{4})-(\d{1,18})$') found
    where is_final and found is not null
)
select 'numbers of final documents have no gaps' as rule, count(*) as broken
from billing.counter c cross join lateral generate_series(1, c.value) taken
where c.name ~ '^(invoice|quote|workorder)/\d{4}$' and not exists (
    select from given where given.account_id = c.account_id
        and given.kind || '/' || given.year = c.name and given.number = taken);

select 'numbers of documents are unique', count(*)
from (select 1 from billing.document group by account_id, kind, number having count(*) > 1) doubled;

select 'numbers of tickets have no gaps', count(*)
from support.counter c
where c.name = 'ticket' and c.value <> (select count(*) from support.ticket t where t.account_id = c.account_id);

-- Money adds up.
select 'what is paid is the sum of the payments', count(*)
from billing.document d
where d.paid_amount <> coalesce((
    select sum(p.amount) from billing.payment p
    where p.account_id = d.account_id and p.document_id = d.id and p.status = 'paid'), 0);

select 'totals are net and VAT', count(*) from billing.document where total_incl <> total_excl + vat_amount;

select 'documents have the rows that they count', count(*)
from billing.document d
where d.row_count <> (select count(*) from billing.document_row r where r.account_id = d.account_id and r.document_id = d.id);

select 'no day of a subscription is billed twice', count(*)
from (
    select period_from <= max(period_to) over (
        partition by account_id, subscription_id order by period_from
        rows between unbounded preceding and 1 preceding) as again
    from billing.document where subscription_id is not null
) periods
where again;

-- Every event was delivered or waits for it. Of the last day, because delivered ones are not kept for ever.
-- Compared as sets, as each service may have an account on another node.
select format($$
    select 'events of %1$s are delivered or waiting', count(*) from (
        (
            select account_id, id::text from %1$s.%2$s
            where %4$s and created_at > (select max(created_at) from %1$s.%2$s) - interval '1 day'
        ) except (
            select account_id, entity_id from automation.event where type = %3$L
            union all
            select undelivered.account_id, record_id from (
                select account_id, id from %1$s.pending
                union all
                select feed.account_id, feed.id from %1$s.feed join %1$s.reader
                    on reader.account_id = feed.account_id and feed.position > reader.position
                where reader.name = 'automation'
                union all
                select account_id, id from %1$s.reader_exception where reader = 'automation'
            ) undelivered
            join %1$s.log on log.account_id = undelivered.account_id and log.id = undelivered.id and event = %3$L
        )
    ) missing
    $$, service, records, event, which)
from (values
    ('relations', 'relation', 'customer.created', $$role = 'client'$$),
    ('crm', 'deal', 'deal.created', 'true'),
    ('support', 'ticket', 'ticket.created', 'true')
) as told (service, records, event, which)
\gexec

-- The log of each service. Positions count 1, 2, 3, …; each hash covers its entry and the hash before it; versions of a
-- record have no gaps; nobody has read further than there is.
select format($$
    select 'log of %1$s: positions have no gaps', count(*)
    from (select account_id, count(*) as entries, min(position) as first, max(position) as last
          from %1$s.feed group by account_id) counted
    left join %1$s.feed_head head on head.account_id = counted.account_id
    where first <> 1 or last <> entries or head.position is distinct from last
    $$, name),
    format($$
    select 'log of %1$s: an entry has one position, or waits for it', count(*)
    from (select log.account_id, log.id, count(feed.id) + count(pending.id) as places
          from %1$s.log
          left join %1$s.feed on feed.account_id = log.account_id and feed.id = log.id
          left join %1$s.pending on pending.account_id = log.account_id and pending.id = log.id
          where log.version > 0 and log.account_id <> '00000000-0000-0000-0000-000000000000'
          group by log.account_id, log.id) entries
    where places <> 1
    $$, name),
    format($$
    select 'log of %1$s: the chain of hashes holds', count(*)
    from (
        select hash, int8send(32) || coalesce(
                lag(hash) over (partition by feed.account_id order by position), decode(repeat('00', 32), 'hex'))
            || int8send(8) || int8send(position)
            || int8send(octet_length(kind)) || convert_to(kind, 'UTF8')
            || int8send(octet_length(record_id)) || convert_to(record_id, 'UTF8')
            || int8send(8) || int8send(version)
            || int8send(8) || int8send((extract(epoch from at) * 1000000)::bigint)
            || int8send(octet_length(actor)) || convert_to(actor, 'UTF8')
            || int8send(coalesce(octet_length(image_hash), 0)) || coalesce(image_hash, '') as covered
        from %1$s.feed join %1$s.log on log.account_id = feed.account_id and log.id = feed.id
    ) links where hash <> sha256(covered)
    $$, name),
    format($$
    select 'log of %1$s: images are what their hashes say', count(*) from %1$s.log
    where image is not null and sha256(image) <> image_hash
    $$, name),
    format($$
    select 'log of %1$s: versions of a record have no gaps', count(*)
    from (select 1 from %1$s.log where change is not null
          group by account_id, record_id, kind having count(*) <> max(version) - min(version) + 1) gaps
    $$, name),
    format($$
    select 'log of %1$s: listeners are within it', count(*)
    from %1$s.reader left join %1$s.feed_head head on head.account_id = reader.account_id
    where reader.position > coalesce(head.position, 0) or reader.target > coalesce(head.position, 0)
    $$, name)
from unnest(array['gateway', 'relations', 'billing', 'crm', 'support', 'work', 'automation']) as service (name)
\gexec

-- What a service has taken of another's log, that one has sent.
select 'services have read no further than the logs of others go', count(*)
from (
    select account_id, source, position from automation.received
    union all select account_id, source, position from billing.received
    union all select account_id, source, position from crm.received
    union all select account_id, source, position from work.received
) taken
left join (
    select account_id, 'relations' as source, position from relations.feed_head
    union all select account_id, 'billing', position from billing.feed_head
    union all select account_id, 'crm', position from crm.feed_head
    union all select account_id, 'support', position from support.feed_head
    union all select account_id, 'work', position from work.feed_head
    union all select account_id, 'automation', position from automation.feed_head
) head using (account_id, source)
where taken.position > coalesce(head.position, 0);

-- The counters of lists are what they count.
with counted as (
    select kind as list, account_id, count(*) as entries from billing.document group by 1, 2
    union all select 'product', account_id, count(*) from billing.product group by 2
    union all select 'subscription', account_id, count(*) from billing.subscription group by 2
    union all select 'deal', account_id, count(*) from crm.deal group by 2
    union all select role, account_id, count(*) from relations.relation group by 1, 2
    union all select 'ticket', account_id, count(*) from support.ticket group by 2
    union all select 'task', account_id, count(*) from work.task group by 2
    union all select 'project', account_id, count(*) from work.project group by 2
    union all select 'note', account_id, count(*) from work.note group by 2
    union all select 'file', account_id, count(*) from work.file where deleted_at is null group by 2
    -- Less what was counted.
    union all select list, account_id, -entries from (
        select list, account_id, entries, bucket from billing.total
        union all select list, account_id, entries, bucket from crm.total
        union all select list, account_id, entries, bucket from relations.total
        union all select list, account_id, entries, bucket from support.total
        union all select list, account_id, entries, bucket from work.total
    ) slots where bucket = '0001-01-01' and list not like '%/%' and list <> 'payment'
)
select 'lists have the totals that they show', count(*)
from (select 1 from counted group by list, account_id having sum(entries) <> 0) wrong;

-- Counters of filters, and segments of both levels, are what they count, if the list is prepared. Counters of filters also if
-- they were kept from the beginning: the database had them when it was new, and no older release wrote to it. The name of a
-- counter is that of its list, or list/column/value, or list/value for the status of deals and the type of relations. The list
-- of all payments had no counter from the beginning, so it is compared like a filter.
select coalesce(bool_or(installed_on < (select min(installed_on) from billing._sqlx_migrations) + interval '1 minute'), false)
    as kept_from_the_beginning
from billing._sqlx_migrations where version = 80 \gset

select
    format($$
    select 'filters of %1$s have the totals that they show: %2$s', count(*)
    from (
        select account_id, list, sum(entries) as entries from %1$s.total
        where bucket = '0001-01-01' and (list like '%2$s/%%' or list = 'payment' and '%2$s' = 'payment')
            and (list like '%2$s/%%' and list not like '%2$s/%%/%%'
            or %6$L and not exists (select from %1$s.audit where audit.account_id = total.account_id)
            or exists (
                select from %1$s.prepared_list p
                where p.account_id = total.account_id and p.list = total.list and not exists (
                    select from %1$s.audit where audit.account_id = p.account_id and audit.id > p.seen)))
        group by account_id, list
    ) counted where entries <> (
        select count(*) from %1$s.%3$s as entry where entry.account_id = counted.account_id and %4$s and %5$s)
    $$, service, list, records, which, filter, :'kept_from_the_beginning'::boolean),
    format($$
    select 'segments of %1$s have the entries that they count: %2$s', count(*)
    from (
        select *, lag(last_created_at, 1, '-infinity') over earlier as after_created_at,
            lag(last_id, 1, '00000000-0000-0000-0000-000000000000') over earlier as after_id
        from %1$s.list_segment where (list = '%2$s' or list like '%2$s/%%') and exists (
            select from %1$s.prepared_list p
            where p.account_id = list_segment.account_id and p.list = list_segment.list and not exists (
                select from %1$s.audit where audit.account_id = p.account_id and audit.id > p.seen))
        window earlier as (partition by account_id, list, level order by last_created_at, last_id)
    ) counted where entries <> (
        select count(*) from %1$s.%3$s as entry
        where entry.account_id = counted.account_id and (entry.created_at, entry.id) <= (last_created_at, last_id)
            and (entry.created_at, entry.id) > (after_created_at, after_id) and %4$s and %5$s)
    $$, service, list, records, which, filter)
from (values
    ('billing', 'invoice', 'document', $$kind = 'invoice'$$),
    ('billing', 'quote', 'document', $$kind = 'quote'$$),
    ('billing', 'workorder', 'document', $$kind = 'workorder'$$),
    ('billing', 'product', 'product', 'true'),
    ('billing', 'subscription', 'subscription', 'true'),
    ('billing', 'payment', 'payment', 'true'),
    ('crm', 'deal', 'deal', 'true'),
    ('relations', 'client', 'relation', $$role = 'client'$$),
    ('relations', 'supplier', 'relation', $$role = 'supplier'$$),
    ('support', 'ticket', 'ticket', 'true'),
    ('work', 'task', 'task', 'true'),
    ('work', 'project', 'project', 'true'),
    ('work', 'note', 'note', 'true'),
    ('work', 'file', 'file', 'deleted_at is null'),
    ('automation', 'run', 'run', 'true')
) as lists (service, list, records, which)
cross join (values ($$
    case when list not like '%/%' then true
        -- Filters that no column has.
        when list like 'task/status/%' then
            (to_jsonb(entry) ->> 'completed_at' is null) = (list = 'task/status/open')
        when list like '%/generation_mode/%' then
            (to_jsonb(entry) ->> 'is_final')::boolean = (list like '%/final')
        when list like '%/is_credit/true' then to_jsonb(entry) ->> 'credits' is not null
        when list like '%/open/true' then
            (to_jsonb(entry) ->> 'is_final')::boolean and to_jsonb(entry) ->> 'credits' is null
            and (to_jsonb(entry) ->> 'open_amount')::numeric > 0
            and to_jsonb(entry) ->> 'payment_status' in ('open', 'partially_paid', 'partially_credited')
        when list like '%/%/%' then to_jsonb(entry) ->> split_part(list, '/', 2)
            = substr(list, length(split_part(list, '/', 1)) + length(split_part(list, '/', 2)) + 3)
        else coalesce(to_jsonb(entry) ->> 'status', to_jsonb(entry) ->> 'type') = split_part(list, '/', 2) end
    $$)) as filters (filter)
\gexec

-- A mail is queued, sent or given up.
select 'mail is queued, sent or dead', count(*)
from (select status from billing.mail union all select status from support.mail) mail
where status not in ('queued', 'sent', 'dead');

-- What was answered under an idempotency key is there to be answered again.
select 'idempotency keys have their answers', count(*)
from (
    select response from relations.idempotency union all select response from billing.idempotency
    union all select response from crm.idempotency union all select response from support.idempotency
    union all select response from work.idempotency
) keys where response is null;

-- Accounts of keys exist, and every service was told of them.
select 'keys belong to accounts', count(*)
from gateway.api_key k where not exists (select from gateway.account a where a.account_id = k.account_id);

select 'services know the accounts', count(*)
from gateway.account
where account_id not in (select account_id from relations.account)
    or account_id not in (select account_id from billing.account);
