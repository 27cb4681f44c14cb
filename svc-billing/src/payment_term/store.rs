//! The SQL of payment terms, and nothing else.

use chassis_base::AccountId;
use chassis_base::time::timestamp;
use chrono::{DateTime, Utc};
use proto::billing::PaymentTerm;
use sqlx::PgConnection;

use crate::error::Error;

#[derive(chassis_derive::FromRow)]
struct Row {
    code: String,
    days: i32,
    label: String,
    version: i64,
    updated_at: DateTime<Utc>,
}

impl From<Row> for PaymentTerm {
    fn from(Row { code, days, label, version, updated_at }: Row) -> Self {
        Self { code, days, label, version, updated_at: Some(timestamp(updated_at)) }
    }
}

/// Shortest term first.
pub(crate) async fn list(
    connection: &mut PgConnection,
    account: AccountId,
) -> Result<Vec<PaymentTerm>, Error> {
    let sql = "select code, days, label, version, updated_at from billing.payment_term where account_id = $1 \
               order by days, code";
    let rows: Vec<Row> = sqlx::query_as(sql).bind(account).fetch_all(connection).await?;
    Ok(rows.into_iter().map(PaymentTerm::from).collect())
}

pub(crate) async fn find(
    connection: &mut PgConnection,
    account: AccountId,
    code: &str,
) -> Result<Option<PaymentTerm>, Error> {
    let sql = "select code, days, label, version, updated_at from billing.payment_term \
               where account_id = $1 and code = $2";
    let row: Option<Row> = sqlx::query_as(sql).bind(account).bind(code).fetch_optional(connection).await?;
    Ok(row.map(PaymentTerm::from))
}

/// How many terms the account has.
pub(crate) async fn count(connection: &mut PgConnection, account: AccountId) -> Result<i64, Error> {
    let sql = "select count(*) from billing.payment_term where account_id = $1";
    Ok(sqlx::query_scalar(sql).bind(account).fetch_one(connection).await?)
}

/// Adds terms that the account does not have.
pub(crate) async fn insert(
    connection: &mut PgConnection,
    account: AccountId,
    terms: &[PaymentTerm],
    now: DateTime<Utc>,
) -> Result<(), Error> {
    sqlx::query(
        "insert into billing.payment_term (account_id, code, days, label, version, created_at, updated_at)
         select $1, code, days, label, version, $2, $2
         from unnest($3::text[], $4::integer[], $5::text[], $6::bigint[]) as term (code, days, label, version)
         on conflict (account_id, code) do nothing",
    )
    .bind(account)
    .bind(now)
    .bind(terms.iter().map(|term| term.code.as_str()).collect::<Vec<_>>())
    .bind(terms.iter().map(|term| term.days).collect::<Vec<_>>())
    .bind(terms.iter().map(|term| term.label.as_str()).collect::<Vec<_>>())
    .bind(terms.iter().map(|term| term.version).collect::<Vec<_>>())
    .execute(connection)
    .await?;
    Ok(())
}

/// Replaces the term with its code.
pub(crate) async fn update(
    connection: &mut PgConnection,
    account: AccountId,
    term: &PaymentTerm,
    now: DateTime<Utc>,
) -> Result<(), Error> {
    let sql = "update billing.payment_term set days = $3, label = $4, version = $5, updated_at = $6 \
               where account_id = $1 and code = $2";
    let query = sqlx::query(sql).bind(account).bind(&term.code).bind(term.days).bind(&term.label);
    query.bind(term.version).bind(now).execute(connection).await?;
    Ok(())
}

/// Returns whether there was such a term.
pub(crate) async fn delete(
    connection: &mut PgConnection,
    account: AccountId,
    code: &str,
) -> Result<bool, Error> {
    let sql = "delete from billing.payment_term where account_id = $1 and code = $2";
    let deleted = sqlx::query(sql).bind(account).bind(code).execute(connection).await?;
    Ok(deleted.rows_affected() > 0)
}
