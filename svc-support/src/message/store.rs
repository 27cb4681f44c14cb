//! The SQL of messages, and nothing else.

use chassis_base::AccountId;
use chassis_base::stored;
use chassis_data::PageBytes;
use chassis_work::mail;
use chrono::{DateTime, Utc};
use futures::TryStreamExt;
use sqlx::postgres::{PgArguments, PgRow};
use sqlx::query::Query;
use sqlx::types::Json;
use sqlx::{FromRow, PgConnection, Postgres, Row};
use uuid::Uuid;

use super::Record;
use crate::automatic::Automatic;
use crate::error::Error;
use crate::ticket;

/// The number of messages, and of bytes of their text, that a list of a very long thread contains.
const MAX_LISTED: i64 = 1000;
const MAX_BYTES: i64 = 6 << 20;

macro_rules! columns {
    () => {
        "id, version, inbound, note, body, html, author_name, author_email, author_user_id, recipients, cc, message_id, \
         mail_id, attachments, automatic, created_at, \
         greatest(updated_at, created_at) as updated_at"
    };
}

impl FromRow<'_, PgRow> for Record {
    fn from_row(row: &PgRow) -> Result<Self, sqlx::Error> {
        Ok(Self {
            id: row.try_get("id")?,
            version: row.try_get("version")?,
            inbound: row.try_get("inbound")?,
            note: row.try_get("note")?,
            body: row.try_get("body")?,
            html: row.try_get("html")?,
            author_name: row.try_get("author_name")?,
            author_email: row.try_get("author_email")?,
            author_user_id: row.try_get("author_user_id")?,
            to: row.try_get("recipients")?,
            cc: row.try_get("cc")?,
            message_id: row.try_get("message_id")?,
            mail_id: row.try_get("mail_id")?,
            attachments: row.try_get::<Json<_>, _>("attachments")?.0,
            automatic: decode_automatic(row)?,
            created_at: row.try_get("created_at")?,
            updated_at: row.try_get("updated_at")?,
        })
    }
}

fn decode_automatic(row: &PgRow) -> Result<Automatic, sqlx::Error> {
    let text = row.try_get("automatic")?;
    Ok(stored::decode("message.automatic", text, Automatic::from_name)?)
}

/// The messages of a ticket, oldest first. Of a very long thread, the latest messages.
pub(crate) async fn list(
    connection: &mut PgConnection,
    account: AccountId,
    ticket: Uuid,
) -> Result<Vec<Record>, Error> {
    let sql = concat!(
        "select ",
        columns!(),
        " from (select ",
        columns!(),
        ", sum(size) over (order by created_at desc, id desc) as through from support.message \
         where account_id = $1 and ticket_id = $2 order by created_at desc, id desc limit $3) latest \
         where through <= $4 order by created_at, id"
    );
    let listed = sqlx::query(sql).bind(account).bind(ticket).bind(MAX_LISTED).bind(MAX_BYTES);
    let mut rows = listed.fetch(connection);
    // Counted row by row, so that a list that the process has no memory for ends before it is in memory.
    let mut bytes = PageBytes::new(account);
    let mut messages = Vec::new();
    while let Some(row) = rows.try_next().await? {
        bytes.add(&row)?;
        messages.push(Record::from_row(&row)?);
    }
    Ok(messages)
}

pub(crate) async fn find(
    connection: &mut PgConnection,
    account: AccountId,
    ticket: Uuid,
    id: Uuid,
) -> Result<Option<Record>, Error> {
    let sql = concat!(
        "select ",
        columns!(),
        " from support.message where account_id = $1 and ticket_id = $2 and id = $3"
    );
    Ok(sqlx::query_as(sql).bind(account).bind(ticket).bind(id).fetch_optional(connection).await?)
}

/// The messages with these ids, in no particular order.
pub(crate) async fn list_by_ids(
    connection: &mut PgConnection,
    account: AccountId,
    ids: &[Uuid],
) -> Result<Vec<Record>, Error> {
    let sql = concat!("select ", columns!(), " from support.message where account_id = $1 and id = any($2)");
    Ok(sqlx::query_as(sql).bind(account).bind(ids).fetch_all(connection).await?)
}

/// The message ids of the latest mails of a ticket, `max` at most, oldest first.
pub(crate) async fn list_thread(
    connection: &mut PgConnection,
    account: AccountId,
    ticket: Uuid,
    max: i64,
) -> Result<Vec<String>, Error> {
    let sql = "select message_id from (select message_id, created_at, id from support.message \
                   where account_id = $1 and ticket_id = $2 and message_id <> '' \
                   order by created_at desc, id desc limit $3) latest order by created_at, id";
    Ok(sqlx::query_scalar(sql).bind(account).bind(ticket).bind(max).fetch_all(connection).await?)
}

/// The author of a message that came in.
pub(crate) struct Author {
    pub email: String,
    pub automatic: Automatic,
}

impl FromRow<'_, PgRow> for Author {
    fn from_row(row: &PgRow) -> Result<Self, sqlx::Error> {
        Ok(Self { email: row.try_get("author_email")?, automatic: decode_automatic(row)? })
    }
}

/// The author of the latest message of a ticket that came in.
pub(crate) async fn find_latest_author(
    connection: &mut PgConnection,
    account: AccountId,
    ticket: Uuid,
) -> Result<Option<Author>, Error> {
    let sql = "select author_email, automatic from support.message \
               where account_id = $1 and ticket_id = $2 and inbound order by created_at desc, id desc limit 1";
    Ok(sqlx::query_as(sql).bind(account).bind(ticket).fetch_optional(connection).await?)
}

