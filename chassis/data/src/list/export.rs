//! A list that is exported: one statement without pages, whose rows are fetched from a cursor, part by part.
//!
//! All parts are read in one transaction that sees the database as it was at its beginning. Its connection is not there for
//! others meanwhile, so few exports run at a time, and of one account fewer.

use std::sync::Arc;

use chassis_base::error::status::unavailable;
use chassis_base::shares::{Share, Shares};
use chassis_base::{AccountId, Error};
use chassis_rpc::export::Export;
use chassis_rpc::scope;
use sqlx::postgres::{PgArguments, PgRow};
use sqlx::{AssertSqlSafe, FromRow, PgConnection};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::db::Db;
use crate::long_pages::size;
use crate::pool::Connection;

/// How many rows are fetched at a time.
const ROWS: usize = 100;
/// After how many bytes a part ends.
const BYTES: usize = 256 << 10;
/// Which share of the connections exports may have.
const OF_CONNECTIONS: u32 = 4;

/// How many exports may run at a time.
pub(crate) struct Places {
    all: Arc<Semaphore>,
    accounts: Shares,
}

impl Places {
    pub(crate) fn new(connections: u32) -> Self {
        let max = (connections / OF_CONNECTIONS).max(1) as usize;
        Self { all: Arc::new(Semaphore::new(max)), accounts: Shares::new(max.div_ceil(2)) }
    }

    fn enter(&self, account: AccountId) -> Option<Place> {
        let of_account = self.accounts.enter(account)?;
        let of_all = Arc::clone(&self.all).try_acquire_owned().ok()?;
        Some(Place { _of_all: of_all, _of_account: of_account })
    }
}

/// The right to export, until it is dropped.
struct Place {
    _of_all: OwnedSemaphorePermit,
    _of_account: Share,
}

/// The database as it was at one moment.
struct Snapshot {
    // Closed with its transaction when it is dropped.
    connection: Connection,
    _place: Place,
}

impl Snapshot {
    async fn open(db: &Db) -> Result<Self, Error> {
        let account =
            scope::current_task().map_or_else(|| AccountId::trust(uuid::Uuid::nil()), |task| task.account);
        let place = db.exports.enter(account).ok_or_else(|| {
            metrics::counter!("shed_total").increment(1);
            let detail =
                "As many exports are running as may run at a time. Repeat the request when one has ended.";
            Error::Peer(Box::new(unavailable(detail)))
        })?;
        let mut connection = db.acquire().await?;
        sqlx::raw_sql("begin isolation level repeatable read read only").execute(&mut *connection).await?;
        // A reader may pause for longer than a transaction may be idle otherwise.
        let patience = "set local idle_in_transaction_session_timeout = '60s'";
        sqlx::raw_sql(patience).execute(&mut *connection).await?;
        Ok(Self { connection, _place: place })
    }
}

/// Runs a read of an export in the export's transaction.
pub(crate) async fn read<T, E, F>(db: &Db, export: &Export, query: F) -> Result<T, E>
where
    E: From<Error>,
    F: AsyncFnOnce(&mut PgConnection) -> Result<T, E>,
{
    let mut source = export.source.lock().await;
    if source.is_none() {
        *source = Some(Box::new(Snapshot::open(db).await?));
    }
    let snapshot = source.as_mut().and_then(|source| source.downcast_mut::<Snapshot>());
    let snapshot =
        snapshot.ok_or_else(|| Error::Internal("an export is read from something else".to_owned()))?;
    query(&mut snapshot.connection).await
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
