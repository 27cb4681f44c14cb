//! The SQL of versions, and of flows as far as starting a run needs it. Everything else of flows is in `flow::store`.

use chassis_base::AccountId;
use chassis_base::stored;
use chassis_data::row::Columns;
use chrono::{DateTime, Utc};
use sqlx::postgres::PgRow;
use sqlx::{FromRow, PgConnection};
use uuid::Uuid;

use super::{FlowRef, TriggerType, Version};
use crate::error::Error;

macro_rules! ref_columns {
    () => {
        "id, version, name, trigger_type, trigger_key"
    };
}

/// In the order of `ref_columns!`.
impl FromRow<'_, PgRow> for FlowRef {
    fn from_row(row: &PgRow) -> Result<Self, sqlx::Error> {
        let mut columns = Columns::of(row);
        Ok(Self {
            id: columns.take()?,
            version: columns.take()?,
            name: columns.take()?,
            trigger_type: stored::decode(
                "flow.trigger_type",
                &columns.take::<String>()?,
                TriggerType::from_name,
            )?,
            trigger_key: columns.take()?,
        })
    }
}

pub(crate) async fn find_flow(
    connection: &mut PgConnection,
    account: AccountId,
    id: Uuid,
) -> Result<Option<FlowRef>, Error> {
    let sql = concat!(
        "select ",
        ref_columns!(),
        " from automation.flow where account_id = $1 and id = $2 and not deleted"
    );
    Ok(sqlx::query_as(sql).bind(account).bind(id).fetch_optional(connection).await?)
}

/// The active flows that one of these events triggers, oldest first.
pub(crate) async fn find_triggered(
    connection: &mut PgConnection,
    account: AccountId,
    events: &[String],
) -> Result<Vec<FlowRef>, Error> {
    let sql = concat!(
        "select ",
        ref_columns!(),
        " from automation.flow where account_id = $1 and trigger_key = any($2) and active and not deleted
            and trigger_type in ('event', 'custom')
          order by created_at, id"
    );
    Ok(sqlx::query_as(sql).bind(account).bind(events).fetch_all(connection).await?)
}

/// The definition that a flow had in this version: that of the last change of the definition until then.
pub(crate) async fn find_version(
    connection: &mut PgConnection,
    account: AccountId,
    flow: Uuid,
    version: i64,
) -> Result<Option<Version>, Error> {
    let sql = "select source, definition, scopes from automation.flow_version
               where account_id = $1 and flow_id = $2 and version <= $3 order by version desc limit 1";
    Ok(sqlx::query_as(sql).bind(account).bind(flow).bind(version).fetch_optional(connection).await?)
}

/// Stores a version. Versions are never changed: runs keep the one that they started with.
pub(crate) async fn insert_version(
    connection: &mut PgConnection,
    account: AccountId,
    flow: Uuid,
    version: i64,
    content: &Version,
    now: DateTime<Utc>,
) -> Result<(), Error> {
    sqlx::query(
        "insert into automation.flow_version (account_id, flow_id, version, source, definition, created_at, scopes)
         values ($1, $2, $3, $4, $5, $6, $7)",
    )
    .bind(account)
    .bind(flow)
    .bind(version)
    .bind(&content.source)
    .bind(&content.definition)
    .bind(now)
    .bind(&content.scopes)
    .execute(connection)
    .await?;
    Ok(())
}

/// Copies the definition to a version that leaves it as it is, for programs of the release before, which look for the very
/// version of the flow. Copies from before `kept_from` are deleted, because by then no such program runs any more.
pub(crate) async fn copy_version(
    connection: &mut PgConnection,
    account: AccountId,
    flow: Uuid,
    version: i64,
    now: DateTime<Utc>,
    kept_from: DateTime<Utc>,
) -> Result<(), Error> {
    sqlx::query(
        "with copy as (
            insert into automation.flow_version
                (account_id, flow_id, version, source, definition, created_at, scopes, copied)
            select $1, $2, $3, source, definition, $4, scopes, true from automation.flow_version
            where account_id = $1 and flow_id = $2 and version < $3 order by version desc limit 1
         )
         delete from automation.flow_version
         where account_id = $1 and flow_id = $2 and copied and created_at < $5",
    )
    .bind(account)
    .bind(flow)
    .bind(version)
    .bind(now)
    .bind(kept_from)
    .execute(connection)
    .await?;
    Ok(())
}
