//! Completeness of the log: a debug build, and so every test, refuses a transaction that changes a record
//! without an entry. Postgres counts the rows that a transaction writes to each table; the comment of a table that
//! does not hold records says so.

use std::collections::HashMap;

use chassis_base::Error;
use sqlx::PgConnection;

/// How many rows the session has written to each table of records. Counts are taken before and after the operation,
/// because they may still include those of earlier transactions that the session has not reported yet.
pub(crate) struct Counts(HashMap<String, i64>);

/// Reads the present counts. A release build skips the query and returns `None`.
pub(crate) async fn counts(connection: &mut PgConnection) -> Result<Option<Counts>, Error> {
    if !cfg!(debug_assertions) {
        return Ok(None);
    }
    let rows: Vec<(String, i64)> = sqlx::query_as(
        "select tables.relname::text, pg_stat_get_xact_tuples_inserted(tables.oid)
            + pg_stat_get_xact_tuples_updated(tables.oid) + pg_stat_get_xact_tuples_deleted(tables.oid)
         from pg_class tables join pg_namespace on pg_namespace.oid = tables.relnamespace
         where nspname = current_schema() and relkind in ('r', 'p')
            and coalesce(obj_description(tables.oid, 'pg_class'), '') not like 'unaudited:%'",
    )
    .fetch_all(connection)
    .await?;
    Ok(Some(Counts(rows.into_iter().collect())))
}

/// Fails if a table of records has more writes than `before`. To be called when the transaction has no entry.
pub(crate) async fn refuse_unaudited(
    connection: &mut PgConnection,
    before: Option<&Counts>,
    method: &str,
) -> Result<(), Error> {
    let Some(before) = before else { return Ok(()) };
    let Some(after) = counts(connection).await? else { return Ok(()) };
    let grown = |(table, count): &(&String, &i64)| before.0.get(*table).is_none_or(|had| had < *count);
    let mut changed: Vec<&str> = after.0.iter().filter(grown).map(|(table, _)| table.as_str()).collect();
    if changed.is_empty() {
        return Ok(());
    }
    changed.sort_unstable();
    Err(unaudited(method, &changed.join(", ")))
}

/// The error of a method that changed something without an entry.
pub(crate) fn unaudited(method: &str, changed: &str) -> Error {
    Error::Internal(format!(
        "{method} changed {changed} without an entry in the log: call tx.changed, tx.removed or tx.unaudited, or \
         comment the table as `unaudited: why`"
    ))
}
