//! A list that is exported: one statement without pages, whose rows are fetched from a cursor, part by part.
//!
//! All parts are read in one transaction that sees the database as it was at its beginning. Its connection is not there for
//! others meanwhile, so few exports run at a time, and of one account fewer.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use chassis_base::error::status::unavailable;
use chassis_base::shares::{Place, Places};
use chassis_base::{AccountId, Error};
use chassis_rpc::export::Export;
use sqlx::postgres::{PgArguments, PgRow};
use sqlx::{AssertSqlSafe, FromRow, PgConnection};
use tokio::sync::Notify;

use super::List;
use crate::long_pages::size;
use crate::pool::{Connection, Pool, Purpose};

/// How many rows are fetched at a time.
const ROWS: usize = 100;
/// After how many bytes a part ends.
const BYTES: usize = 256 << 10;
/// Which share of the connections exports may have.
const OF_CONNECTIONS: u32 = 4;

/// How long an export waits for others to end. Most are short.
const PATIENCE: Duration = Duration::from_secs(2);

/// Lets a fixed number of exports run at a time.
pub(crate) struct ExportSlots {
    places: Places,
    ended: Arc<Notify>,
}

/// The right to export, until it is dropped.
struct ExportSlot {
    // Dropped in this order, so that whoever is woken finds the place.
    _place: Place,
    _ending: Ending,
}

struct Ending(Arc<Notify>);

impl ExportSlots {
    pub(crate) fn new(connections: u32) -> Self {
        let max = (connections / OF_CONNECTIONS).max(1) as usize;
        Self { places: Places::new(max, max.div_ceil(2)), ended: Arc::default() }
    }

    async fn take(&self, account: AccountId, patience: Duration) -> Result<ExportSlot, Error> {
        let slot = tokio::time::timeout(patience, self.next(account)).await;
        slot.map_err(|_| {
            metrics::counter!("shed_total").increment(1);
            let detail =
                "As many exports are running as may run at a time. Repeat the request when one has ended.";
            Error::Peer(Box::new(unavailable(detail)))
        })
    }

    async fn next(&self, account: AccountId) -> ExportSlot {
        loop {
            let mut ended = pin!(self.ended.notified());
            // An export that ends from here on is noticed.
            ended.as_mut().enable();
            if let Some(place) = self.places.enter(account) {
                return ExportSlot { _place: place, _ending: Ending(Arc::clone(&self.ended)) };
            }
            ended.await;
        }
    }
}

impl Drop for Ending {
    fn drop(&mut self) {
        self.0.notify_waiters();
    }
}

/// The database as it was at one moment.
struct Snapshot {
    // Closed with its transaction when it is dropped.
    connection: Connection,
    _slot: ExportSlot,
}

impl Snapshot {
    async fn open(pool: &Pool, slots: &ExportSlots) -> Result<Self, Error> {
        let purpose = Purpose::present();
        let account = purpose.account.unwrap_or_else(|| AccountId::trust(uuid::Uuid::nil()));
        let slot = slots.take(account, PATIENCE).await?;
        let mut connection = pool.acquire(purpose).await?;
        sqlx::raw_sql("begin isolation level repeatable read read only").execute(&mut *connection).await?;
        // A reader may pause for longer than a transaction may be idle otherwise.
        let patience = "set local idle_in_transaction_session_timeout = '60s'";
        sqlx::raw_sql(patience).execute(&mut *connection).await?;
        Ok(Self { connection, _slot: slot })
    }
}

/// Runs a read of an export in the export's transaction.
pub(crate) async fn read<T, E, F>(pool: &Pool, slots: &ExportSlots, export: &Export, query: F) -> Result<T, E>
where
    E: From<Error>,
    F: AsyncFnOnce(&mut PgConnection) -> Result<T, E>,
{
    let mut source = export.source.lock().await;
    if source.is_none() {
        *source = Some(Box::new(Snapshot::open(pool, slots).await?));
    }
    let snapshot = source.as_mut().and_then(|source| source.downcast_mut::<Snapshot>());
    let snapshot =
        snapshot.ok_or_else(|| Error::Internal("an export is read from something else".to_owned()))?;
    query(&mut snapshot.connection).await
}

