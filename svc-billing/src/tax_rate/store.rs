//! The SQL of tax rates, and nothing else.

use chassis_base::AccountId;
use chrono::{DateTime, Utc};
use proto::billing::TaxRateContext;
use rust_decimal::Decimal;
use sqlx::PgConnection;

use super::{Rate, Record, context_from_name, context_name, type_from_name, type_name};
use crate::error::Error;
use chassis_base::stored::decode;

#[derive(chassis_derive::FromRow)]
struct Row {
    context: String,
    code: String,
    label: String,
    r#type: String,
    amount: Decimal,
    version: i64,
    updated_at: DateTime<Utc>,
}

impl TryFrom<Row> for Record {
    type Error = sqlx::Error;

    fn try_from(row: Row) -> Result<Self, sqlx::Error> {
        let rate = Rate {
            kind: decode("tax_rate.type", &row.r#type, type_from_name)?,
            context: decode("tax_rate.context", &row.context, context_from_name)?,
            code: row.code,
            label: row.label,
            amount: row.amount,
        };
        Ok(Self { rate, version: row.version, updated_at: row.updated_at })
    }
}

/// All rates, or those of one context, in no particular order.
pub(crate) async fn list(
    connection: &mut PgConnection,
    account: AccountId,
    context: Option<TaxRateContext>,
) -> Result<Vec<Record>, Error> {
    let rows: Vec<Row> = sqlx::query_as(
        "select context, code, label, type, amount, version, updated_at from billing.tax_rate
         where account_id = $1 and ($2::text is null or context = $2)",
    )
    .bind(account)
    .bind(context.map(context_name))
    .fetch_all(connection)
    .await?;
    Ok(rows.into_iter().map(Record::try_from).collect::<Result<_, _>>()?)
}

pub(crate) async fn find(
    connection: &mut PgConnection,
    account: AccountId,
    context: TaxRateContext,
    code: &str,
) -> Result<Option<Record>, Error> {
    let row: Option<Row> = sqlx::query_as(
        "select context, code, label, type, amount, version, updated_at from billing.tax_rate
         where account_id = $1 and context = $2 and code = $3",
    )
    .bind(account)
    .bind(context_name(context))
    .bind(code)
    .fetch_optional(connection)
    .await?;
    Ok(row.map(Record::try_from).transpose()?)
}

/// How many rates the account has.
pub(crate) async fn count(connection: &mut PgConnection, account: AccountId) -> Result<i64, Error> {
    let sql = "select count(*) from billing.tax_rate where account_id = $1";
    Ok(sqlx::query_scalar(sql).bind(account).fetch_one(connection).await?)
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

/// Adds rates that the account does not have.
pub(crate) async fn insert(
    connection: &mut PgConnection,
    account: AccountId,
    records: &[Record],
) -> Result<(), Error> {
    let rates = || records.iter().map(|record| &record.rate);
    sqlx::query(
        "insert into billing.tax_rate
            (account_id, context, code, label, type, amount, version, created_at, updated_at)
         select $1, context, code, label, type, amount, version, updated_at, updated_at
         from unnest($2::text[], $3::text[], $4::text[], $5::text[], $6::numeric[], $7::bigint[], $8::timestamptz[])
            as rate (context, code, label, type, amount, version, updated_at)
         on conflict (account_id, context, code) do nothing",
    )
    .bind(account)
    .bind(rates().map(|rate| context_name(rate.context)).collect::<Vec<_>>())
    .bind(rates().map(|rate| rate.code.as_str()).collect::<Vec<_>>())
    .bind(rates().map(|rate| rate.label.as_str()).collect::<Vec<_>>())
    .bind(rates().map(|rate| type_name(rate.kind)).collect::<Vec<_>>())
    .bind(rates().map(|rate| rate.amount).collect::<Vec<_>>())
    .bind(records.iter().map(|record| record.version).collect::<Vec<_>>())
    .bind(records.iter().map(|record| record.updated_at).collect::<Vec<_>>())
    .execute(connection)
    .await?;
    Ok(())
}

/// Replaces the rate with its context and code.
pub(crate) async fn update(
    connection: &mut PgConnection,
    account: AccountId,
    Record { rate, version, updated_at }: &Record,
) -> Result<(), Error> {
    sqlx::query(
        "update billing.tax_rate set label = $4, type = $5, amount = $6, version = $7, updated_at = $8
         where account_id = $1 and context = $2 and code = $3",
    )
    .bind(account)
    .bind(context_name(rate.context))
    .bind(&rate.code)
    .bind(&rate.label)
    .bind(type_name(rate.kind))
    .bind(rate.amount)
    .bind(version)
    .bind(updated_at)
    .execute(connection)
    .await?;
    Ok(())
}

/// Returns whether there was such a rate.
pub(crate) async fn delete(
    connection: &mut PgConnection,
    account: AccountId,
    context: TaxRateContext,
    code: &str,
) -> Result<bool, Error> {
    let sql = "delete from billing.tax_rate where account_id = $1 and context = $2 and code = $3";
    let query = sqlx::query(sql).bind(account).bind(context_name(context)).bind(code);
    Ok(query.execute(connection).await?.rows_affected() > 0)
}
