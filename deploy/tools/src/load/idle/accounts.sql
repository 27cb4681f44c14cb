-- The accounts :from to :to, and ids of three records of each.
create temporary table idle on commit drop as
select i, ('019a0000-0000-7000-8000-' || lpad(to_hex(i), 12, '0'))::uuid as account_id, now() - interval '60 days' as old,
    now() - interval '10 days' as recent
from generate_series(:from, :to) i;

create temporary table idle_record on commit drop as
select idle.*, n, ('019a0001-000' || n || '-7000-8000-' || lpad(to_hex(i), 12, '0'))::uuid as id
from idle cross join generate_series(1, 3) n;
