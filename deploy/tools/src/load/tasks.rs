//! Tasks by the thousand, made by the database: the time of making them is not what is measured. Half of them are
//! completed.

use crate::database::Database;
use crate::fill::{Wanted, id};

/// They are spread over so many days.
const DAYS: u64 = 365;

/// Adds tasks to an account, and leaves the tables as after hours of running.
pub async fn fill(database: &Database, wanted: &Wanted<'_>) -> Result<(), String> {
    eprintln!("Filling the account with {} tasks", wanted.count());
    database.run(&statement(wanted)).await?;
    database.run("set statement_timeout = 0; vacuum analyze work.task; vacuum analyze work.total;").await
}

fn statement(wanted: &Wanted<'_>) -> String {
    let Wanted { account, from, to, .. } = *wanted;
    let id = id();
    format!(
        "set statement_timeout = 0;
with series as (
    select i, date_trunc('milliseconds', now() - interval '{DAYS} days' * ({to} - i) / {to}) as created_at
    from generate_series({from}::bigint, {to}::bigint) i
), parts as materialized (
    select *, (created_at at time zone 'UTC')::date as day, {id} as id from series
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
    fn a_second_fill_goes_on_where_the_first_one_ended() {
        let wanted = Wanted { account: "a", clients: &[], from: 101, to: 200 };
        assert!(statement(&wanted).contains("generate_series(101::bigint, 200::bigint)"));
    }
}
