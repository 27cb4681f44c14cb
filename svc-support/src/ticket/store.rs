//! The SQL of tickets, and nothing else.

use chassis_base::AccountId;
use chassis_base::paging::Page;
use chassis_base::stored::{self, Undecodable};
use chassis_data::list::{Fields, List, Selection, Total};
use chassis_data::row::Columns;
use proto::api::PageMeta;
use proto::support::TicketPriority;
use sqlx::postgres::{PgArguments, PgRow};
use sqlx::query::Query;
use sqlx::{FromRow, PgConnection, Postgres};
use uuid::Uuid;

use super::{
    CHANNEL_COLUMN, LIST, PRIORITY_COLUMN, Record, SOURCE_COLUMN, STATUS_COLUMN, Source, Values, rules,
};
use crate::address::ReplySecret;
use crate::error::Error;

macro_rules! columns {
    () => {
        "id, version, number, subject, status, priority, client_name, client_email, client_id, source, channel_id, \
         reply_secret, message_count, last_message_at, created_at, updated_at, closed_at, timed_events"
    };
}

macro_rules! select {
    ($rest:literal) => {
        concat!("select ", columns!(), " from support.ticket where account_id = $1 ", $rest)
    };
}

/// In the order of `columns!`.
impl FromRow<'_, PgRow> for Record {
    fn from_row(row: &PgRow) -> Result<Self, sqlx::Error> {
        let mut columns = Columns::of(row);
        let id = columns.take()?;
        let version = columns.take()?;
        let number = columns.take()?;
        let subject = columns.take()?;
        let status = columns.take()?;
        let values = Values {
            subject,
            priority: decode_priority(columns.take()?)?,
            client_name: columns.take()?,
            client_email: columns.take()?,
            client_id: columns.take()?,
        };
        Ok(Self {
            id,
            version,
            number,
            values,
            status,
            source: stored::decode("ticket.source", columns.take()?, Source::from_name)?,
            channel_id: columns.take()?,
            // A secret of another length must not become a secret that can be guessed.
            reply_secret: ReplySecret::try_from(columns.take::<&[u8]>()?)
                .map_err(|_| undecodable_secret())?,
            message_count: columns.take()?,
            last_message_at: columns.take()?,
            created_at: columns.take()?,
            updated_at: columns.take()?,
            closed_at: columns.take()?,
            timed_events: columns.take()?,
        })
    }
}

/// The numbers are those of the enum in the contract.
fn decode_priority(number: i16) -> Result<TicketPriority, Undecodable> {
    match TicketPriority::try_from(i32::from(number)) {
        Ok(priority) if priority != TicketPriority::Unspecified => Ok(priority),
        _ => stored::decode("ticket.priority", &number.to_string(), |_| None),
    }
}

fn undecodable_secret() -> Undecodable {
    Undecodable::new("ticket.reply_secret has the wrong length")
}

/// Which tickets a list shows. `None` and empty texts restrict nothing.
pub(crate) struct Filter<'a> {
    pub selection: Selection,
    pub status: Option<&'a str>,
    pub priority: Option<TicketPriority>,
    pub client: Option<Uuid>,
    pub channel: Option<Uuid>,
    pub source: Option<Source>,
    pub search: &'a str,
}

/// A page, newest first unless `filter` has another order.
pub(crate) async fn list(
    connection: &mut PgConnection,
    account: AccountId,
    filter: &Filter<'_>,
    page: Page,
) -> Result<(Vec<Record>, PageMeta), Error> {
    let mut list = List::new(account, "support.ticket", columns!(), Total::Counted(LIST));
    list.only_counted(STATUS_COLUMN, filter.status);
    list.only_counted(PRIORITY_COLUMN, filter.priority.map(priority_number));
    list.only_counted(CHANNEL_COLUMN, filter.channel);
    list.only_counted(SOURCE_COLUMN, filter.source.map(Source::name));
    list.only("client_id", filter.client);
    list.search("search_text", filter.search);
    list.select(&filter.selection, &Fields::TIMES)?;
    Ok(list.fetch(connection, page).await?)
}

pub(crate) async fn find(
    connection: &mut PgConnection,
    account: AccountId,
    id: Uuid,
) -> Result<Option<Record>, Error> {
    let sql = select!("and id = $2");
    Ok(sqlx::query_as(sql).bind(account).bind(id).fetch_optional(connection).await?)
}

/// Finds a ticket and locks its row. Changes of a ticket and new messages read it, decide and write it back, so two of
/// them must not overlap.
pub(crate) async fn find_locked(
    connection: &mut PgConnection,
    account: AccountId,
    id: Uuid,
) -> Result<Option<Record>, Error> {
    let sql = select!("and id = $2 for update");
    Ok(sqlx::query_as(sql).bind(account).bind(id).fetch_optional(connection).await?)
}

/// The next tickets of a client, in the order of their ids. Locks them.
pub(crate) async fn list_of_client_locked(
    connection: &mut PgConnection,
    account: AccountId,
    client: Uuid,
    after: Uuid,
    limit: usize,
) -> Result<Vec<Record>, Error> {
    let sql = select!("and client_id = $2 and id > $3 order by id limit $4 for update");
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let query = sqlx::query_as(sql).bind(account).bind(client).bind(after).bind(limit);
    Ok(query.fetch_all(connection).await?)
}

