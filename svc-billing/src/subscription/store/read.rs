//! Reading subscriptions.

use chassis_base::AccountId;
use chassis_data::row::Columns;
use chrono::{DateTime, NaiveDate, Utc};
use rust_decimal::Decimal;
use sqlx::postgres::PgRow;
use sqlx::{FromRow, PgConnection};
use uuid::Uuid;

use super::columns;
use crate::document::store::packed_rows;
use crate::error::Error;
use crate::money::two_places;
use crate::subscription::rules::calendar::{Series, Term};
use crate::subscription::rules::plan::{Plan, Status};
use crate::subscription::{Full, Record};
use chassis_base::stored::decode;

/// Reads the columns of `columns!`.
fn record(columns: &mut Columns<'_>) -> Result<Record, sqlx::Error> {
    let (id, number, title) = (columns.take()?, columns.take()?, columns.take()?);
    let (client, client_names, plan) = (columns.take()?, columns.take()?, plan(columns)?);
    Ok(Record {
        id,
        number,
        title,
        client,
        client_names,
        stored_status: plan.status,
        stored_term: plan.term,
        plan,
        failures: columns.take()?,
        last_error: columns.take()?,
        total_excl: two_places(columns.take()?),
        vat_rate: columns.take::<Decimal>()?.normalize(),
        vat_amount: two_places(columns.take()?),
        total_incl: two_places(columns.take()?),
        line_count: columns.take()?,
        created_at: columns.take()?,
        updated_at: columns.take()?,
        version: columns.take()?,
    })
}

fn plan(columns: &mut Columns<'_>) -> Result<Plan, sqlx::Error> {
    let status = decode("subscription.status", columns.take()?, Status::from_name)?;
    let term = decode("subscription.term", columns.take()?, Term::from_name)?;
    let start = columns.take()?;
    let end = columns.take()?;
    let first = columns.take()?;
    let day_of_month = day(columns)?;
    let day_of_week = day(columns)?;
    let anchor: Option<NaiveDate> = columns.take()?;
    let anchor_day = day(columns)?;
    let series = anchor.zip(anchor_day).map(|(anchor, day)| Series { term, anchor, day });
    let last: Option<NaiveDate> = columns.take()?;
    let billed_until: Option<NaiveDate> = columns.take()?;
    let next = columns.take()?;
    // An earlier release bills without storing `billed_until`, so that the column is missing or older than `last`.
    let computed = last.zip(series).map(|(last, series)| series.period_end(last));
    let billed_until = billed_until.filter(|day| last.is_none_or(|last| *day >= last)).or(computed);
    Ok(Plan { term, start, end, first, day_of_month, day_of_week, status, series, last, billed_until, next })
}

fn day(columns: &mut Columns<'_>) -> Result<Option<u32>, sqlx::Error> {
    Ok(columns.take::<Option<i32>>()?.and_then(|day| u32::try_from(day).ok()))
}

impl FromRow<'_, PgRow> for Record {
    fn from_row(row: &PgRow) -> Result<Self, sqlx::Error> {
        record(&mut Columns::of(row))
    }
}

impl FromRow<'_, PgRow> for Full {
    fn from_row(row: &PgRow) -> Result<Self, sqlx::Error> {
        let mut columns = Columns::of(row);
        let record = record(&mut columns)?;
        let lines = packed_rows(&mut columns)?;
        Ok(Self { record, lines: lines.into_iter().map(|line| line.row).collect() })
    }
}

/// The subscription with its lines, in one round trip.
pub(crate) async fn find(
    connection: &mut PgConnection,
    account: AccountId,
    id: Uuid,
) -> Result<Option<Full>, Error> {
    let sql = concat!(
        "select ",
        columns!(),
        ", lines.* from billing.subscription s \
         cross join lateral (select array_agg(title), array_agg(''::text), array_agg(quantity), array_agg(unit), \
         array_agg(unit_price), array_agg(vat_rate), array_agg(vat_code), array_agg(category), \
         array_agg(null::uuid) from (\
         select title, quantity, unit, unit_price, vat_rate, vat_code, category from billing.subscription_line l \
         where l.account_id = $1 and l.subscription_id = s.id order by l.position) l) lines \
         where s.account_id = $1 and s.id = $2"
    );
    Ok(sqlx::query_as(sql).bind(account).bind(id).fetch_optional(connection).await?)
}

/// The subscriptions with these ids that exist, sorted by id.
pub(crate) async fn list_by_ids(
    connection: &mut PgConnection,
    account: AccountId,
    ids: &[Uuid],
) -> Result<Vec<Record>, Error> {
    let sql = concat!(
        "select ",
        columns!(),
        " from billing.subscription where account_id = $1 and id = any($2) order by id"
    );
    Ok(sqlx::query_as(sql).bind(account).bind(ids).fetch_all(connection).await?)
}

/// Locks a subscription until the transaction ends, and reads it. The lock is a statement of its own: a single
/// statement that has to wait for the lock would not see lines that were replaced meanwhile.
pub(crate) async fn lock(
    connection: &mut PgConnection,
    account: AccountId,
    id: Uuid,
) -> Result<Option<Full>, Error> {
    let sql = "select id from billing.subscription where account_id = $1 and id = $2 for update";
    let locked: Option<Uuid> =
        sqlx::query_scalar(sql).bind(account).bind(id).fetch_optional(&mut *connection).await?;
    match locked {
        Some(id) => find(connection, account, id).await,
        None => Ok(None),
    }
}

pub(crate) async fn exists(
    connection: &mut PgConnection,
    account: AccountId,
    id: Uuid,
) -> Result<bool, Error> {
    let sql = "select exists (select from billing.subscription where account_id = $1 and id = $2)";
    Ok(sqlx::query_scalar(sql).bind(account).bind(id).fetch_one(connection).await?)
}

/// A subscription that is due.
#[derive(chassis_derive::FromRow)]
pub(crate) struct Due {
    pub id: Uuid,
    pub client_id: Option<Uuid>,
    pub failures: i32,
    since: DateTime<Utc>,
}

/// The subscriptions that have been due longest: those of one moment, at most `limit` of them.
pub(crate) async fn list_due(
    connection: &mut PgConnection,
    account: AccountId,
    now: DateTime<Utc>,
    limit: i64,
) -> Result<Vec<Due>, Error> {
    let sql = "select id, client_id, failures, due_at as since from billing.subscription \
               where account_id = $1 and due_at is not null and due_at <= $2 order by due_at, id limit $3";
    let mut due: Vec<Due> =
        sqlx::query_as(sql).bind(account).bind(now).bind(limit).fetch_all(connection).await?;
    let later = due.iter().position(|other| other.since > due[0].since);
    due.truncate(later.unwrap_or(due.len()));
    Ok(due)
}
