//! The SQL of deals and their history, and nothing else.

use chassis::AccountId;
use chassis::list::{List, Total};
use chassis::paging::Page;
use chassis::row::Columns;
use chassis::time::timestamp;
use chrono::{DateTime, Utc};
use proto::Faults;
use proto::api::PageMeta;
use proto::crm::{DealStatus, DealStep};
use sqlx::postgres::{PgArguments, PgRow};
use sqlx::query::Query;
use sqlx::{FromRow, PgConnection, Postgres};
use uuid::Uuid;

use super::{
    LIST, Place, Record, Values, list_of, priority_name, priority_named, rules, status_name, status_named,
};
use crate::Error;

const TABLE: &str = "crm.deal";

macro_rules! columns {
    () => {
        "id, version, title, client_id, pipeline_id, phase_id, amount, priority, status, expected_close_date, source, \
         phase_since, won_at, lost_at, created_at, updated_at"
    };
}

/// What can be sorted by, as the contract names it and as the table does.
const SORTS: [(&str, &str); 5] = [
    ("created_at", "created_at"),
    ("updated_at", "updated_at"),
    ("title", "title"),
    ("amount", "amount"),
    ("expected_close_date", "expected_close_date"),
];

/// How much of a history is shown.
const MOST_STEPS: i64 = 100;

/// In the order of `columns!`.
impl FromRow<'_, PgRow> for Record {
    fn from_row(row: &PgRow) -> Result<Self, sqlx::Error> {
        let mut columns = Columns::of(row);
        Ok(Self {
            id: columns.take()?,
            version: columns.take()?,
            values: Values {
                title: columns.take()?,
                client_id: columns.take()?,
                place: Place { pipeline_id: columns.take()?, phase_id: columns.take()? },
                amount: columns.take()?,
                priority: priority_named(columns.take()?),
                status: status_named(columns.take()?),
                expected_close_date: columns.take()?,
                source: columns.take()?,
            },
            phase_since: columns.take()?,
            won_at: columns.take()?,
            lost_at: columns.take()?,
            created_at: columns.take()?,
            updated_at: columns.take()?,
        })
    }
}

/// Which deals are asked for; empty texts and `None` ask for nothing.
#[derive(Debug, Default)]
pub struct Wanted<'a> {
    pub client: Option<Uuid>,
    pub status: Option<DealStatus>,
    pub pipeline: Option<Uuid>,
    pub phase: Option<Uuid>,
    pub search: &'a str,
    pub sort: &'a str,
    pub order: &'a str,
}

/// A page, newest first unless asked otherwise.
pub async fn list(
    connection: &mut PgConnection,
    account: AccountId,
    wanted: &Wanted<'_>,
    page: Page,
) -> Result<(Vec<Record>, PageMeta), Error> {
    let counted = Total::Counted(wanted.status.map_or(LIST, list_of));
    let mut list = List::new(account, TABLE, columns!(), counted);
    if let Some(status) = wanted.status {
        list.equals("status", status_name(status));
    }
    for (column, id) in
        [("client_id", wanted.client), ("pipeline_id", wanted.pipeline), ("phase_id", wanted.phase)]
    {
        list.only(column, id);
    }
    list.search("search_text", wanted.search);
    let mut faults = Faults::default();
    list.sort(&SORTS, wanted.sort, wanted.order, &mut faults);
    if !faults.is_empty() {
        return Err(chassis::Error::from(faults).into());
    }
    Ok(list.fetch(connection, page).await?)
}

pub async fn find(
    connection: &mut PgConnection,
    account: AccountId,
    id: Uuid,
) -> Result<Option<Record>, Error> {
    let sql = concat!("select ", columns!(), " from crm.deal where account_id = $1 and id = $2");
    Ok(sqlx::query_as(sql).bind(account).bind(id).fetch_optional(connection).await?)
}

/// The deals with these ids, in no order.
pub async fn list_by_ids(
    connection: &mut PgConnection,
    account: AccountId,
    ids: &[Uuid],
) -> Result<Vec<Record>, Error> {
    let sql = concat!("select ", columns!(), " from crm.deal where account_id = $1 and id = any($2)");
    Ok(sqlx::query_as(sql).bind(account).bind(ids).fetch_all(connection).await?)
}

/// Finds a deal that is about to be changed; others who want to change it wait.
pub async fn find_locked(
    connection: &mut PgConnection,
    account: AccountId,
    id: Uuid,
) -> Result<Option<Record>, Error> {
    let sql = concat!("select ", columns!(), " from crm.deal where account_id = $1 and id = $2 for update");
    Ok(sqlx::query_as(sql).bind(account).bind(id).fetch_optional(connection).await?)
}

/// Up to two open deals of a client, which is enough to know whether there is exactly one. Others who want to change
/// them wait.
pub async fn find_two_open_locked(
    connection: &mut PgConnection,
    account: AccountId,
    client: Uuid,
) -> Result<Vec<Record>, Error> {
    let sql = concat!(
        "select ",
        columns!(),
        " from crm.deal where account_id = $1 and client_id = $2 and status = 'open' \
         order by created_at desc, id desc limit 2 for update"
    );
    Ok(sqlx::query_as(sql).bind(account).bind(client).fetch_all(connection).await?)
}

