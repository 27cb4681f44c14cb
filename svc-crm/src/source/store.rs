//! The SQL of deal sources.

use chassis_base::AccountId;
use chrono::{DateTime, Utc};
use sqlx::PgConnection;

use super::Record;
use crate::error::Error;

/// All sources, in their order.
pub(crate) async fn list(connection: &mut PgConnection, account: AccountId) -> Result<Vec<Record>, Error> {
    let sql = "select name, position from crm.source where account_id = $1 order by position, name";
    Ok(sqlx::query_as(sql).bind(account).fetch_all(connection).await?)
}

pub(crate) async fn exists(
    connection: &mut PgConnection,
    account: AccountId,
    name: &str,
) -> Result<bool, Error> {
    let sql = "select exists (select from crm.source where account_id = $1 and name = $2)";
    Ok(sqlx::query_scalar(sql).bind(account).bind(name).fetch_one(connection).await?)
}

/// Adds a source at the end. The caller holds the lock of the setup: without it two sources could get the same
/// position.
pub(crate) async fn insert(
    connection: &mut PgConnection,
    account: AccountId,
    name: &str,
    now: DateTime<Utc>,
) -> Result<(), Error> {
    let sql = "insert into crm.source (account_id, name, position, created_at, updated_at) \
               select $1, $2, coalesce(max(position), 0) + 1, $3, $3 from crm.source where account_id = $1";
    sqlx::query(sql).bind(account).bind(name).bind(now).execute(connection).await?;
    Ok(())
}

pub(crate) async fn rename(
    connection: &mut PgConnection,
    account: AccountId,
    name: &str,
    new_name: &str,
    now: DateTime<Utc>,
) -> Result<(), Error> {
    let sql = "update crm.source set name = $3, updated_at = $4 where account_id = $1 and name = $2";
    sqlx::query(sql).bind(account).bind(name).bind(new_name).bind(now).execute(connection).await?;
    Ok(())
}

/// Removes a source and moves those behind it up.
pub(crate) async fn delete(
    connection: &mut PgConnection,
    account: AccountId,
    name: &str,
) -> Result<(), Error> {
    for sql in [
        "update crm.source set position = position - 1 where account_id = $1 and position > \
         (select removed.position from crm.source removed where removed.account_id = $1 and removed.name = $2)",
        "delete from crm.source where account_id = $1 and name = $2",
    ] {
        sqlx::query(sql).bind(account).bind(name).execute(&mut *connection).await?;
    }
    Ok(())
}

/// Puts the sources into the order of these names.
pub(crate) async fn reorder(
    connection: &mut PgConnection,
    account: AccountId,
    names: &[String],
    now: DateTime<Utc>,
) -> Result<(), Error> {
    let sql = "update crm.source set position = requested.position::integer, updated_at = $3 \
               from unnest($2::text[]) with ordinality as requested (name, position) \
               where source.account_id = $1 and source.name = requested.name";
    sqlx::query(sql).bind(account).bind(names).bind(now).execute(connection).await?;
    Ok(())
}
