//! The SQL of statuses, and nothing else.

use chassis::AccountId;
use chrono::{DateTime, Utc};
use sqlx::PgConnection;
use uuid::Uuid;

use super::Record;
use crate::Error;

/// How many an account can have; nobody tells more apart.
pub const MOST: i64 = 100;

/// Those that are active, or those that are not, in their order.
pub async fn list(
    connection: &mut PgConnection,
    account: AccountId,
    active: bool,
) -> Result<Vec<Record>, Error> {
    let sql = "select id, name, active, position from support.status \
               where account_id = $1 and active = $2 order by position, name";
    Ok(sqlx::query_as(sql).bind(account).bind(active).fetch_all(connection).await?)
}

/// The names of the active ones, in their order.
pub async fn list_active_names(
    connection: &mut PgConnection,
    account: AccountId,
) -> Result<Vec<String>, Error> {
    let sql = "select name from support.status where account_id = $1 and active order by position, name";
    Ok(sqlx::query_scalar(sql).bind(account).fetch_all(connection).await?)
}

pub async fn count(connection: &mut PgConnection, account: AccountId) -> Result<i64, Error> {
    let sql = "select count(*) from support.status where account_id = $1";
    Ok(sqlx::query_scalar(sql).bind(account).fetch_one(connection).await?)
}

pub async fn insert(
    connection: &mut PgConnection,
    account: AccountId,
    record: &Record,
    now: DateTime<Utc>,
) -> Result<(), Error> {
    let sql = "insert into support.status (account_id, id, name, active, position, created_at, updated_at) \
               values ($1, $2, $3, $4, $5, $6, $6)";
    sqlx::query(sql)
        .bind(account)
        .bind(record.id)
        .bind(&record.name)
        .bind(record.active)
        .bind(record.position)
        .bind(now)
        .execute(connection)
        .await?;
    Ok(())
}

/// Changes a status; `None` when there is no such one.
pub async fn update(
    connection: &mut PgConnection,
    account: AccountId,
    id: Uuid,
    (active, position): (bool, i32),
    now: DateTime<Utc>,
) -> Result<Option<Record>, Error> {
    let sql = "update support.status set active = $3, position = $4, updated_at = $5 \
               where account_id = $1 and id = $2 returning id, name, active, position";
    Ok(sqlx::query_as(sql)
        .bind(account)
        .bind(id)
        .bind(active)
        .bind(position)
        .bind(now)
        .fetch_optional(connection)
        .await?)
}

/// The name of a status that is about to be removed, and whether a ticket has it.
pub async fn find_use(
    connection: &mut PgConnection,
    account: AccountId,
    id: Uuid,
) -> Result<Option<(String, bool)>, Error> {
    let sql = "select name, exists (select from support.ticket \
                   where ticket.account_id = $1 and ticket.status = status.name) \
               from support.status where account_id = $1 and id = $2 for update";
    Ok(sqlx::query_as(sql).bind(account).bind(id).fetch_optional(connection).await?)
}

pub async fn delete(connection: &mut PgConnection, account: AccountId, id: Uuid) -> Result<(), Error> {
    let sql = "delete from support.status where account_id = $1 and id = $2";
    sqlx::query(sql).bind(account).bind(id).execute(connection).await?;
    Ok(())
}
