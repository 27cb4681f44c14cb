//! Tasks to measure with, made by the database: the time of making them is not what is measured.

use crate::database::Database;

/// They are spread over so many days.
const DAYS: u64 = 365;

/// Adds tasks to an account, half of them completed, and leaves the tables as after hours of running.
pub async fn fill(database: &Database, account: &str, count: u64) -> Result<(), String> {
    eprintln!("Filling an account with {count} tasks");
    database.run(&rows(account, count)).await?;
    database.run("set statement_timeout = 0; vacuum analyze work.task; vacuum analyze work.total;").await
}

fn rows(account: &str, count: u64) -> String {
    format!(
        "set statement_timeout = 0;
with series as (
    select i, date_trunc('milliseconds', now() - interval '{DAYS} days' * ({count} - i) / {count}) as created_at
    from generate_series(1, {count}) i
), parts as materialized (
    select *, (created_at at time zone 'UTC')::date as day,
        encode(int8send((floor(extract(epoch from created_at) * 1000)::bigint << 16) | 28672 | (i % 4096))
            || substring(uuid_send(gen_random_uuid()) from 9), 'hex')::uuid as id
    from series
), tasks as (
    insert into work.task (account_id, id, title, category, notes, deadline_on, duration_minutes, completed_at,
        created_at, updated_at)
    select '{account}', id, 'Bellen over levering ' || lpad(i::text, 6, '0'), 'call', '', day + 7, 15,
        case when i % 2 = 0 then created_at end, created_at, created_at
    from parts order by i
)
insert into total (account_id, list, bucket, slot, entries)
select '{account}', 'task', coalesce(day, '0001-01-01'), 0, count(*) from parts group by grouping sets ((day), ())
on conflict (account_id, list, bucket, slot) do update set entries = total.entries + excluded.entries;
"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_tasks_are_made_as_are_missing() {
        assert!(rows("a", 700).contains("generate_series(1, 700)"));
    }
}
