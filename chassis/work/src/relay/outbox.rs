//! Delivers what the release before has left in its table `outbox`, while programs of it may still run. To be removed
//! together with the table in the next release.
//!
//! A record that was changed by programs of both releases has events in both tables. Their sequences tell the order:
//! neither is delivered while an earlier one waits in the other table.

use chassis_base::Error;
use chassis_data::{Listener, Tx};
use uuid::Uuid;

use super::store::{BATCH, Deferral, Outcome, Undelivered};
use crate::worker::Job;

/// The next events in delivery order. One that is not due holds back the later events of its entity.
pub(super) async fn read(job: &Job, listener: &Listener) -> Result<Vec<Undelivered>, Error> {
    // `offset 0` prevents a join, which would read the account's whole backlog for every batch.
    let query = sqlx::query_as(
        "select 0::bigint as position, id, type as event, entity_type as kind, entity_id::text as record_id, sequence,
            data, occurred_at as at, depth, attempts
         from outbox event
         where account_id = $1 and listener = $2 and dead_at is null and not exists (
            select from outbox earlier
            where earlier.account_id = $1 and earlier.listener = event.listener
                and earlier.entity_type = event.entity_type and earlier.entity_id = event.entity_id
                and earlier.sequence <= event.sequence and earlier.dead_at is null and earlier.next_at > $3
            offset 0)
         and not exists (
            select from (
                select id from pending where account_id = $1
                union all
                select feed.id from reader join feed on feed.account_id = reader.account_id
                    and feed.position > reader.position and feed.position <= reader.target
                where reader.account_id = $1 and reader.name = $2
                union all
                select id from reader_exception where account_id = $1 and reader = $2 and dead_at is null) undelivered
            join log entry on entry.account_id = $1 and entry.id = undelivered.id
            where entry.kind = event.entity_type and entry.record_id = event.entity_id::text
                and entry.event is not null and entry.sequence < event.sequence)
         order by entity_type, entity_id, sequence limit $4",
    )
    .bind(job.account_id())
    .bind(&listener.name)
    .bind(job.now())
    .bind(BATCH);
    job.db().read(async |connection| Ok(query.fetch_all(connection).await?)).await
}

/// Deletes delivered events and stores refusals in one transaction.
pub(super) async fn settle(job: &Job, outcome: &Outcome) -> Result<(), Error> {
    if outcome.delivered.is_empty() && outcome.refused.is_empty() {
        return Ok(());
    }
    job.write(outcome, store).await
}

async fn store(tx: &mut Tx<'_>, outcome: &Outcome) -> Result<(), Error> {
    let listener = &outcome.listener;
    let (account, now) = (tx.account(), tx.now());
    let delivered: Vec<Uuid> = outcome.delivered.iter().map(|event| event.id).collect();
    sqlx::query("delete from outbox where account_id = $1 and listener = $2 and id = any($3)")
        .bind(account)
        .bind(listener)
        .bind(delivered)
        .execute(tx.db())
        .await?;
    for (event, status) in &outcome.refused {
        let deferral = Deferral::new(listener, event, status, now);
        sqlx::query(
            "with later as (
                update reader_exception set next_at = $5
                where account_id = $1 and reader = $2 and kind = $8 and record_id = $9 and dead_at is null
             )
             update outbox set attempts = $4, next_at = $5, dead_at = $6, last_error = $7
             where account_id = $1 and listener = $2 and id = $3",
        )
        .bind(account)
        .bind(listener)
        .bind(event.id)
        .bind(deferral.attempts)
        .bind(deferral.next_at)
        .bind(deferral.dead_at)
        .bind(deferral.last_error)
        .bind(&event.kind)
        .bind(&event.record_id)
        .execute(tx.db())
        .await?;
    }
    Ok(())
}
