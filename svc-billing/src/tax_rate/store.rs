//! The SQL of tax rates, and nothing else.

use chassis_base::AccountId;
use chrono::{DateTime, Utc};
use proto::billing::TaxRateContext;
use rust_decimal::Decimal;
use sqlx::PgConnection;

use super::{Rate, context_from_name, context_name, type_from_name, type_name};
use crate::error::Error;
use chassis_base::stored::decode;

#[derive(sqlx::FromRow)]
struct Row {
    context: String,
    code: String,
    label: String,
    r#type: String,
    amount: Decimal,
}

impl TryFrom<Row> for Rate {
    type Error = sqlx::Error;

    fn try_from(row: Row) -> Result<Self, sqlx::Error> {
        Ok(Self {
            kind: decode("tax_rate.type", &row.r#type, type_from_name)?,
            context: decode("tax_rate.context", &row.context, context_from_name)?,
            code: row.code,
            label: row.label,
            amount: row.amount,
        })
    }
}

/// All rates, or those of one context, in no particular order.
pub(crate) async fn list(
    connection: &mut PgConnection,
    account: AccountId,
    context: Option<TaxRateContext>,
) -> Result<Vec<Rate>, Error> {
    let rows: Vec<Row> = sqlx::query_as(
        "select context, code, label, type, amount from billing.tax_rate
         where account_id = $1 and ($2::text is null or context = $2)",
    )
    .bind(account)
    .bind(context.map(context_name))
    .fetch_all(connection)
    .await?;
    Ok(rows.into_iter().map(Rate::try_from).collect::<Result<_, _>>()?)
}

/// Whether there is a rate for sales with this code.
pub(crate) async fn exists(
    connection: &mut PgConnection,
    account: AccountId,
    code: &str,
) -> Result<bool, Error> {
    let sql = "select exists (select from billing.tax_rate where account_id = $1 and context = 'sales' and code = $2)";
    Ok(sqlx::query_scalar(sql).bind(account).bind(code).fetch_one(connection).await?)
}

/// Adds the rates that an account starts with.
pub(crate) async fn insert(
    connection: &mut PgConnection,
    account: AccountId,
    rates: &[Rate],
    now: DateTime<Utc>,
) -> Result<(), Error> {
    sqlx::query(
        "insert into billing.tax_rate (account_id, context, code, label, type, amount, created_at, updated_at)
         select $1, context, code, label, type, amount, $2, $2
         from unnest($3::text[], $4::text[], $5::text[], $6::text[], $7::numeric[])
            as rate (context, code, label, type, amount)
         on conflict (account_id, context, code) do nothing",
    )
    .bind(account)
    .bind(now)
    .bind(rates.iter().map(|rate| context_name(rate.context)).collect::<Vec<_>>())
    .bind(rates.iter().map(|rate| rate.code.as_str()).collect::<Vec<_>>())
    .bind(rates.iter().map(|rate| rate.label.as_str()).collect::<Vec<_>>())
    .bind(rates.iter().map(|rate| type_name(rate.kind)).collect::<Vec<_>>())
    .bind(rates.iter().map(|rate| rate.amount).collect::<Vec<_>>())
    .execute(connection)
    .await?;
    Ok(())
}

/// Adds a rate or replaces the one with its context and code; returns how many others the account has.
pub(crate) async fn put(
    connection: &mut PgConnection,
    account: AccountId,
    rate: &Rate,
    now: DateTime<Utc>,
) -> Result<i64, Error> {
    sqlx::query(
        "insert into billing.tax_rate (account_id, context, code, label, type, amount, created_at, updated_at)
         values ($1, $2, $3, $4, $5, $6, $7, $7)
         on conflict (account_id, context, code) do update
            set label = excluded.label, type = excluded.type, amount = excluded.amount,
                updated_at = excluded.updated_at",
    )
    .bind(account)
    .bind(context_name(rate.context))
    .bind(&rate.code)
    .bind(&rate.label)
    .bind(type_name(rate.kind))
    .bind(rate.amount)
    .bind(now)
    .execute(&mut *connection)
    .await?;
    let sql =
        "select count(*) from billing.tax_rate where account_id = $1 and not (context = $2 and code = $3)";
    let query = sqlx::query_scalar(sql).bind(account).bind(context_name(rate.context)).bind(&rate.code);
    Ok(query.fetch_one(connection).await?)
}

/// Tells whether there was one to delete.
pub(crate) async fn delete(
    connection: &mut PgConnection,
    account: AccountId,
    context: TaxRateContext,
    code: &str,
) -> Result<bool, Error> {
    let deleted =
        sqlx::query("delete from billing.tax_rate where account_id = $1 and context = $2 and code = $3")
            .bind(account)
            .bind(context_name(context))
            .bind(code)
            .execute(connection)
            .await?;
    Ok(deleted.rows_affected() > 0)
}
