//! The SQL of pipelines and phases. Every writer holds the lock of the setup, because positions are computed from the
//! existing rows.

use chassis_base::AccountId;
use chrono::{DateTime, Utc};
use sqlx::PgConnection;
use uuid::Uuid;

use super::{Phase, Pipeline};
use crate::error::Error;

/// A phase with its pipeline.
#[derive(chassis_derive::FromRow)]
struct PhaseRow {
    pipeline_id: Uuid,
    pipeline_name: String,
    active: bool,
    pipeline_version: i64,
    pipeline_updated_at: DateTime<Utc>,
    id: Uuid,
    name: String,
    position: i32,
    version: i64,
    updated_at: DateTime<Utc>,
}

/// All pipelines with their phases, in their order.
pub(crate) async fn list(connection: &mut PgConnection, account: AccountId) -> Result<Vec<Pipeline>, Error> {
    let rows: Vec<PhaseRow> = sqlx::query_as(
        "select pipeline.id as pipeline_id, pipeline.name as pipeline_name, pipeline.active, \
         pipeline.version as pipeline_version, pipeline.updated_at as pipeline_updated_at, phase.id, phase.name, \
         phase.position, phase.version, phase.updated_at \
         from crm.pipeline pipeline join crm.phase phase \
         on phase.account_id = pipeline.account_id and phase.pipeline_id = pipeline.id \
         where pipeline.account_id = $1 order by pipeline.position, pipeline.id, phase.position, phase.id",
    )
    .bind(account)
    .fetch_all(connection)
    .await?;
    let mut pipelines: Vec<Pipeline> = Vec::new();
    for row in rows {
        let phase = Phase {
            id: row.id,
            name: row.name,
            order: row.position,
            version: row.version,
            updated_at: row.updated_at,
        };
        // The rows of a pipeline follow each other.
        match pipelines.last_mut().filter(|last| last.id == row.pipeline_id) {
            Some(last) => last.phases.push(phase),
            None => pipelines.push(Pipeline {
                id: row.pipeline_id,
                name: row.pipeline_name,
                active: row.active,
                phases: vec![phase],
                version: row.pipeline_version,
                updated_at: row.pipeline_updated_at,
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
) -> Result<(), Error> {
    sqlx::query(
        "insert into crm.pipeline (account_id, id, name, active, position, version, created_at, updated_at) \
         select $1, $2, $3, $4, coalesce(max(position), 0) + 1, $5, $6, $6 from crm.pipeline \
         where account_id = $1",
    )
    .bind(account)
    .bind(pipeline.id)
    .bind(&pipeline.name)
    .bind(pipeline.active)
    .bind(pipeline.version)
    .bind(pipeline.updated_at)
    .execute(connection)
    .await?;
    Ok(())
}

/// Adds a phase to its pipeline.
pub(crate) async fn insert_phase(
    connection: &mut PgConnection,
    account: AccountId,
    pipeline: Uuid,
    phase: &Phase,
) -> Result<(), Error> {
    sqlx::query(
        "insert into crm.phase (account_id, pipeline_id, id, name, position, version, created_at, updated_at) \
         values ($1, $2, $3, $4, $5, $6, $7, $7)",
    )
    .bind(account)
    .bind(pipeline)
    .bind(phase.id)
    .bind(&phase.name)
    .bind(phase.order)
    .bind(phase.version)
    .bind(phase.updated_at)
    .execute(connection)
    .await?;
    Ok(())
}

/// Stores a changed pipeline, without its phases.
pub(crate) async fn update(
    connection: &mut PgConnection,
    account: AccountId,
    pipeline: &Pipeline,
) -> Result<(), Error> {
    let sql = "update crm.pipeline set name = $3, active = $4, version = $5, updated_at = $6 \
               where account_id = $1 and id = $2";
    let Pipeline { id, name, active, version, updated_at, .. } = pipeline;
    let query = sqlx::query(sql).bind(account).bind(id).bind(name).bind(active).bind(version);
    query.bind(updated_at).execute(connection).await?;
    Ok(())
}

pub(crate) async fn rename_phase(
    connection: &mut PgConnection,
    account: AccountId,
    phase: &Phase,
) -> Result<(), Error> {
    let sql = "update crm.phase set name = $3, version = $4, updated_at = $5 \
               where account_id = $1 and id = $2";
    let Phase { id, name, version, updated_at, .. } = phase;
    let query = sqlx::query(sql).bind(account).bind(id).bind(name).bind(version).bind(updated_at);
    query.execute(connection).await?;
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

pub(crate) async fn delete_phase(
    connection: &mut PgConnection,
    account: AccountId,
    pipeline: Uuid,
    id: Uuid,
) -> Result<(), Error> {
    let sql = "delete from crm.phase where account_id = $1 and pipeline_id = $2 and id = $3";
    sqlx::query(sql).bind(account).bind(pipeline).bind(id).execute(connection).await?;
    Ok(())
}

/// Puts the pipelines into the order of these ids.
pub(crate) async fn reorder(
    connection: &mut PgConnection,
    account: AccountId,
    ids: &[Uuid],
) -> Result<(), Error> {
    sqlx::query(
        "update crm.pipeline set position = requested.position::integer \
         from unnest($2::uuid[]) with ordinality as requested (id, position) \
         where pipeline.account_id = $1 and pipeline.id = requested.id",
    )
    .bind(account)
    .bind(ids)
    .execute(connection)
    .await?;
    Ok(())
}

/// Stores the places of these phases, and the versions that they have by that.
pub(crate) async fn place_phases(
    connection: &mut PgConnection,
    account: AccountId,
    phases: &[Phase],
    now: DateTime<Utc>,
) -> Result<(), Error> {
    let ids: Vec<Uuid> = phases.iter().map(|phase| phase.id).collect();
    let positions: Vec<i32> = phases.iter().map(|phase| phase.order).collect();
    let versions: Vec<i64> = phases.iter().map(|phase| phase.version).collect();
    sqlx::query(
        "update crm.phase set position = placed.position, version = placed.version, updated_at = $5 \
         from unnest($2::uuid[], $3::integer[], $4::bigint[]) as placed (id, position, version) \
         where phase.account_id = $1 and phase.id = placed.id",
    )
    .bind(account)
    .bind(ids)
    .bind(positions)
    .bind(versions)
    .bind(now)
    .execute(connection)
    .await?;
    Ok(())
}
