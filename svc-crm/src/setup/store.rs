//! The SQL of the setup of accounts, and of the rows that every account starts with.

use chassis_base::AccountId;
use chrono::{DateTime, Utc};
use sqlx::PgConnection;

use super::Initial;
use crate::error::Error;

/// Stores that an account has its defaults. `false` when that was stored before.
pub(super) async fn insert(
    connection: &mut PgConnection,
    account: AccountId,
    now: DateTime<Utc>,
) -> Result<bool, Error> {
    let sql =
        "insert into crm.setup (account_id, created_at) values ($1, $2) on conflict (account_id) do nothing";
    let inserted = sqlx::query(sql).bind(account).bind(now).execute(connection).await?;
    Ok(inserted.rows_affected() > 0)
}

/// Locks the row of an account until the transaction ends. `false` when there is none.
pub(super) async fn lock(connection: &mut PgConnection, account: AccountId) -> Result<bool, Error> {
    let sql = "select true from crm.setup where account_id = $1 for update";
    let found: Option<bool> = sqlx::query_scalar(sql).bind(account).fetch_optional(connection).await?;
    Ok(found.is_some())
}

/// Stores the first pipeline with its phases, and the first sources.
pub(super) async fn insert_defaults(
    connection: &mut PgConnection,
    account: AccountId,
    initial: &Initial,
) -> Result<(), Error> {
    let sql = "insert into crm.pipeline (account_id, id, name, active, position, created_at, updated_at) \
               values ($1, $2, $3, true, 1, $4, $4)";
    sqlx::query(sql)
        .bind(account)
        .bind(initial.pipeline_id)
        .bind(initial.pipeline)
        .bind(initial.created_at)
        .execute(&mut *connection)
        .await?;
    let sql = "insert into crm.phase (account_id, pipeline_id, id, name, position, created_at, updated_at) \
               select $1, $2, phase.id, phase.name, phase.position::integer, $5, $5 \
               from unnest($3::uuid[], $4::text[]) with ordinality as phase (id, name, position)";
    sqlx::query(sql)
        .bind(account)
        .bind(initial.pipeline_id)
        .bind(&initial.phase_ids)
        .bind(&initial.phases)
        .bind(initial.created_at)
        .execute(&mut *connection)
        .await?;
    let sql = "insert into crm.source (account_id, name, position, created_at, updated_at) \
               select $1, source.name, source.position::integer, $3, $3 \
               from unnest($2::text[]) with ordinality as source (name, position)";
    sqlx::query(sql)
        .bind(account)
        .bind(&initial.sources)
        .bind(initial.created_at)
        .execute(connection)
        .await?;
    Ok(())
}
