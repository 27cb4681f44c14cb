-- Distributes the schemas of the mesh over the nodes of a Citus cluster, by account.
--
--   psql -d administration -v ON_ERROR_STOP=1 -f deploy/distribute.sql
--
-- To be run on the coordinator by a superuser after the migrations, and again after every migration that adds a table:
-- what is distributed already is left alone. The statements are made from the catalogue, so that no table is forgotten;
-- to only see them, leave out the last line. See GROWING.md.
--
-- The tables of a schema are one group, whose shards are moved together, and those of two schemas are not. For a group
-- with tables of several owners Citus copies changes with one subscription for each owner, but waits until those have
-- caught up that have begun to: what is written during a move would be lost with the others.

with recursive ours as (
    select c.oid, n.nspname || '.' || c.relname as name, n.nspname || '.idempotency' as first_of_group
    from pg_class c join pg_namespace n on n.oid = c.relnamespace
    where n.nspname in ('gateway', 'relations', 'billing', 'crm', 'support', 'work', 'automation')
      and c.relkind in ('r', 'p')
      -- They divide work among processes and not accounts: they stay on the coordinator.
      and c.relname not in ('_sqlx_migrations', 'lease', 'replica', 'wake_up', 'known_account')
      -- Not distributed yet.
      and not exists (select from pg_trigger t join pg_proc p on p.oid = t.tgfoid
                      where t.tgrelid = c.oid and p.proname = 'citus_truncate_trigger')
), layers as (
    select oid, 0 as layer from ours
    union
    -- What others refer to comes before them.
    select k.conrelid, l.layer + 1 from layers l join pg_constraint k on k.confrelid = l.oid
    where k.contype = 'f' and k.conrelid <> k.confrelid and l.layer < 100
)
select case
        -- Found without an account, so each node has all of them: keys, the accounts that they are of, mail domains.
        when name in ('gateway.account', 'gateway.api_key', 'support.mail_route')
            then format('select create_reference_table(%L)', name)
        else format('select create_distributed_table(%L, %L, colocate_with => %L)', name, 'account_id',
                    case name when first_of_group then 'none' else first_of_group end)
    end
from ours join layers using (oid)
group by name, first_of_group
order by max(layer), name <> first_of_group, name
\gexec
