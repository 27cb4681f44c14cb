//! The SQL of the steps of runs.

use chassis_base::AccountId;
use chassis_base::stored;
use chassis_data::row::Columns;
use sqlx::postgres::PgRow;
use sqlx::{FromRow, PgConnection};
use uuid::Uuid;

use crate::definition::StepKind;
use crate::error::Error;
use crate::run::{Outcome, StepRecord};

const STEP_COLUMNS: &str = "step, ordinal, kind, outcome, attempts, input, answer, error, uncertain, decided_by, \
                            reason, started_at, ended_at";

/// In the order of `STEP_COLUMNS`.
impl FromRow<'_, PgRow> for StepRecord {
    fn from_row(row: &PgRow) -> Result<Self, sqlx::Error> {
        let mut columns = Columns::of(row);
        Ok(Self {
            step: columns.take()?,
            ordinal: columns.take()?,
            kind: stored::decode("run_step.kind", &columns.take::<String>()?, StepKind::from_name)?,
            outcome: stored::decode("run_step.outcome", &columns.take::<String>()?, Outcome::from_name)?,
            attempts: columns.take()?,
            input: columns.take()?,
            answer: columns.take()?,
            error: columns.take()?,
            uncertain: columns.take()?,
            decided_by: columns.take()?,
            reason: columns.take()?,
            started_at: columns.take()?,
            ended_at: columns.take()?,
        })
    }
}

/// The steps that have started, in their order.
pub(in crate::run) async fn list_steps(
    connection: &mut PgConnection,
    account: AccountId,
    run: Uuid,
) -> Result<Vec<StepRecord>, Error> {
    let sql = sqlx::AssertSqlSafe(format!(
        "select {STEP_COLUMNS} from automation.run_step where account_id = $1 and run_id = $2 order by ordinal, step"
    ));
    Ok(sqlx::query_as(sql).bind(account).bind(run).fetch_all(connection).await?)
}

/// Stores a step, new or changed.
pub(in crate::run) async fn put_step(
    connection: &mut PgConnection,
    account: AccountId,
    run: Uuid,
    step: &StepRecord,
) -> Result<(), Error> {
    sqlx::query(
        "insert into automation.run_step
            (account_id, run_id, step, ordinal, kind, outcome, attempts, input, answer, error, uncertain, decided_by,
             reason, started_at, ended_at)
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15)
         on conflict (account_id, run_id, step) do update set
            outcome = $6, attempts = $7, input = $8, answer = $9, error = $10, uncertain = $11, decided_by = $12,
            reason = $13, started_at = $14, ended_at = $15",
    )
    .bind(account)
    .bind(run)
    .bind(&step.step)
    .bind(step.ordinal)
    .bind(step.kind.name())
    .bind(step.outcome.name())
    .bind(step.attempts)
    .bind(&step.input)
    .bind(&step.answer)
    .bind(&step.error)
    .bind(step.uncertain)
    .bind(&step.decided_by)
    .bind(&step.reason)
    .bind(step.started_at)
    .bind(step.ended_at)
    .execute(connection)
    .await?;
    Ok(())
}
