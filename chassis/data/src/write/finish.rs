//! The end of a write transaction: log entries, totals and response, then the commit and the wake-up.

use chassis_base::Error;
use chassis_base::error::RecordRef;
use chassis_base::error::database::violated_constraint;
use chassis_rpc::scope;
use uuid::Uuid;

use super::tx::Tx;
use crate::caused;
use crate::log::check;
use crate::log::entries::Entries;
use crate::pool::CommitError;

/// The index that lets a record have each version once.
const VERSIONS: &str = "log_of_record";

/// What is stored about an operation besides its rows.
#[derive(Default)]
pub(super) struct Kept {
    /// The response that repeats of the call get.
    pub response: Option<Vec<u8>>,
    /// The record that the operation changed.
    pub record: Option<RecordRef>,
}

impl Tx<'_> {
    /// Commits the operation together with its log entries, totals and response. Rolls back if the operation has
    /// failed or the request has faults. Cancellation before this closes the connection.
    pub(super) async fn end<T>(mut self, outcome: Result<T, Error>, kept: Kept) -> Result<T, Error> {
        let finished = async {
            let outcome = outcome?;
            self.valid()?;
            self.check_precondition().await?;
            let entries = finish(&mut self, kept.response.as_deref()).await?;
            Ok((outcome, !entries.is_empty()))
        };
        match finished.await {
            Ok((outcome, is_logged)) => self.commit(kept.record, is_logged).await.map(|()| outcome),
            Err(error) => {
                self.connection.roll_back();
                Err(error)
            }
        }
    }

    async fn commit(self, record: Option<RecordRef>, is_logged: bool) -> Result<(), Error> {
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
            self.database.committed(account, is_logged).await;
        }
        committed
    }
}

/// Writes log entries, totals and response in one statement. Returns the ids of the log entries.
pub(super) async fn finish(tx: &mut Tx<'_>, response: Option<&[u8]>) -> Result<Vec<Uuid>, Error> {
    let changes = std::mem::take(&mut tx.changes);
    let (is_unaudited, owner) = (changes.nothing.is_some(), changes.account().unwrap_or(tx.account()));
    let method = tx.origin.method();
    if changes.is_empty() && !is_unaudited {
        check::refuse_unaudited(&mut tx.connection, tx.counts.as_ref(), &method).await?;
    }
    let account = tx.account();
    let events = std::mem::take(&mut tx.events);
    if owner != account && !events.is_empty() {
        return Err(Error::Internal(format!("{method} told an event while it changed another account")));
    }
    // A call with a key carries its own depth. A call by link may come from a program that reacts to an event about the
    // record, so there the depth of the record counts too.
    let by_key = tx.caller().is_some_and(|caller| !caller.identity.is_public());
    let depths = caused::depths(&mut tx.connection, account, &events, tx.depth, !by_key).await?;
    caused::remember(&mut tx.connection, owner, &changes.record_ids(), tx.depth).await?;
    let depth = i32::try_from(tx.depth).unwrap_or(i32::MAX);
    let entries = Entries::new(changes, events.into_iter().zip(depths).collect(), depth, tx.clock);
    if tx.totals.is_empty() && entries.is_empty() && response.is_none() {
        return Ok(Vec::new());
    }
    let (lists, buckets, slots, counts) = tx.totals.rows();
    // The version of an entry is one more than that of the record's last change. Two transactions that change a record at
    // once without a lock on it get the same version; the unique index makes the second one run again. A change that
    // leaves the record as it was is no change, and has an entry only if it tells an event. Totals are sorted, so that
    // all transactions lock counter rows in the same order and do not deadlock.
    sqlx::query(
        "with entries as (
            insert into log
                (account_id, id, at, actor, request_id, method, kind, record_id, version, change, message, image,
                 image_hash, event, sequence, data, depth)
            select $3, entry.id, $2, $4, $5, $6, entry.kind, entry.record_id,
                coalesce(entry.version, latest.version + 1, 1),
                case when is_change is not true then null when entry.change = 'deleted' then 'deleted'
                    when coalesce(latest.change, 'deleted') = 'deleted' then 'created' else 'updated' end,
                case when is_change then entry.message else '' end, case when is_change then entry.image end,
                case when is_change then entry.image_hash end, event, sequence, data, depth
            from unnest($7::uuid[], $8::text[], $9::text[], $10::bigint[], $11::text[], $12::text[], $13::bytea[],
                        $14::bytea[], $15::text[], $16::bigint[], $17::text[], $18::integer[])
                as entry (id, kind, record_id, version, change, message, image, image_hash, event, sequence, data, depth)
            left join lateral (
                select version, change, image_hash from log earlier
                where earlier.account_id = $3 and earlier.record_id = entry.record_id and earlier.kind = entry.kind
                    and earlier.change is not null
                order by earlier.version desc limit 1) latest on true
            cross join lateral (
                select entry.change is not null
                    and (latest.version is null or latest.image_hash is distinct from entry.image_hash) as is_change
            ) decided
            where is_change or event is not null
            returning id
        ), unnumbered as (
            insert into pending (account_id, id, at) select $3, id, $2 from entries where $26
        ), totals as (
            insert into total (account_id, list, bucket, slot, entries)
            select $1, list, bucket, slot, entries
            from unnest($19::text[], $20::date[], $21::smallint[], $22::bigint[]) as t (list, bucket, slot, entries)
            order by list, bucket, slot
            on conflict (account_id, list, bucket, slot) do update set entries = total.entries + excluded.entries
        )
        update idempotency set response = $23 where account_id = $1 and route = $24 and key = $25",
    )
    .bind(account)
    .bind(tx.now)
    .bind(owner)
    .bind(tx.origin.actor())
    .bind(tx.origin.request_id())
    .bind(&method)
    .bind(&entries.ids)
    .bind(&entries.kinds)
    .bind(&entries.record_ids)
    .bind(&entries.versions)
    .bind(&entries.changes)
    .bind(&entries.messages)
    .bind(&entries.images)
    .bind(&entries.image_hashes)
    .bind(&entries.events)
    .bind(&entries.sequences)
    .bind(&entries.data)
    .bind(&entries.depths)
    .bind(lists)
    .bind(buckets)
    .bind(slots)
    .bind(counts)
    .bind(response)
    .bind(tx.caller().map(|context| context.rpc))
    .bind(response.and(tx.caller()).and_then(|context| context.idempotency_key.as_deref()))
    // Entries of no account, such as a team's credentials, have no reader.
    .bind(!owner.uuid().is_nil())
    .execute(&mut *tx.connection)
    .await
    .map_err(|error| {
        if violated_constraint(&error) != Some(VERSIONS) {
            return error.into();
        }
        let records = entries.kinds.iter().zip(&entries.record_ids);
        tx.collision.set(records.map(|(kind, id)| RecordRef { kind: kind.clone(), id: id.clone() }));
        Error::Raced
    })?;
    Ok(entries.ids)
}
