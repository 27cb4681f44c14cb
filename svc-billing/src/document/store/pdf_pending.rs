//! Final documents whose PDF is still to be made.

use chassis_base::AccountId;
use chrono::{DateTime, Utc};
use sqlx::PgConnection;
use uuid::Uuid;

use crate::error::Error;

/// A document whose PDF is due.
#[derive(Clone, Copy, Debug, chassis_derive::FromRow)]
pub(crate) struct PendingPdf {
    pub document_id: Uuid,
    pub failures: i32,
}

/// Those that are due, the oldest first, at most `limit`.
pub(crate) async fn list_pending_pdfs(
    connection: &mut PgConnection,
    account: AccountId,
    now: DateTime<Utc>,
    limit: i64,
) -> Result<Vec<PendingPdf>, Error> {
    let sql = "select document_id, failures from billing.pdf_pending where account_id = $1 and due_at <= $2 \
               order by due_at, document_id limit $3";
    Ok(sqlx::query_as(sql).bind(account).bind(now).bind(limit).fetch_all(connection).await?)
}

/// How many wait.
pub(crate) async fn count_pending_pdfs(
    connection: &mut PgConnection,
    account: AccountId,
) -> Result<i64, Error> {
    let sql = "select count(*) from billing.pdf_pending where account_id = $1";
    Ok(sqlx::query_scalar(sql).bind(account).fetch_one(connection).await?)
}

/// Counts a failure; the next attempt is at `due_at`.
pub(crate) async fn postpone_pdf(
    connection: &mut PgConnection,
    account: AccountId,
    document: Uuid,
    due_at: DateTime<Utc>,
) -> Result<(), Error> {
    let sql = "update billing.pdf_pending set failures = failures + 1, due_at = $3 \
               where account_id = $1 and document_id = $2";
    sqlx::query(sql).bind(account).bind(document).bind(due_at).execute(connection).await?;
    Ok(())
}
