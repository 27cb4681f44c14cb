//! Deals by the thousand, made by the database itself as the service would have made them: each in a phase of the first
//! pipeline, with the beginning of its history, and counted.

use crate::database::Database;
use crate::fill::{Wanted, id};

/// Adds open deals to an account, and leaves the tables as after hours of running.
pub async fn fill(database: &Database, wanted: &Wanted<'_>) -> Result<(), String> {
    eprintln!("Filling the account with {} deals", wanted.count());
    database.run(&statement(wanted)).await?;
    let tables = ["deal", "deal_step", "total"].map(|table| format!("vacuum analyze crm.{table};"));
    database.run(&format!("set statement_timeout = 0; {}", tables.join(" "))).await
}

fn statement(wanted: &Wanted<'_>) -> String {
    let Wanted { account, clients, from, to } = *wanted;
    let (people, id) = (clients.len().max(1), id());
    let clients = clients.join(",");
    format!(
        "set statement_timeout = 0;
with phases as (
    select array_agg(phase.id order by phase.position) as ids, array_agg(phase.name order by phase.position) as names,
        count(*) as count, pipeline.id as pipeline_id
    from crm.pipeline pipeline join crm.phase phase
        on phase.account_id = pipeline.account_id and phase.pipeline_id = pipeline.id
    where pipeline.account_id = '{account}' and pipeline.position = 1 group by pipeline.id
), series as materialized (
    select i, {id} as id, pipeline_id,
        ids[i % count + 1] as phase_id, names[i % count + 1] as phase_name,
        date_trunc('milliseconds', now() - interval '1 minute' * ({to} - i)) as created_at
    from generate_series({from}::bigint, {to}::bigint) i cross join phases
), deals as (
    insert into crm.deal (account_id, id, version, title, amount, status, priority, pipeline_id, phase_id, client_id,
        expected_close_date, source, phase_since, search_text, created_at, updated_at)
    select '{account}', id, 1, 'Levering ' || lpad(i::text, 6, '0'), 1000 + i % 9000, 'open', 'medium', pipeline_id,
        phase_id, ('{{{clients}}}'::uuid[])[i % {people} + 1], current_date + 30, 'Website', created_at,
        'levering ' || lpad(i::text, 6, '0'), created_at, created_at
    from series
), steps as (
    insert into crm.deal_step (account_id, deal_id, version, pipeline_id, phase_id, phase_name, status, at)
    select '{account}', id, 1, pipeline_id, phase_id, phase_name, 'open', created_at from series
)
insert into total (account_id, list, bucket, slot, entries)
select '{account}', list, coalesce(day, '0001-01-01'), 0, count(*)
from (select (created_at at time zone 'UTC')::date as day from series) days
    cross join unnest(array['deal', 'deal/open']) as list
group by grouping sets ((list, day), (list))
on conflict (account_id, list, bucket, slot) do update set entries = total.entries + excluded.entries;
"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_fill_goes_on_where_the_first_one_ended() {
        let wanted = Wanted { account: "a", clients: &["c".to_owned()], from: 101, to: 200 };
        assert!(statement(&wanted).contains("generate_series(101::bigint, 200::bigint)"));
    }
}
