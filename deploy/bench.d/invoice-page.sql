-- A page deep in the list, newest first: the day on which it begins, from the counters (`locate` of
-- chassis/src/totals.rs), then the page itself (`list` of svc-billing/src/document/store/list.rs, built by
-- chassis/src/list.rs). The service sends the end of that day as a time. `low` and `high` bound the pages asked for.
\set asked (random(:low, :high) - 1) * :limit
select bucket, (through - entries)::bigint as skipped from (
            select bucket, sum(entries) as entries, sum(sum(entries)) over (order by bucket desc) as through
            from total where account_id = :account and list = :list and bucket > :all_days group by bucket
         ) days where through > :asked order by bucket desc limit 1 \gset
\set offset :asked - :skipped
select page.*, counted.total from (select coalesce(sum(entries), 0)::bigint as total from total where account_id = :account and list = :list and bucket = :all_days) counted left join lateral (select id, number, title, invoice_date, due_date, created_at, total_excl, vat_rate, vat_amount, total_incl, client_id, payment_status, paid_at, sent_at, project_number, credits, external_id, true as found from billing.document where account_id = :account and kind = :kind and created_at < (:bucket::date + 1)::timestamp at time zone 'UTC' and (created_at, id) <= (select created_at, id from billing.document where account_id = :account and kind = :kind and created_at < (:bucket::date + 1)::timestamp at time zone 'UTC' order by created_at desc, id desc limit 1 offset :offset) order by created_at desc, id desc limit :limit) page on true;
