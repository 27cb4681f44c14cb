//! The SQL of deals and their history.

use chassis_base::AccountId;
use chassis_base::paging::Page;
use chassis_base::stored::decode;
use chassis_data::list::{Fields, List, Selection, Total};
use chassis_data::row::Columns;
use chrono::{DateTime, NaiveDate, Utc};
use proto::api::PageMeta;
use proto::crm::{DealPriority, DealStatus};
use rust_decimal::Decimal;
use sqlx::postgres::{PgArguments, PgRow};
use sqlx::query::Query;
use sqlx::{FromRow, PgConnection, Postgres};
use uuid::Uuid;

use super::{
    LIST, MAX_STEPS, PHASE_COLUMN, PIPELINE_COLUMN, PRIORITY_COLUMN, PhaseRef, Record, RecordWithHistory,
    SOURCE_COLUMN, Step, Values, priority_from_name, priority_name, rules, status_from_name, status_list,
    status_name,
};
use crate::error::Error;

const TABLE: &str = "crm.deal";

macro_rules! columns {
    () => {
        "id, version, title, client_id, pipeline_id, phase_id, amount, priority, status, expected_close_date, source, \
         phase_since, won_at, lost_at, created_at, updated_at, timed_events"
    };
}

const FIELDS: Fields = Fields::with_sorts(&[
    ("title", "title"),
    ("amount", "amount"),
    ("expected_close_date", "expected_close_date"),
]);

impl FromRow<'_, PgRow> for Record {
    fn from_row(row: &PgRow) -> Result<Self, sqlx::Error> {
        record(&mut Columns::of(row))
    }
}

/// Reads the columns in the order of `columns!`.
fn record(columns: &mut Columns<'_>) -> Result<Record, sqlx::Error> {
    Ok(Record {
        id: columns.take()?,
        version: columns.take()?,
        values: Values {
            title: columns.take()?,
            client_id: columns.take()?,
            phase: PhaseRef { pipeline_id: columns.take()?, phase_id: columns.take()? },
            amount: columns.take()?,
            priority: decode("deal.priority", columns.take()?, priority_from_name)?,
            status: decode("deal.status", columns.take()?, status_from_name)?,
            expected_close_date: columns.take()?,
            source: columns.take()?,
        },
        phase_since: columns.take()?,
        won_at: columns.take()?,
        lost_at: columns.take()?,
        created_at: columns.take()?,
        updated_at: columns.take()?,
        timed_events: columns.take()?,
    })
}

/// Which deals a list has, and in which order. `None` and empty texts do not restrict it.
#[derive(Debug, Default)]
pub(super) struct Filter<'a> {
    pub selection: Selection,
    pub client: Option<Uuid>,
    pub status: Option<DealStatus>,
    pub pipeline: Option<Uuid>,
    pub phase: Option<Uuid>,
    pub source: Option<&'a str>,
    pub priority: Option<DealPriority>,
    pub amount_from: Option<Decimal>,
    pub amount_to: Option<Decimal>,
    pub expected_close_from: Option<NaiveDate>,
    pub expected_close_to: Option<NaiveDate>,
    pub search: &'a str,
}

/// A page, newest first unless `filter` has another order.
pub(super) async fn list(
    connection: &mut PgConnection,
    account: AccountId,
    filter: &Filter<'_>,
    page: Page,
) -> Result<(Vec<Record>, PageMeta), Error> {
    let counted = Total::Counted(filter.status.map_or(LIST, status_list));
    let mut list = List::new(account, TABLE, columns!(), counted);
    if let Some(status) = filter.status {
        list.equals("status", status_name(status));
    }
    list.only("client_id", filter.client);
    let priority = filter.priority.map(priority_name);
    if filter.status.is_none() {
        list.only_counted(PIPELINE_COLUMN, filter.pipeline).only_counted(PHASE_COLUMN, filter.phase);
        list.only_counted(PRIORITY_COLUMN, priority).only_counted(SOURCE_COLUMN, filter.source);
    } else {
        // Together with a status they are not counted: each deal would be in as many more lists.
        list.only(PIPELINE_COLUMN, filter.pipeline).only(PHASE_COLUMN, filter.phase);
        list.only(PRIORITY_COLUMN, priority).only(SOURCE_COLUMN, filter.source);
    }
    list.between("amount", filter.amount_from, filter.amount_to);
    list.between("expected_close_date", filter.expected_close_from, filter.expected_close_to);
    list.search("search_text", filter.search);
    list.select(&filter.selection, &FIELDS)?;
    Ok(list.fetch(connection, page).await?)
}

/// The deals with these ids and their histories, in no order. Takes one round trip.
pub(super) async fn list_with_history(
    connection: &mut PgConnection,
    account: AccountId,
    ids: &[Uuid],
) -> Result<Vec<RecordWithHistory>, Error> {
    let sql = concat!(
        "select deal.*, phase.name, step.* from (select ",
        columns!(),
        " from crm.deal where account_id = $1 and id = any($2)) deal \
         join crm.phase phase on phase.account_id = $1 and phase.id = deal.phase_id \
         left join lateral (\
         select at, pipeline_id, phase_id, phase_name, status, quote_id, version from crm.deal_step \
         where account_id = $1 and deal_id = deal.id order by version desc limit $3) step on true \
         order by deal.id, step.version"
    );
    let rows =
        sqlx::query(sql).bind(account).bind(ids).bind(i64::from(MAX_STEPS)).fetch_all(connection).await?;
    let mut deals: Vec<RecordWithHistory> = Vec::new();
    for row in rows {
        let mut columns = Columns::of(&row);
        let (record, phase_name) = (record(&mut columns)?, columns.take()?);
        let step = step(&mut columns)?;
        // The rows of a deal follow each other.
        match deals.last_mut().filter(|last| last.record.id == record.id) {
            Some(last) => last.history.extend(step),
            None => deals.push(RecordWithHistory { record, phase_name, history: step.into_iter().collect() }),
        }
    }
    Ok(deals)
}

