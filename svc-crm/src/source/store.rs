//! The SQL of deal sources.

use chassis_base::AccountId;
use chrono::{DateTime, Utc};
use sqlx::PgConnection;

use super::Record;
use crate::error::Error;

/// All sources, in their order.
pub(crate) async fn list(connection: &mut PgConnection, account: AccountId) -> Result<Vec<Record>, Error> {
    let sql = "select name, position, version, updated_at from crm.source where account_id = $1 \
               order by position, name";
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

/// Stores a new source. The caller holds the lock of the setup: without it two sources could get the same position.
pub(super) async fn insert(
    connection: &mut PgConnection,
    account: AccountId,
    record: &Record,
) -> Result<(), Error> {
    let sql = "insert into crm.source (account_id, name, position, version, created_at, updated_at) \
               values ($1, $2, $3, $4, $5, $5)";
    let Record { name, position, version, updated_at } = record;
    let query = sqlx::query(sql).bind(account).bind(name).bind(position).bind(version).bind(updated_at);
    query.execute(connection).await?;
    Ok(())
}

/// Stores a source that had another name.
pub(super) async fn rename(
    connection: &mut PgConnection,
    account: AccountId,
    old_name: &str,
    record: &Record,
) -> Result<(), Error> {
    let sql = "update crm.source set name = $3, version = $4, updated_at = $5 \
               where account_id = $1 and name = $2";
    let Record { name, version, updated_at, .. } = record;
    let query = sqlx::query(sql).bind(account).bind(old_name).bind(name).bind(version).bind(updated_at);
    query.execute(connection).await?;
    Ok(())
}

pub(super) async fn delete(
    connection: &mut PgConnection,
    account: AccountId,
    name: &str,
) -> Result<(), Error> {
    let sql = "delete from crm.source where account_id = $1 and name = $2";
    sqlx::query(sql).bind(account).bind(name).execute(connection).await?;
    Ok(())
}

/// Stores the positions of these sources, and the versions that they have by that.
pub(super) async fn place(
    connection: &mut PgConnection,
    account: AccountId,
    sources: &[Record],
    now: DateTime<Utc>,
) -> Result<(), Error> {
    let names: Vec<&str> = sources.iter().map(|source| source.name.as_str()).collect();
    let positions: Vec<i32> = sources.iter().map(|source| source.position).collect();
    let versions: Vec<i64> = sources.iter().map(|source| source.version).collect();
    sqlx::query(
        "update crm.source set position = placed.position, version = placed.version, updated_at = $5 \
         from unnest($2::text[], $3::integer[], $4::bigint[]) as placed (name, position, version) \
         where source.account_id = $1 and source.name = placed.name",
    )
    .bind(account)
    .bind(names)
    .bind(positions)
    .bind(versions)
    .bind(now)
    .execute(connection)
    .await?;
    Ok(())
}
