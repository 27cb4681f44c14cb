//! The SQL of statuses, and nothing else.

use chassis_base::AccountId;
use sqlx::PgConnection;
use uuid::Uuid;

use super::Record;
use crate::error::Error;

/// The number of statuses that an account can have.
pub(crate) const MAX_STATUSES: i64 = 100;

macro_rules! columns {
    () => {
        "id, version, name, active, position, updated_at"
    };
}

/// The active statuses, or the inactive ones, in their order.
pub(crate) async fn list(
    connection: &mut PgConnection,
    account: AccountId,
    active: bool,
) -> Result<Vec<Record>, Error> {
    let sql = concat!(
        "select ",
        columns!(),
        " from support.status where account_id = $1 and active = $2 order by position, name"
    );
    Ok(sqlx::query_as(sql).bind(account).bind(active).fetch_all(connection).await?)
}

/// The names of the active statuses, in their order.
pub(crate) async fn list_active_names(
    connection: &mut PgConnection,
    account: AccountId,
) -> Result<Vec<String>, Error> {
    let sql = "select name from support.status where account_id = $1 and active order by position, name";
    Ok(sqlx::query_scalar(sql).bind(account).fetch_all(connection).await?)
}

pub(crate) async fn count(connection: &mut PgConnection, account: AccountId) -> Result<i64, Error> {
    let sql = "select count(*) from support.status where account_id = $1";
    Ok(sqlx::query_scalar(sql).bind(account).fetch_one(connection).await?)
}

pub(crate) async fn insert(
    connection: &mut PgConnection,
    account: AccountId,
    record: &Record,
) -> Result<(), Error> {
    let sql = "insert into support.status (account_id, id, name, active, position, created_at, updated_at, version) \
               values ($1, $2, $3, $4, $5, $6, $6, $7)";
    sqlx::query(sql)
        .bind(account)
        .bind(record.id)
        .bind(&record.name)
        .bind(record.active)
        .bind(record.position)
        .bind(record.updated_at)
        .bind(record.version)
        .execute(connection)
        .await?;
    Ok(())
}

/// Finds a status and locks its row: an update reads it, decides and writes it back.
pub(crate) async fn find_locked(
    connection: &mut PgConnection,
    account: AccountId,
    id: Uuid,
) -> Result<Option<Record>, Error> {
    let sql =
        concat!("select ", columns!(), " from support.status where account_id = $1 and id = $2 for update");
    Ok(sqlx::query_as(sql).bind(account).bind(id).fetch_optional(connection).await?)
}

/// Stores all columns of a status that can change.
pub(crate) async fn update(
    connection: &mut PgConnection,
    account: AccountId,
    record: &Record,
) -> Result<(), Error> {
    let sql = "update support.status set active = $3, position = $4, updated_at = $5, version = $6 \
               where account_id = $1 and id = $2";
    sqlx::query(sql)
        .bind(account)
        .bind(record.id)
        .bind(record.active)
        .bind(record.position)
        .bind(record.updated_at)
        .bind(record.version)
        .execute(connection)
        .await?;
    Ok(())
}

/// The name of a status, and whether a ticket has it.
#[derive(Clone, Debug, chassis_derive::FromRow)]
pub(crate) struct Usage {
    pub name: String,
    pub in_use: bool,
}

/// Locks the row of a status that is about to be removed, and returns whether a ticket has it.
pub(crate) async fn find_usage_locked(
    connection: &mut PgConnection,
    account: AccountId,
    id: Uuid,
) -> Result<Option<Usage>, Error> {
    let sql = "select name, exists (select from support.ticket \
                   where ticket.account_id = $1 and ticket.status = status.name) as in_use \
               from support.status where account_id = $1 and id = $2 for update";
    Ok(sqlx::query_as(sql).bind(account).bind(id).fetch_optional(connection).await?)
}

pub(crate) async fn delete(connection: &mut PgConnection, account: AccountId, id: Uuid) -> Result<(), Error> {
    let sql = "delete from support.status where account_id = $1 and id = $2";
    sqlx::query(sql).bind(account).bind(id).execute(connection).await?;
    Ok(())
}
