//! The SQL of payment terms, and nothing else.

use chassis_base::AccountId;
use chrono::{DateTime, Utc};
use proto::billing::PaymentTerm;
use sqlx::PgConnection;

use crate::error::Error;

#[derive(sqlx::FromRow)]
struct Row {
    code: String,
    days: i32,
    label: String,
}

impl From<Row> for PaymentTerm {
    fn from(Row { code, days, label }: Row) -> Self {
        Self { code, days, label }
    }
}

/// Shortest term first.
pub(crate) async fn list(
    connection: &mut PgConnection,
    account: AccountId,
) -> Result<Vec<PaymentTerm>, Error> {
    let sql = "select code, days, label from billing.payment_term where account_id = $1 order by days, code";
    let rows: Vec<Row> = sqlx::query_as(sql).bind(account).fetch_all(connection).await?;
    Ok(rows.into_iter().map(PaymentTerm::from).collect())
}

/// Adds the terms that an account starts with.
pub(crate) async fn insert(
    connection: &mut PgConnection,
    account: AccountId,
    terms: &[PaymentTerm],
    now: DateTime<Utc>,
) -> Result<(), Error> {
    sqlx::query(
        "insert into billing.payment_term (account_id, code, days, label, created_at, updated_at)
         select $1, code, days, label, $2, $2
         from unnest($3::text[], $4::integer[], $5::text[]) as term (code, days, label)
         on conflict (account_id, code) do nothing",
    )
    .bind(account)
    .bind(now)
    .bind(terms.iter().map(|term| term.code.as_str()).collect::<Vec<_>>())
    .bind(terms.iter().map(|term| term.days).collect::<Vec<_>>())
    .bind(terms.iter().map(|term| term.label.as_str()).collect::<Vec<_>>())
    .execute(connection)
    .await?;
    Ok(())
}

/// Adds a term or replaces the one with its code; returns how many others the account has.
pub(crate) async fn put(
    connection: &mut PgConnection,
    account: AccountId,
    term: &PaymentTerm,
    now: DateTime<Utc>,
) -> Result<i64, Error> {
    sqlx::query(
        "insert into billing.payment_term (account_id, code, days, label, created_at, updated_at)
         values ($1, $2, $3, $4, $5, $5)
         on conflict (account_id, code) do update
            set days = excluded.days, label = excluded.label, updated_at = excluded.updated_at",
    )
    .bind(account)
    .bind(&term.code)
    .bind(term.days)
    .bind(&term.label)
    .bind(now)
    .execute(&mut *connection)
    .await?;
    let sql = "select count(*) from billing.payment_term where account_id = $1 and code <> $2";
    Ok(sqlx::query_scalar(sql).bind(account).bind(&term.code).fetch_one(connection).await?)
}

/// Tells whether there was one to delete.
pub(crate) async fn delete(
    connection: &mut PgConnection,
    account: AccountId,
    code: &str,
) -> Result<bool, Error> {
    let sql = "delete from billing.payment_term where account_id = $1 and code = $2";
    let deleted = sqlx::query(sql).bind(account).bind(code).execute(connection).await?;
    Ok(deleted.rows_affected() > 0)
}