/// The id of the ticket with this reply address.
pub(crate) async fn find_by_reply_secret(
    connection: &mut PgConnection,
    account: AccountId,
    secret: &ReplySecret,
) -> Result<Option<Uuid>, Error> {
    let sql = "select id from support.ticket where account_id = $1 and reply_secret = $2";
    Ok(sqlx::query_scalar(sql).bind(account).bind(secret.as_slice()).fetch_optional(connection).await?)
}

/// The id of the first of these tickets that an address participates in: as its client, or as sender or recipient of one
/// of its messages. The address is in lower case.
pub(crate) async fn find_by_number(
    connection: &mut PgConnection,
    account: AccountId,
    numbers: &[String],
    participant: &str,
) -> Result<Option<Uuid>, Error> {
    let sql = "select id from support.ticket where account_id = $1 and number = any($2::text[]) \
               and (lower(client_email) = $3 or exists (select from support.message \
                    where message.account_id = $1 and message.ticket_id = ticket.id and not message.note \
                    and (lower(message.author_email) = $3 or $3 = any(message.recipients) or $3 = any(message.cc)))) \
               order by array_position($2::text[], number) limit 1";
    Ok(sqlx::query_scalar(sql)
        .bind(account)
        .bind(numbers)
        .bind(participant)
        .fetch_optional(connection)
        .await?)
}

pub(crate) async fn insert(
    connection: &mut PgConnection,
    account: AccountId,
    record: &Record,
) -> Result<(), Error> {
    let sql = "insert into support.ticket (account_id, id, version, number, subject, status, priority, client_name, \
               client_email, client_id, source, channel_id, reply_secret, message_count, last_message_at, search_text, \
               created_at, updated_at, closed_at) \
               values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19)";
    sqlx::query(sql)
        .bind(account)
        .bind(record.id)
        .bind(record.version)
        .bind(&record.number)
        .bind(&record.values.subject)
        .bind(&record.status)
        .bind(priority_number(record.values.priority))
        .bind(&record.values.client_name)
        .bind(&record.values.client_email)
        .bind(record.values.client_id)
        .bind(record.source.name())
        .bind(record.channel_id)
        .bind(record.reply_secret.as_slice())
        .bind(record.message_count)
        .bind(record.last_message_at)
        .bind(rules::search_text(&record.number, &record.values))
        .bind(record.created_at)
        .bind(record.updated_at)
        .bind(record.closed_at)
        .execute(connection)
        .await?;
    Ok(())
}

/// Stores all columns of a ticket that can change; see [`bind_changed`] for the parameters.
macro_rules! update_sql {
    () => {
        "update support.ticket set \
         version = case when version = $15::bigint and timed_events = $16::bigint then $3::bigint end, \
         subject = $4, status = $5, priority = $6, client_name = $7, client_email = $8, client_id = $9, \
         message_count = $10, last_message_at = $11, search_text = $12, updated_at = $13, closed_at = $14 \
         where account_id = $1 and id = $2"
    };
}
pub(crate) use update_sql;

/// Stores a changed ticket. Fails if it has another version than `since` by now, or an event more.
pub(super) fn update(account: AccountId, record: &Record, since: i64) -> Query<'_, Postgres, PgArguments> {
    bind_changed(sqlx::query(update_sql!()), account, record, since)
}

/// Binds the parameters of `update_sql!`: $1 to $16.
pub(crate) fn bind_changed<'q>(
    query: Query<'q, Postgres, PgArguments>,
    account: AccountId,
    record: &'q Record,
    since: i64,
) -> Query<'q, Postgres, PgArguments> {
    query
        .bind(account)
        .bind(record.id)
        .bind(record.version)
        .bind(&record.values.subject)
        .bind(&record.status)
        .bind(priority_number(record.values.priority))
        .bind(&record.values.client_name)
        .bind(&record.values.client_email)
        .bind(record.values.client_id)
        .bind(record.message_count)
        .bind(record.last_message_at)
        .bind(rules::search_text(&record.number, &record.values))
        .bind(record.updated_at)
        .bind(record.closed_at)
        .bind(since)
        .bind(record.timed_events)
}

/// Counts an event with each of these tickets, which do not change otherwise. Returns them in no particular order.
pub(crate) async fn count_timed_events(
    connection: &mut PgConnection,
    account: AccountId,
    ids: &[Uuid],
) -> Result<Vec<Record>, Error> {
    let sql = concat!(
        "update support.ticket set timed_events = timed_events + 1 where account_id = $1 and id = any($2) returning ",
        columns!()
    );
    Ok(sqlx::query_as(sql).bind(account).bind(ids).fetch_all(connection).await?)
}

/// A priority as it is stored.
pub(super) fn priority_number(priority: TicketPriority) -> i16 {
    i16::try_from(i32::from(priority)).unwrap_or_default()
}
