//! The end of a write transaction: events, totals, audit log and response, then the commit and the wake-up.

use chassis_base::Error;
use chassis_base::error::RecordRef;
use chassis_rpc::scope;

use super::tx::Tx;
use crate::audit::check;
use crate::caused;
use crate::pool::CommitError;

/// What is stored about an operation besides its rows.
#[derive(Default)]
pub(super) struct Kept {
    /// The response that repeats of the call get.
    pub response: Option<Vec<u8>>,
    /// The record that the operation changed.
    pub record: Option<RecordRef>,
}

impl Tx<'_> {
    /// Commits the operation together with its events, totals, audit entries and response. Rolls back if the
    /// operation has failed or the request has faults. Cancellation before this closes the connection.
    pub(super) async fn end<T>(mut self, outcome: Result<T, Error>, kept: Kept) -> Result<T, Error> {
        let finished = async {
            let outcome = outcome?;
            self.valid()?;
            finish(&mut self, kept.response.as_deref()).await?;
            Ok(outcome)
        };
        match finished.await {
            Ok(outcome) => self.commit(kept.record).await.map(|()| outcome),
            Err(error) => {
                self.connection.roll_back();
                Err(error)
            }
        }
    }

    async fn commit(self, record: Option<RecordRef>) -> Result<(), Error> {
        // What the service records for itself is not an effect of the call during which it happens.
        let effect = self.caller().map(|_| scope::effect()).unwrap_or_default();
        // Set before COMMIT is sent: if the call is cancelled before the answer, the outcome is unknown.
        effect.commits(record.clone());
        let committed = match self.connection.commit().await {
            Ok(()) => {
                effect.committed();
                Ok(())
            }
            Err(CommitError::Refused(error)) => {
                effect.refused();
                return Err(error.into());
            }
            Err(CommitError::Unknown(error)) => {
                tracing::warn!(%error, "connection lost during COMMIT; the transaction may be committed");
                Err(Error::InDoubt(record))
            }
        };
        // A commit in doubt may have created work too. A crash before this line is covered by the workers' sweep.
        for account in std::iter::once(self.account.id).chain(self.filed_under) {
            self.database.wake_workers(account).await;
        }
        committed
    }
}

/// Writes events, totals, audit entries and response in one statement.
async fn finish(tx: &mut Tx<'_>, response: Option<&[u8]>) -> Result<(), Error> {
    let unaudited = tx.trail.nothing.is_some();
    let audit = std::mem::take(&mut tx.trail).rows(tx.clock);
    let method = tx.origin.method();
    if audit.is_empty() && !unaudited {
        check::refuse_unaudited(&mut tx.connection, tx.counts.as_ref(), &method).await?;
    }
    if tx.events.is_empty() && tx.totals.is_empty() && audit.is_empty() && response.is_none() {
        return Ok(());
    }
    let account = tx.account();
    // A call with a key carries its own depth. A call by link may come from a program that reacts to an event about the
    // record, so there the depth of the record counts too.
    let by_key = tx.caller().is_some_and(|caller| !caller.identity.is_public());
    let depths = caused::depths(&mut tx.connection, account, &tx.events, tx.depth, !by_key).await?;
    let owner = audit.account.unwrap_or(account);
    caused::remember(&mut tx.connection, owner, &audit, tx.depth).await?;
    let (lists, buckets, slots, entries) = tx.totals.rows();
    // Totals are sorted, so that all transactions lock counter rows in the same order and do not deadlock.
    sqlx::query(
        "with events as (
            insert into outbox
                (account_id, listener, entity_type, entity_id, sequence, id, type, data, depth, occurred_at, next_at)
            select $1, listener, entity_type, entity_id, sequence, id, type, data, depth, $2, $2
            from unnest($3::text[], $4::text[], $5::uuid[], $6::bigint[], $7::uuid[], $8::text[], $9::text[],
                        $17::integer[])
                as event (listener, entity_type, entity_id, sequence, id, type, data, depth)
        ), totals as (
            insert into total (account_id, list, bucket, slot, entries)
            select $1, list, bucket, slot, entries
            from unnest($10::text[], $11::date[], $12::smallint[], $13::bigint[]) as t (list, bucket, slot, entries)
            order by list, bucket, slot
            on conflict (account_id, list, bucket, slot) do update set entries = total.entries + excluded.entries
        ), trail as (
            insert into audit
                (account_id, id, at, actor, request_id, method, entity_type, entity_id, message, image)
            select $18, id, $2, $19, $20, $21, entity_type, entity_id, message, image
            from unnest($22::uuid[], $23::text[], $24::text[], $25::text[], $26::bytea[])
                as entry (id, entity_type, entity_id, message, image)
        )
        update idempotency set response = $14 where account_id = $1 and route = $15 and key = $16",
    )
    .bind(account)
    .bind(tx.now)
    .bind(&tx.events.listeners)
    .bind(&tx.events.entity_types)
    .bind(&tx.events.entity_ids)
    .bind(&tx.events.sequences)
    .bind(&tx.events.ids)
    .bind(&tx.events.kinds)
    .bind(&tx.events.data)
    .bind(lists)
    .bind(buckets)
    .bind(slots)
    .bind(entries)
    .bind(response)
    .bind(tx.caller().map(|context| context.rpc))
    .bind(response.and(tx.caller()).and_then(|context| context.idempotency_key.as_deref()))
    .bind(depths)
    .bind(owner)
    .bind(tx.origin.actor())
    .bind(tx.origin.request_id())
    .bind(&method)
    .bind(&audit.ids)
    .bind(&audit.entity_types)
    .bind(&audit.entity_ids)
    .bind(&audit.messages)
    .bind(&audit.images)
    .execute(&mut *tx.connection)
    .await?;
    Ok(())
}
