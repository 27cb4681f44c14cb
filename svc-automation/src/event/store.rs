//! The only SQL on events.

use chassis::{AccountId, Error};
use chrono::{DateTime, Utc};
use sqlx::PgConnection;

use super::Event;

/// Keeps the events that are not known yet.
pub(crate) async fn insert_new(
    connection: &mut PgConnection,
    account: AccountId,
    events: &[Event],
    now: DateTime<Utc>,
) -> Result<(), Error> {
    // In one order, so that two batches with the same events do not lock one another out.
    let mut events: Vec<&Event> = events.iter().collect();
    events.sort_unstable_by_key(|event| event.id);
    sqlx::query(
        "insert into automation.event
            (account_id, id, type, entity_type, entity_id, sequence, data, occurred_at, received_at)
         select $1, id, type, entity_type, entity_id, sequence, data, occurred_at, $9
         from unnest($2::uuid[], $3::text[], $4::text[], $5::text[], $6::bigint[], $7::text[], $8::timestamptz[])
            as event (id, type, entity_type, entity_id, sequence, data, occurred_at)
         on conflict (account_id, id) do nothing",
    )
    .bind(account)
    .bind(column(&events, |event| event.id))
    .bind(column(&events, |event| event.kind.as_str()))
    .bind(column(&events, |event| event.entity_type.as_str()))
    .bind(column(&events, |event| event.entity_id.as_str()))
    .bind(column(&events, |event| event.sequence))
    .bind(column(&events, |event| event.data.as_str()))
    .bind(column(&events, |event| event.occurred_at))
    .bind(now)
    .execute(connection)
    .await?;
    Ok(())
}

fn column<'a, T>(events: &[&'a Event], of: impl Fn(&'a Event) -> T) -> Vec<T> {
    events.iter().map(|event| of(event)).collect()
}
