//! Writing subscriptions.

use chassis_base::AccountId;
use chrono::{DateTime, Utc};
use rust_decimal::Decimal;
use sqlx::postgres::PgArguments;
use sqlx::query::Query;
use sqlx::{PgConnection, Postgres};
use uuid::Uuid;

use crate::clients::Client;
use crate::document::rules::amounts::Row;
use crate::document::rules::search;
use crate::error::Error;
use crate::subscription::Record;

/// Stores a new subscription, without its lines.
pub(crate) async fn insert(
    connection: &mut PgConnection,
    account: AccountId,
    record: &Record,
    due_at: Option<DateTime<Utc>>,
) -> Result<(), Error> {
    let sql = "insert into billing.subscription (account_id, id, title, status, term, start_date, end_date, first_date, \
               day_of_month, day_of_week, anchor_date, anchor_day, last_generated, next_generate, due_at, failures, \
               last_error, total_excl, vat_rate, vat_amount, total_incl, line_count, search_text, updated_at, number, \
               client_id, client_names, created_at, billed_until, version) \
               values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, \
               $21, $22, $23, $24, $25, $26, $27, $28, $29, $30)";
    let query = bind(sqlx::query(sql), account, record, due_at);
    let query = query.bind(&record.number).bind(record.client).bind(&record.client_names);
    let query = query.bind(record.created_at).bind(record.plan.billed_until).bind(record.version);
    query.execute(connection).await?;
    Ok(())
}

/// Stores the columns of a subscription that can change, without its lines.
pub(crate) async fn update(
    connection: &mut PgConnection,
    account: AccountId,
    record: &Record,
    due_at: Option<DateTime<Utc>>,
) -> Result<(), Error> {
    let sql = "update billing.subscription set title = $3, status = $4, term = $5, start_date = $6, end_date = $7, \
               first_date = $8, day_of_month = $9, day_of_week = $10, anchor_date = $11, anchor_day = $12, \
               last_generated = $13, next_generate = $14, due_at = $15, failures = $16, last_error = $17, \
               total_excl = $18, vat_rate = $19, vat_amount = $20, total_incl = $21, line_count = $22, \
               search_text = $23, updated_at = $24, billed_until = $25, version = $26 \
               where account_id = $1 and id = $2";
    let query = bind(sqlx::query(sql), account, record, due_at);
    query.bind(record.plan.billed_until).bind(record.version).execute(connection).await?;
    Ok(())
}

/// Binds the parameters that insert and update have in common: $1 to $24.
fn bind<'q>(
    query: Query<'q, Postgres, PgArguments>,
    account: AccountId,
    record: &'q Record,
    due_at: Option<DateTime<Utc>>,
) -> Query<'q, Postgres, PgArguments> {
    let plan = &record.plan;
    let day = |day: Option<u32>| day.and_then(|day| i32::try_from(day).ok());
    query
        .bind(account)
        .bind(record.id)
        .bind(&record.title)
        .bind(plan.status.name())
        .bind(plan.term.name())
        .bind(plan.start)
        .bind(plan.end)
        .bind(plan.first)
        .bind(day(plan.day_of_month))
        .bind(day(plan.day_of_week))
        .bind(plan.series.map(|series| series.anchor))
        .bind(day(plan.series.map(|series| series.day)))
        .bind(plan.last)
        .bind(plan.next)
        .bind(due_at)
        .bind(record.failures)
        .bind(&record.last_error)
        .bind(record.total_excl)
        .bind(record.vat_rate)
        .bind(record.vat_amount)
        .bind(record.total_incl)
        .bind(record.line_count)
        .bind(format!("{}\n{}{}", record.title, record.client_names, record.number).to_lowercase())
        .bind(record.updated_at)
}

/// Replaces the lines of a subscription.
pub(crate) async fn replace_lines(
    connection: &mut PgConnection,
    account: AccountId,
    id: Uuid,
    lines: &[Row],
) -> Result<(), Error> {
    let sql = "delete from billing.subscription_line where account_id = $1 and subscription_id = $2";
    sqlx::query(sql).bind(account).bind(id).execute(&mut *connection).await?;
    let texts = |text: fn(&Row) -> &str| lines.iter().map(|line| text(line).to_owned()).collect::<Vec<_>>();
    let numbers = |number: fn(&Row) -> Decimal| lines.iter().map(number).collect::<Vec<_>>();
    sqlx::query(
        "insert into billing.subscription_line (account_id, subscription_id, position, title, quantity, unit, \
         unit_price, vat_rate, vat_code, category) \
         select $1, $2, position - 1, title, quantity, unit, unit_price, vat_rate, vat_code, category \
         from unnest($3::text[], $4::numeric[], $5::text[], $6::numeric[], $7::numeric[], $8::text[], $9::text[]) \
         with ordinality as l (title, quantity, unit, unit_price, vat_rate, vat_code, category, position)",
    )
    .bind(account)
    .bind(id)
    .bind(texts(|line| &line.name))
    .bind(numbers(|line| line.quantity))
    .bind(texts(|line| &line.unit))
    .bind(numbers(|line| line.unit_price))
    .bind(numbers(|line| line.vat_rate))
    .bind(texts(|line| &line.vat_code))
    .bind(texts(|line| line.category.code()))
    .execute(connection)
    .await?;
    Ok(())
}

/// Updates the names of a client in its subscriptions, which are searched for and not shown.
pub(crate) async fn follow_client(
    connection: &mut PgConnection,
    account: AccountId,
    client: &Client,
) -> Result<(), Error> {
    let sql = "update billing.subscription set client_names = $3, \
               search_text = lower(title) || E'\\n' || $3 || lower(number) \
               where account_id = $1 and client_id = $2 and client_names <> $3";
    let names = search::names(client);
    sqlx::query(sql).bind(account).bind(client.id).bind(names).execute(connection).await?;
    Ok(())
}