/// A message that is stored, and its ticket.
#[derive(Clone, Copy, Debug, chassis_derive::FromRow)]
pub(crate) struct MessageRef {
    pub ticket_id: Uuid,
    pub id: Uuid,
    pub inbound: bool,
}

/// The message that a mail was stored as when it came in, or was sent as. An empty id finds nothing.
pub(crate) async fn find_by_message_id(
    connection: &mut PgConnection,
    account: AccountId,
    message_id: &str,
) -> Result<Option<MessageRef>, Error> {
    let sql = "select ticket_id, id, inbound from support.message \
               where account_id = $1 and message_id = $2 and message_id <> ''";
    Ok(sqlx::query_as(sql).bind(account).bind(message_id).fetch_optional(connection).await?)
}

/// The ticket of the first of these mails that belongs to a ticket.
pub(crate) async fn find_ticket_of(
    connection: &mut PgConnection,
    account: AccountId,
    message_ids: &[String],
) -> Result<Option<Uuid>, Error> {
    let sql = "select ticket_id from support.message \
               where account_id = $1 and message_id = any($2::text[]) and message_id <> '' \
               order by array_position($2::text[], message_id) limit 1";
    Ok(sqlx::query_scalar(sql).bind(account).bind(message_ids).fetch_optional(connection).await?)
}

/// Stores a new message, and the ticket that it changes. Fails if the ticket has another version than `since` by now, or an
/// event more.
pub(super) fn insert<'q>(
    account: AccountId,
    ticket: &'q ticket::Record,
    since: i64,
    record: &'q Record,
) -> Query<'q, Postgres, PgArguments> {
    let sql = concat!(
        "with deferred as (",
        ticket::store::update_sql!(),
        " returning 1), message as (\
         insert into support.message (account_id, ticket_id, id, inbound, note, body, html, author_name, author_email, \
         author_user_id, recipients, cc, message_id, mail_id, attachments, size, created_at, automatic, version, \
         updated_at) \
         values ($1, $2, $17, $18, $19, $20, $21, $22, $23, $24, $25, $26, $27, $28, $29, $30, $31, $32, $33, $34)\
         ) select 1"
    );
    ticket::store::bind_changed(sqlx::query(sql), account, ticket, since)
        .bind(record.id)
        .bind(record.inbound)
        .bind(record.note)
        .bind(&record.body)
        .bind(&record.html)
        .bind(&record.author_name)
        .bind(&record.author_email)
        .bind(record.author_user_id)
        .bind(&record.to)
        .bind(&record.cc)
        .bind(&record.message_id)
        .bind(record.mail_id)
        .bind(Json(&record.attachments))
        .bind(i32::try_from(record.body.len() + record.html.len()).unwrap_or(i32::MAX))
        .bind(record.created_at)
        .bind(record.automatic.name())
        .bind(record.version)
        .bind(record.updated_at)
}

/// Counts a new status of the mail that a message was sent as. `None` when the mail is not that of a message, or when the
/// status was counted before: a delivery that took too long is attempted twice, and both attempts are recorded.
pub(crate) async fn set_mail_status(
    connection: &mut PgConnection,
    account: AccountId,
    mail: Uuid,
    status: mail::Status,
    now: DateTime<Utc>,
) -> Result<Option<Record>, Error> {
    let sql = concat!(
        "update support.message set mail_status = $3, version = version + 1, updated_at = $4 \
         where account_id = $1 and mail_id = $2 and mail_status <> $3 returning ",
        columns!()
    );
    Ok(sqlx::query_as(sql).bind(account).bind(mail).bind(status).bind(now).fetch_optional(connection).await?)
}

/// Stores the attachments of a message, after what became of them was told apart from its status.
pub(super) async fn set_attachments(
    connection: &mut PgConnection,
    account: AccountId,
    record: &Record,
) -> Result<(), Error> {
    let sql = "update support.message set attachments = $3 where account_id = $1 and id = $2";
    let stored = sqlx::query(sql).bind(account).bind(record.id).bind(Json(&record.attachments));
    stored.execute(connection).await?;
    Ok(())
}

/// The most messages that are forgotten at a time.
const MAX_FORGOTTEN: i64 = 200;

/// Messages of a ticket, apart from notes, that tell who its client is or what was written. Locks them.
pub(super) async fn list_telling_locked(
    connection: &mut PgConnection,
    account: AccountId,
    ticket: Uuid,
    name: &str,
) -> Result<Vec<Record>, Error> {
    let sql = concat!(
        "select ",
        columns!(),
        " from support.message where account_id = $1 and ticket_id = $2 and not note \
         and (body <> '' or html <> '' or recipients <> '{}' or cc <> '{}' or message_id <> '' \
            or attachments <> '[]' or inbound and (author_name <> $3 or author_email <> '')) \
         order by created_at, id limit $4 for update"
    );
    let query = sqlx::query_as(sql).bind(account).bind(ticket).bind(name).bind(MAX_FORGOTTEN);
    Ok(query.fetch_all(connection).await?)
}

/// Empties messages. Those that came in get this name as that of their author.
pub(super) async fn forget(
    connection: &mut PgConnection,
    account: AccountId,
    ids: &[Uuid],
    name: &str,
    now: DateTime<Utc>,
) -> Result<Vec<Record>, Error> {
    let sql = concat!(
        "update support.message set body = '', html = '', recipients = '{}', cc = '{}', message_id = '', \
         attachments = '[]', size = 0, author_name = case when inbound then $3 else author_name end, \
         author_email = case when inbound then '' else author_email end, version = version + 1, updated_at = $4 \
         where account_id = $1 and id = any($2) returning ",
        columns!()
    );
    Ok(sqlx::query_as(sql).bind(account).bind(ids).bind(name).bind(now).fetch_all(connection).await?)
}