/// The deals with these ids, in no order.
pub(super) async fn list_by_ids(
    connection: &mut PgConnection,
    account: AccountId,
    ids: &[Uuid],
) -> Result<Vec<Record>, Error> {
    let sql = concat!("select ", columns!(), " from crm.deal where account_id = $1 and id = any($2)");
    Ok(sqlx::query_as(sql).bind(account).bind(ids).fetch_all(connection).await?)
}

/// Locks a deal: another transaction that wants to change it waits until this one ends.
pub(super) async fn lock(connection: &mut PgConnection, account: AccountId, id: Uuid) -> Result<(), Error> {
    let sql = "select 1 from crm.deal where account_id = $1 and id = $2 for update";
    sqlx::query(sql).bind(account).bind(id).execute(connection).await?;
    Ok(())
}

/// The ids of up to two open deals of a client, which is enough to decide whether there is exactly one. Locks them, so that the
/// deal is still open when its change is written.
pub(super) async fn find_two_open_locked(
    connection: &mut PgConnection,
    account: AccountId,
    client: Uuid,
) -> Result<Vec<Uuid>, Error> {
    let sql = "select id from crm.deal where account_id = $1 and client_id = $2 and status = 'open' \
               order by created_at desc, id desc limit 2 for update";
    Ok(sqlx::query_scalar(sql).bind(account).bind(client).fetch_all(connection).await?)
}

/// Reads an entry of a history, in the order of `list_with_history`. `None` for a deal without one.
fn step(columns: &mut Columns<'_>) -> Result<Option<Step>, sqlx::Error> {
    let Some(at) = columns.take()? else { return Ok(None) };
    Ok(Some(Step {
        at,
        phase: PhaseRef { pipeline_id: columns.take()?, phase_id: columns.take()? },
        phase_name: columns.take()?,
        status: decode("deal_step.status", columns.take()?, status_from_name)?,
        accepted_quote: columns.take()?,
    }))
}

/// Stores a new deal and the first entry of its history.
pub(super) fn insert<'q>(
    account: AccountId,
    record: &'q Record,
    first: &'q Step,
) -> Query<'q, Postgres, PgArguments> {
    let sql = "with deal as (\
               insert into crm.deal (account_id, id, version, title, client_id, pipeline_id, phase_id, amount, priority, \
               status, expected_close_date, source, phase_since, won_at, lost_at, updated_at, search_text, created_at) \
               values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18)\
               ), step as (\
               insert into crm.deal_step \
               (account_id, deal_id, version, pipeline_id, phase_id, phase_name, status, at) \
               values ($1, $2, $3, $6, $7, $19, $10, $16)) select 1";
    let query = bind(sqlx::query(sql), account, record, rules::search_text(&record.values));
    query.bind(record.created_at).bind(&first.phase_name)
}

/// Stores a changed deal, and the entry of its history that the change makes. It fails if the deal has another version than
/// `since` by now, or an event more. One change can make several entries, so an entry has the version of the deal or a later
/// one.
pub(super) fn update<'q>(
    account: AccountId,
    record: &'q Record,
    step: Option<&'q Step>,
    since: i64,
) -> Query<'q, Postgres, PgArguments> {
    let sql = "with deferred as (\
               update crm.deal set \
               version = case when version = $18::bigint and timed_events = $19::bigint then $3::bigint end, \
               title = $4, client_id = $5, pipeline_id = $6, phase_id = $7, amount = $8, \
               priority = $9, status = $10, expected_close_date = $11, source = $12, phase_since = $13, won_at = $14, \
               lost_at = $15, updated_at = $16, search_text = $17 where account_id = $1 and id = $2 returning 1\
               ), step as (\
               insert into crm.deal_step \
               (account_id, deal_id, version, pipeline_id, phase_id, phase_name, status, at, quote_id) \
               select $1, $2, greatest($3, latest.version + 1), $6, $7, $20, $10, $16, $21 from (\
               select coalesce(max(version), 0) as version from crm.deal_step \
               where account_id = $1 and deal_id = $2) latest \
               where $20::text is not null) select 1";
    bind(sqlx::query(sql), account, record, rules::search_text(&record.values))
        .bind(since)
        .bind(record.timed_events)
        .bind(step.map(|step| &step.phase_name))
        .bind(step.and_then(|step| step.accepted_quote))
}

/// Counts an event of each of these deals while nothing of them changes: two events of a deal never have the same
/// version. Returns the deals, in no order.
pub(super) async fn count_timed_events(
    connection: &mut PgConnection,
    account: AccountId,
    ids: &[Uuid],
) -> Result<Vec<Record>, Error> {
    let sql = concat!(
        "update crm.deal set timed_events = timed_events + 1 where account_id = $1 and id = any($2) returning ",
        columns!()
    );
    Ok(sqlx::query_as(sql).bind(account).bind(ids).fetch_all(connection).await?)
}

/// Binds the parameters that insert and update have in common: $1 to $17.
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
        .bind(values.phase.pipeline_id)
        .bind(values.phase.phase_id)
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

/// Removes a deal with its history. Returns what it was.
pub(super) async fn delete(
    connection: &mut PgConnection,
    account: AccountId,
    id: Uuid,
) -> Result<Option<Record>, Error> {
    let sql = concat!("delete from crm.deal where account_id = $1 and id = $2 returning ", columns!());
    Ok(sqlx::query_as(sql).bind(account).bind(id).fetch_optional(connection).await?)
}

/// Stores that a quote was accepted. `false` when that was stored before.
pub(super) async fn insert_accepted_quote(
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