#[derive(FromRow)]
struct StepRow {
    at: DateTime<Utc>,
    pipeline_id: Uuid,
    phase_id: Uuid,
    phase_name: String,
    status: String,
    quote_id: Option<Uuid>,
}

/// The end of a deal's history, oldest first.
pub async fn list_steps(
    connection: &mut PgConnection,
    account: AccountId,
    id: Uuid,
) -> Result<Vec<DealStep>, Error> {
    let rows: Vec<StepRow> = sqlx::query_as(
        "select at, pipeline_id, phase_id, phase_name, status, quote_id from crm.deal_step \
         where account_id = $1 and deal_id = $2 order by version desc limit $3",
    )
    .bind(account)
    .bind(id)
    .bind(MOST_STEPS)
    .fetch_all(connection)
    .await?;
    let step = |row: StepRow| DealStep {
        at: Some(timestamp(row.at)),
        pipeline_id: row.pipeline_id.to_string(),
        phase_id: row.phase_id.to_string(),
        phase: row.phase_name,
        status: status_named(&row.status).into(),
        accepted_quote_id: row.quote_id.map(|id| id.to_string()),
    };
    Ok(rows.into_iter().rev().map(step).collect())
}

/// Stores a new deal and the beginning of its history.
pub async fn insert(connection: &mut PgConnection, account: AccountId, record: &Record) -> Result<(), Error> {
    let sql = "with deal as (\
               insert into crm.deal (account_id, id, version, title, client_id, pipeline_id, phase_id, amount, priority, \
               status, expected_close_date, source, phase_since, won_at, lost_at, updated_at, search_text, created_at) \
               values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18)) \
               insert into crm.deal_step \
               (account_id, deal_id, version, pipeline_id, phase_id, phase_name, status, at) \
               select $1, $2, $3, $6, $7, name, $10, $16 from crm.phase where account_id = $1 and id = $7";
    let query = bind(sqlx::query(sql), account, record, rules::search_text(&record.values));
    query.bind(record.created_at).execute(connection).await?;
    Ok(())
}

/// Stores a changed deal; `is_step` when the change belongs into its history.
pub async fn update(
    connection: &mut PgConnection,
    account: AccountId,
    record: &Record,
    quote: Option<Uuid>,
    is_step: bool,
) -> Result<(), Error> {
    let sql = "with step as (\
               insert into crm.deal_step \
               (account_id, deal_id, version, pipeline_id, phase_id, phase_name, status, at, quote_id) \
               select $1, $2, $3, $6, $7, name, $10, $16, $18 from crm.phase \
               where account_id = $1 and id = $7 and $19) \
               update crm.deal set version = $3, title = $4, client_id = $5, pipeline_id = $6, phase_id = $7, amount = $8, \
               priority = $9, status = $10, expected_close_date = $11, source = $12, phase_since = $13, won_at = $14, \
               lost_at = $15, updated_at = $16, search_text = $17 where account_id = $1 and id = $2";
    let query = bind(sqlx::query(sql), account, record, rules::search_text(&record.values));
    query.bind(quote).bind(is_step).execute(connection).await?;
    Ok(())
}

/// Gives deals the next version, so that an event can tell of them while nothing else of them changes. Returns them as
/// they are then, in no order.
pub async fn raise_versions(
    connection: &mut PgConnection,
    account: AccountId,
    ids: &[Uuid],
) -> Result<Vec<Record>, Error> {
    let sql = concat!(
        "update crm.deal set version = version + 1 where account_id = $1 and id = any($2) returning ",
        columns!()
    );
    Ok(sqlx::query_as(sql).bind(account).bind(ids).fetch_all(connection).await?)
}

/// Binds what insert and update have in common: $1 to $17.
fn bind<'q>(
    query: Query<'q, Postgres, PgArguments>,
    account: AccountId,
    record: &'q Record,
    search_text: String,
) -> Query<'q, Postgres, PgArguments> {
    let values = &record.values;
    query
        .bind(account)
        .bind(record.id)
        .bind(record.version)
        .bind(&values.title)
        .bind(values.client_id)
        .bind(values.place.pipeline_id)
        .bind(values.place.phase_id)
        .bind(values.amount)
        .bind(priority_name(values.priority))
        .bind(status_name(values.status))
        .bind(values.expected_close_date)
        .bind(&values.source)
        .bind(record.phase_since)
        .bind(record.won_at)
        .bind(record.lost_at)
        .bind(record.updated_at)
        .bind(search_text)
}

/// Removes a deal with its history; returns what it was.
pub async fn delete(
    connection: &mut PgConnection,
    account: AccountId,
    id: Uuid,
) -> Result<Option<Record>, Error> {
    let sql = concat!("delete from crm.deal where account_id = $1 and id = $2 returning ", columns!());
    Ok(sqlx::query_as(sql).bind(account).bind(id).fetch_optional(connection).await?)
}

/// Notes that a quote was accepted; tells whether that is news.
pub async fn note_accepted_quote(
    connection: &mut PgConnection,
    account: AccountId,
    quote: Uuid,
    now: DateTime<Utc>,
) -> Result<bool, Error> {
    let sql = "insert into crm.accepted_quote (account_id, quote_id, heard_at) values ($1, $2, $3) \
               on conflict (account_id, quote_id) do nothing";
    let inserted = sqlx::query(sql).bind(account).bind(quote).bind(now).execute(connection).await?;
    Ok(inserted.rows_affected() > 0)
}
