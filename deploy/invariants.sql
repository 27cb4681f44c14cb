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
select 'events are delivered or waiting', count(*)
from (
    (
        select account_id, id::text as entity_id, 'customer.created' as type from relations.relation
        where role = 'client' and created_at > (select max(created_at) from relations.relation) - interval '1 day'
        union all
        select account_id, id::text, 'deal.created' from crm.deal
        where created_at > (select max(created_at) from crm.deal) - interval '1 day'
        union all
        select account_id, id::text, 'ticket.created' from support.ticket
        where created_at > (select max(created_at) from support.ticket) - interval '1 day'
    ) except (
        select account_id, entity_id, type from automation.event
        union all
        select account_id, entity_id::text, type from relations.outbox where listener = 'automation'
        union all
        select account_id, entity_id::text, type from crm.outbox where listener = 'automation'
        union all
        select account_id, entity_id::text, type from support.outbox where listener = 'automation'
    )
) missing;

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
    ) slots where bucket = '0001-01-01' and list not like '%/%'
)
select 'lists have the totals that they show', count(*)
from (select 1 from counted group by list, account_id having sum(entries) <> 0) wrong;

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
