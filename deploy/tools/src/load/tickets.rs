//! Tickets by the thousand, made by the database itself as the service would have made them: numbered, waiting for their
//! client, and counted. None has an address, so that answering them sends no mail: that is not what is measured.

use crate::database::Database;
use crate::fill::{Wanted, id};

/// What they are answered.
pub const REPLY: &str = "Dank voor uw bericht. De levering is vanmorgen vertrokken en komt morgen tussen negen en twaalf \
                         aan. Laat het gerust weten als dat niet uitkomt.";

/// Adds tickets to an account, and leaves the tables as after hours of running.
pub async fn fill(database: &Database, wanted: &Wanted<'_>) -> Result<(), String> {
    eprintln!("Filling the account with {} tickets", wanted.count());
    database.run(&statement(wanted)).await?;
    database
        .run("set statement_timeout = 0; vacuum analyze support.ticket; vacuum analyze support.total;")
        .await
}

fn statement(wanted: &Wanted<'_>) -> String {
    let Wanted { account, clients, from, to } = *wanted;
    let (people, id) = (clients.len().max(1), id());
    let clients = clients.join(",");
    format!(
        "set statement_timeout = 0;
with series as materialized (
    select i, {id} as id, 'T-' || lpad(i::text, greatest(5, length(i::text)), '0') as number,
        'Vraag over levering ' || i as subject, 'Handel ' || i || ' B.V.' as client_name,
        date_trunc('milliseconds', now() - interval '1 minute' * ({to} - i)) as created_at
    from generate_series({from}::bigint, {to}::bigint) i
), tickets as (
    insert into support.ticket (account_id, id, version, number, subject, status, priority, client_name, client_email,
        client_id, source, channel_id, reply_secret, message_count, search_text, created_at, updated_at)
    select '{account}', series.id, 1, number, subject, 'waiting', 2, client_name, '',
        ('{{{clients}}}'::uuid[])[i % {people} + 1], 'api', channel.id,
        substring(uuid_send(gen_random_uuid()) from 1 for 6) || substring(uuid_send(series.id) from 11), 0,
        lower(number || chr(10) || subject || chr(10) || client_name || chr(10)), created_at, created_at
    from series cross join (select id from support.channel where account_id = '{account}' and active
        order by position limit 1) channel
), numbers as (
    insert into counter (account_id, name, value) values ('{account}', 'ticket', {to})
    on conflict (account_id, name) do update set value = greatest(counter.value, excluded.value)
)
insert into total (account_id, list, bucket, slot, entries)
select '{account}', 'ticket', coalesce(day, '0001-01-01'), 0, count(*)
from (select (created_at at time zone 'UTC')::date as day from series) days group by grouping sets ((day), ())
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
        let sql = statement(&wanted);
        assert!(sql.contains("generate_series(101::bigint, 200::bigint)"), "{sql}");
        assert!(sql.contains("('a', 'ticket', 200)"), "{sql}");
    }

    #[test]
    fn a_reply_can_stand_in_json_and_in_html_as_it_is() {
        assert!(REPLY.chars().all(|letter| letter.is_ascii() && !"\\\"&<>'\n".contains(letter)));
    }
}
