//! The SQL of pipelines and phases. Every writer holds the lock of the setup, because positions are computed from the
//! existing rows.

use chassis_base::AccountId;
use chrono::{DateTime, Utc};
use sqlx::PgConnection;
use uuid::Uuid;

use super::{Phase, Pipeline};
use crate::error::Error;

/// A phase with its pipeline.
#[derive(sqlx::FromRow)]
struct PhaseRow {
    pipeline_id: Uuid,
    pipeline_name: String,
    active: bool,
    id: Uuid,
    name: String,
    position: i32,
}

/// All pipelines with their phases, in their order.
pub(crate) async fn list(connection: &mut PgConnection, account: AccountId) -> Result<Vec<Pipeline>, Error> {
    let rows: Vec<PhaseRow> = sqlx::query_as(
        "select pipeline.id as pipeline_id, pipeline.name as pipeline_name, pipeline.active, phase.id, phase.name, \
         phase.position \
         from crm.pipeline pipeline join crm.phase phase \
         on phase.account_id = pipeline.account_id and phase.pipeline_id = pipeline.id \
         where pipeline.account_id = $1 order by pipeline.position, pipeline.id, phase.position, phase.id",
    )
    .bind(account)
    .fetch_all(connection)
    .await?;
    let mut pipelines: Vec<Pipeline> = Vec::new();
    for row in rows {
        let phase = Phase { id: row.id, name: row.name, order: row.position };
        // The rows of a pipeline follow each other.
        match pipelines.last_mut().filter(|last| last.id == row.pipeline_id) {
            Some(last) => last.phases.push(phase),
            None => pipelines.push(Pipeline {
                id: row.pipeline_id,
                name: row.pipeline_name,
                active: row.active,
                phases: vec![phase],
            }),
        }
    }
    Ok(pipelines)
}

/// Adds a pipeline at the end, without its phases.
pub(crate) async fn insert(
    connection: &mut PgConnection,
    account: AccountId,
    pipeline: &Pipeline,
    now: DateTime<Utc>,
) -> Result<(), Error> {
    sqlx::query(
        "insert into crm.pipeline (account_id, id, name, active, position, created_at, updated_at) \
         select $1, $2, $3, $4, coalesce(max(position), 0) + 1, $5, $5 from crm.pipeline where account_id = $1",
    )
    .bind(account)
    .bind(pipeline.id)
    .bind(&pipeline.name)
    .bind(pipeline.active)
    .bind(now)
    .execute(connection)
    .await?;
    Ok(())
}

/// Adds a phase at the end of its pipeline.
pub(crate) async fn insert_phase(
    connection: &mut PgConnection,
    account: AccountId,
    pipeline: Uuid,
    phase: &Phase,
    now: DateTime<Utc>,
) -> Result<(), Error> {
    sqlx::query(
        "insert into crm.phase (account_id, pipeline_id, id, name, position, created_at, updated_at) \
         select $1, $2, $3, $4, coalesce(max(position), 0) + 1, $5, $5 from crm.phase \
         where account_id = $1 and pipeline_id = $2",
    )
    .bind(account)
    .bind(pipeline)
    .bind(phase.id)
    .bind(&phase.name)
    .bind(now)
    .execute(connection)
    .await?;
    Ok(())
}

pub(crate) async fn update(
    connection: &mut PgConnection,
    account: AccountId,
    pipeline: &Pipeline,
    now: DateTime<Utc>,
) -> Result<(), Error> {
    let sql =
        "update crm.pipeline set name = $3, active = $4, updated_at = $5 where account_id = $1 and id = $2";
    let Pipeline { id, name, active, .. } = pipeline;
    sqlx::query(sql).bind(account).bind(id).bind(name).bind(active).bind(now).execute(connection).await?;
    Ok(())
}

pub(crate) async fn rename_phase(
    connection: &mut PgConnection,
    account: AccountId,
    phase: &Phase,
    now: DateTime<Utc>,
) -> Result<(), Error> {
    let sql = "update crm.phase set name = $3, updated_at = $4 where account_id = $1 and id = $2";
    sqlx::query(sql).bind(account).bind(phase.id).bind(&phase.name).bind(now).execute(connection).await?;
    Ok(())
}

/// Whether the pipeline has a deal; with `phase`, whether that phase has one.
pub(crate) async fn has_deals(
    connection: &mut PgConnection,
    account: AccountId,
    pipeline: Uuid,
    phase: Option<Uuid>,
) -> Result<bool, Error> {
    let sql = "select exists (select from crm.deal where account_id = $1 and pipeline_id = $2 \
               and ($3::uuid is null or phase_id = $3))";
    Ok(sqlx::query_scalar(sql).bind(account).bind(pipeline).bind(phase).fetch_one(connection).await?)
}

/// Removes a pipeline with its phases, and moves those behind it up.
pub(crate) async fn delete(connection: &mut PgConnection, account: AccountId, id: Uuid) -> Result<(), Error> {
    for sql in [
        "delete from crm.phase where account_id = $1 and pipeline_id = $2",
        "update crm.pipeline set position = position - 1 where account_id = $1 and position > \
         (select removed.position from crm.pipeline removed where removed.account_id = $1 and removed.id = $2)",
        "delete from crm.pipeline where account_id = $1 and id = $2",
    ] {
        sqlx::query(sql).bind(account).bind(id).execute(&mut *connection).await?;
    }
    Ok(())
}

/// Removes a phase and moves those behind it up.
pub(crate) async fn delete_phase(
    connection: &mut PgConnection,
    account: AccountId,
    pipeline: Uuid,
    id: Uuid,
) -> Result<(), Error> {
    for sql in [
        "update crm.phase set position = position - 1 where account_id = $1 and pipeline_id = $2 and position > \
         (select removed.position from crm.phase removed where removed.account_id = $1 and removed.id = $3)",
        "delete from crm.phase where account_id = $1 and pipeline_id = $2 and id = $3",
    ] {
        sqlx::query(sql).bind(account).bind(pipeline).bind(id).execute(&mut *connection).await?;
    }
    Ok(())
}

/// Puts the pipelines into the order of these ids.
pub(crate) async fn reorder(
    connection: &mut PgConnection,
    account: AccountId,
    ids: &[Uuid],
    now: DateTime<Utc>,
) -> Result<(), Error> {
    sqlx::query(
        "update crm.pipeline set position = requested.position::integer, updated_at = $3 \
         from unnest($2::uuid[]) with ordinality as requested (id, position) \
         where pipeline.account_id = $1 and pipeline.id = requested.id",
    )
    .bind(account)
    .bind(ids)
    .bind(now)
    .execute(connection)
    .await?;
    Ok(())
}

/// Puts the phases of a pipeline into the order of these ids.
pub(crate) async fn reorder_phases(
    connection: &mut PgConnection,
    account: AccountId,
    ids: &[Uuid],
    now: DateTime<Utc>,
) -> Result<(), Error> {
    sqlx::query(
        "update crm.phase set position = requested.position::integer, updated_at = $3 \
         from unnest($2::uuid[]) with ordinality as requested (id, position) \
         where phase.account_id = $1 and phase.id = requested.id",
    )
    .bind(account)
    .bind(ids)
    .bind(now)
    .execute(connection)
    .await?;
    Ok(())
}