impl List<'_> {
    /// Builds the statement for all rows.
    pub(super) fn whole(self) -> (String, PgArguments) {
        let Self { table, columns, conditions, values, order, .. } = self;
        let (column, direction) = (order.column, if order.descending { "desc" } else { "asc" });
        let sql = format!(
            "select {columns} from {table} where {conditions} order by {column} {direction}, id {direction}"
        );
        (sql, values.arguments)
    }
}

/// The next part of the rows that the statement selects.
pub(super) async fn fetch<R>(
    connection: &mut PgConnection,
    export: &Export,
    sql: String,
    values: PgArguments,
) -> Result<Vec<R>, Error>
where
    R: for<'r> FromRow<'r, PgRow> + Send + Unpin + 'static,
{
    if !export.has_begun() {
        let declare = format!("declare export no scroll cursor for {sql}");
        let declare = sqlx::query_with(AssertSqlSafe(declare), values).persistent(false);
        declare.execute(&mut *connection).await?;
    }
    let mut fetched = if let Some(rest) = export.take_rest::<Fetched<R>>() {
        rest
    } else {
        Fetched::next(connection).await?
    };
    let part = fetched.part();
    let is_last = fetched.is_last && fetched.rows.is_empty();
    if !fetched.rows.is_empty() {
        export.keep_rest(fetched);
    }
    export.page_read(is_last);
    Ok(part)
}

/// Rows that were fetched, the next one last, and their sizes.
struct Fetched<R> {
    rows: Vec<(usize, R)>,
    /// Whether there are none after them.
    is_last: bool,
}

impl<R: for<'r> FromRow<'r, PgRow>> Fetched<R> {
    async fn next(connection: &mut PgConnection) -> Result<Self, Error> {
        // Not kept as a prepared statement: its columns are those of another list the next time.
        let fetch = format!("fetch {ROWS} from export");
        let fetched = sqlx::query(AssertSqlSafe(fetch)).persistent(false).fetch_all(connection).await?;
        let rows = fetched.iter().rev().map(|row| Ok((size(row), R::from_row(row)?)));
        let rows: Vec<_> = rows.collect::<Result<_, sqlx::Error>>()?;
        Ok(Self { is_last: rows.len() < ROWS, rows })
    }

    /// Takes as many as one part may have.
    fn part(&mut self) -> Vec<R> {
        let (mut part, mut bytes) = (Vec::with_capacity(self.rows.len()), 0);
        while bytes < BYTES
            && let Some((size, row)) = self.rows.pop()
        {
            bytes += size;
            part.push(row);
        }
        part
    }
}

#[cfg(test)]
mod tests {
    use futures::poll;

    use super::*;

    #[tokio::test]
    async fn an_export_waits_until_another_of_its_account_has_ended() {
        let slots = ExportSlots::new(2 * OF_CONNECTIONS);
        let [one, other] = [1, 2].map(|id| AccountId::trust(uuid::Uuid::from_u128(id)));
        let first = slots.take(one, PATIENCE).await.unwrap();
        let mut second = pin!(slots.take(one, PATIENCE));
        assert!(poll!(&mut second).is_pending());
        let of_other = slots.take(other, PATIENCE).await.unwrap();
        drop(of_other);
        assert!(poll!(&mut second).is_pending());
        drop(first);
        assert!(poll!(&mut second).is_ready());
    }

    #[tokio::test]
    async fn an_export_that_has_waited_too_long_is_to_be_repeated() {
        let slots = ExportSlots::new(1);
        let account = AccountId::trust(uuid::Uuid::from_u128(1));
        let _running = slots.take(account, PATIENCE).await.unwrap();
        let refused = slots.take(account, Duration::from_millis(1)).await;
        assert!(
            matches!(refused.err(), Some(Error::Peer(status)) if status.code() == tonic::Code::Unavailable)
        );
    }
}
