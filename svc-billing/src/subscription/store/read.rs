//! Finding subscriptions.

use chassis_base::AccountId;
use chassis_data::row::Columns;
use chrono::{DateTime, NaiveDate, Utc};
use rust_decimal::Decimal;
use sqlx::postgres::PgRow;
use sqlx::{FromRow, PgConnection};
use uuid::Uuid;

use super::columns;
use crate::Error;
use crate::document::rules::amounts::two_places;
use crate::document::store::packed_rows;
use crate::subscription::rules::calendar::{Series, Term};
use crate::subscription::rules::plan::{Plan, Status};
use crate::subscription::{Full, Record};

pub fn status_name(status: Status) -> &'static str {
    match status {
        Status::Draft => "draft",
        Status::Active => "active",
        Status::Ended => "ended",
    }
}

pub fn term_name(term: Term) -> &'static str {
    match term {
        Term::Weekly => "weekly",
        Term::FourWeeks => "four_weeks",
        Term::Monthly => "monthly",
        Term::Quarterly => "quarterly",
        Term::HalfYearly => "half_yearly",
        Term::Yearly => "yearly",
    }
}

/// The opposite of [`status_name`]. The database knows no other names.
fn status(name: &str) -> Status {
    let all = [Status::Draft, Status::Active, Status::Ended];
    all.into_iter().find(|status| status_name(*status) == name).unwrap_or(Status::Ended)
}

/// The opposite of [`term_name`]. The database knows no other names.
fn term(name: &str) -> Term {
    Term::ALL.into_iter().find(|term| term_name(*term) == name).unwrap_or(Term::Monthly)
}

/// Reads the columns of `columns!`.
fn record(columns: &mut Columns<'_>) -> Result<Record, sqlx::Error> {
    Ok(Record {
        id: columns.take()?,
        number: columns.take()?,
        title: columns.take()?,
        client: columns.take()?,
        client_names: columns.take()?,
        plan: plan(columns)?,
        failures: columns.take()?,
        last_error: columns.take()?,
        total_excl: two_places(columns.take()?),
        vat_rate: columns.take::<Decimal>()?.normalize(),
        vat_amount: two_places(columns.take()?),
        total_incl: two_places(columns.take()?),
        line_count: columns.take()?,
        created_at: columns.take()?,
        updated_at: columns.take()?,
    })
}

fn plan(columns: &mut Columns<'_>) -> Result<Plan, sqlx::Error> {
    let status = status(columns.take()?);
    let term = term(columns.take()?);
    let (start, end, first) = (columns.take()?, columns.take()?, columns.take()?);
    let (day_of_month, day_of_week) = (day(columns)?, day(columns)?);
    let (anchor, anchor_day): (Option<NaiveDate>, _) = (columns.take()?, day(columns)?);
    let series = anchor.zip(anchor_day).map(|(anchor, day)| Series { term, anchor, day });
    let (last, billed_until): (Option<NaiveDate>, Option<NaiveDate>) = (columns.take()?, columns.take()?);
    let next = columns.take()?;
    // An earlier version of the program bills without noting how far.
    let reckoned = last.zip(series).map(|(last, series)| series.period_end(last));
    let billed_until = billed_until.filter(|day| last.is_none_or(|last| *day >= last)).or(reckoned);
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
pub async fn find(
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

/// Those of the subscriptions that exist, in the order of their ids.
pub async fn list_by_ids(
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

/// A subscription that is about to be changed; others who want to change it wait. Locked by a statement of its own: one
/// that had to wait would not see lines that were replaced meanwhile.
pub async fn lock(
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

pub async fn exists(connection: &mut PgConnection, account: AccountId, id: Uuid) -> Result<bool, Error> {
    let sql = "select exists (select from billing.subscription where account_id = $1 and id = $2)";
    Ok(sqlx::query_scalar(sql).bind(account).bind(id).fetch_one(connection).await?)
}

/// A subscription that has something to be done.
#[derive(sqlx::FromRow)]
pub struct Due {
    pub id: Uuid,
    pub client_id: Option<Uuid>,
    pub failures: i32,
}

/// The one that waits longest for its turn.
pub async fn find_due(
    connection: &mut PgConnection,
    account: AccountId,
    now: DateTime<Utc>,
) -> Result<Option<Due>, Error> {
    let sql = "select id, client_id, failures from billing.subscription \
               where account_id = $1 and due_at is not null and due_at <= $2 order by due_at, id limit 1";
    Ok(sqlx::query_as(sql).bind(account).bind(now).fetch_optional(connection).await?)
}
