//! Smaller changes of documents: what was sent, viewed and printed, the history, and names that follow a client.

use chassis_base::AccountId;
use chassis_work::mail::Attempted;
use chrono::{DateTime, NaiveDate, Utc};
use sqlx::PgConnection;
use uuid::Uuid;

use super::{columns, shown_history};
use crate::clients::Client;
use crate::document::Record;
use crate::document::rules::search;
use crate::error::Error;

pub(crate) async fn mark_sent(
    connection: &mut PgConnection,
    account: AccountId,
    record: &Record,
) -> Result<(), Error> {
    sqlx::query(
        "update billing.document set version = $3, sent_at = $4, updated_at = $4 where account_id = $1 and id = $2",
    )
    .bind(account)
    .bind(record.id)
    .bind(record.version)
    .bind(record.updated_at)
    .execute(connection)
    .await?;
    Ok(())
}

/// Stores the version of a document of which something changed that is stored elsewhere.
pub(crate) async fn touch(
    connection: &mut PgConnection,
    account: AccountId,
    record: &Record,
) -> Result<(), Error> {
    let sql = "update billing.document set version = $3, updated_at = $4 where account_id = $1 and id = $2";
    sqlx::query(sql)
        .bind(account)
        .bind(record.id)
        .bind(record.version)
        .bind(record.updated_at)
        .execute(connection)
        .await?;
    Ok(())
}

/// What a view changed of a quote, besides the day.
#[derive(chassis_derive::FromRow)]
pub(crate) struct Viewed {
    pub version: i64,
    pub time_events: i64,
}

/// Records that the page of a quote was opened on a day. `None` when that day was recorded before.
pub(crate) async fn mark_viewed(
    connection: &mut PgConnection,
    account: AccountId,
    id: Uuid,
    day: NaiveDate,
    now: DateTime<Utc>,
) -> Result<Option<Viewed>, Error> {
    let sql = "update billing.document set viewed_on = $3, version = version + 1, updated_at = $4 \
               where account_id = $1 and id = $2 and (viewed_on is null or viewed_on < $3) \
               returning version, time_events";
    let query = sqlx::query_as(sql).bind(account).bind(id).bind(day).bind(now);
    Ok(query.fetch_optional(connection).await?)
}

/// Counts an event without a change with each of these documents.
pub(crate) async fn count_time_events(
    connection: &mut PgConnection,
    account: AccountId,
    ids: &[Uuid],
) -> Result<Vec<Record>, Error> {
    let sql = concat!(
        "update billing.document d set time_events = d.time_events + 1 \
         where d.account_id = $1 and d.id = any($2) returning ",
        columns!()
    );
    Ok(sqlx::query_as(sql).bind(account).bind(ids).fetch_all(connection).await?)
}

/// Stores the project that a quote became, unless it has one already; tells whether it did.
pub(crate) async fn set_project(
    connection: &mut PgConnection,
    account: AccountId,
    quote: Uuid,
    number: &str,
    now: DateTime<Utc>,
) -> Result<bool, Error> {
    let sql = "update billing.document set project_number = $3, version = version + 1, updated_at = $4 \
               where account_id = $1 and id = $2 and kind = 'quote' and project_number is null";
    let updated =
        sqlx::query(sql).bind(account).bind(quote).bind(number).bind(now).execute(connection).await?;
    Ok(updated.rows_affected() > 0)
}

/// Records the content version of which there is a PDF; tells whether that is new. The document changes if that is its
/// present content, or if it shows no failure any more.
pub(crate) async fn mark_pdf(
    connection: &mut PgConnection,
    account: AccountId,
    id: Uuid,
    content_version: i64,
    now: DateTime<Utc>,
) -> Result<bool, Error> {
    let sql = "with made as (delete from billing.pdf_pending where account_id = $1 and document_id = $2) \
               update billing.document set pdf_version = $3, pdf_error = '', \
               version = case when content_version = $3 or pdf_error <> '' then version + 1 else version end, \
               updated_at = case when content_version = $3 or pdf_error <> '' then $4 else updated_at end \
               where account_id = $1 and id = $2 and (pdf_version is null or pdf_version < $3)";
    let query = sqlx::query(sql).bind(account).bind(id).bind(content_version).bind(now);
    Ok(query.execute(connection).await?.rows_affected() > 0)
}

/// Records the PDF of the present content of a document that had the version before that of the record; `false` when it has
/// another one, or has the PDF already.
pub(crate) async fn mark_new_pdf(
    connection: &mut PgConnection,
    account: AccountId,
    record: &Record,
) -> Result<bool, Error> {
    let sql = "with made as (delete from billing.pdf_pending where account_id = $1 and document_id = $2) \
               update billing.document set pdf_version = content_version, pdf_error = '', version = $3, updated_at = $4 \
               where account_id = $1 and id = $2 and version + 1 = $3 and pdf_version is distinct from content_version";
    let query = sqlx::query(sql).bind(account).bind(record.id).bind(record.version).bind(record.updated_at);
    Ok(query.execute(connection).await?.rows_affected() > 0)
}

/// Records why there is no PDF of the present content. Tells whether the document did not show that before.
pub(crate) async fn mark_pdf_failure(
    connection: &mut PgConnection,
    account: AccountId,
    id: Uuid,
    error: &str,
    now: DateTime<Utc>,
) -> Result<bool, Error> {
    let sql = "update billing.document set pdf_error = $3, version = version + 1, updated_at = $4 \
               where account_id = $1 and id = $2 and pdf_version is distinct from content_version \
               and pdf_error <> $3";
    let marked = sqlx::query(sql).bind(account).bind(id).bind(error).bind(now).execute(connection).await?;
    Ok(marked.rows_affected() > 0)
}

/// A new entry of a document's history.
pub(crate) struct NewHistory<'a> {
    pub document: Uuid,
    pub id: Uuid,
    pub event: &'static str,
    pub actor: &'a str,
    /// JSON text of an object.
    pub data: String,
    pub mail: Option<Uuid>,
}

pub(crate) async fn insert_history(
    connection: &mut PgConnection,
    account: AccountId,
    entry: NewHistory<'_>,
    now: DateTime<Utc>,
) -> Result<(), Error> {
    sqlx::query(
        "insert into billing.document_history (account_id, document_id, id, at, event, actor, data, mail_id) \
         values ($1, $2, $3, $4, $5, $6, $7, $8)",
    )
    .bind(account)
    .bind(entry.document)
    .bind(entry.id)
    .bind(now)
    .bind(entry.event)
    .bind(entry.actor)
    .bind(entry.data)
    .bind(entry.mail)
    .execute(connection)
    .await?;
    Ok(())
}

/// An entry of a document's history.
#[derive(chassis_derive::FromRow)]
pub(crate) struct HistoryEntry {
    pub document_id: Uuid,
    pub id: Uuid,
    /// JSON text of an object.
    pub data: String,
}

/// Records how far the delivery of a mail has come. `None` when no document has sent the mail, or its history tells so
/// already.
pub(crate) async fn mark_delivery(
    connection: &mut PgConnection,
    account: AccountId,
    attempted: &Attempted<'_>,
) -> Result<Option<HistoryEntry>, Error> {
    let sql = "update billing.document_history set mail_status = $3, mail_error = $4 \
               where account_id = $1 and mail_id = $2 and (mail_status is distinct from $3 or mail_error is distinct from $4) \
               returning document_id, id, data";
    let Attempted { mail, status, error, .. } = *attempted;
    let query = sqlx::query_as(sql).bind(account).bind(mail).bind(status).bind(error);
    Ok(query.fetch_optional(connection).await?)
}

/// Replaces what an entry of the history says.
pub(crate) async fn set_history_data(
    connection: &mut PgConnection,
    account: AccountId,
    entry: &HistoryEntry,
    data: &str,
) -> Result<(), Error> {
    let sql = "update billing.document_history set data = $4 where account_id = $1 and document_id = $2 and id = $3";
    let query = sqlx::query(sql).bind(account).bind(entry.document_id).bind(entry.id).bind(data);
    query.execute(connection).await?;
    Ok(())
}

/// Gives a document a new version after a change of an entry of its history. Tells whether it did: an old entry is not
/// shown.
pub(crate) async fn raise_if_shown(
    connection: &mut PgConnection,
    account: AccountId,
    entry: &HistoryEntry,
    now: DateTime<Utc>,
) -> Result<bool, Error> {
    let sql = concat!(
        "update billing.document set version = version + 1, updated_at = $4 where account_id = $1 and id = $2 \
         and (select count(*) from billing.document_history newer \
         where newer.account_id = $1 and newer.document_id = $2 and newer.id > $3) < ",
        shown_history!()
    );
    let query = sqlx::query(sql).bind(account).bind(entry.document_id).bind(entry.id).bind(now);
    Ok(query.execute(connection).await?.rows_affected() > 0)
}

/// Records that a client has paid an invoice; tells whether it is the first time.
pub(crate) async fn insert_paying_client(
    connection: &mut PgConnection,
    account: AccountId,
    client: Uuid,
    now: DateTime<Utc>,
) -> Result<bool, Error> {
    let sql = "insert into billing.paying_client (account_id, client_id, since) values ($1, $2, $3) \
               on conflict (account_id, client_id) do nothing";
    let done = sqlx::query(sql).bind(account).bind(client).bind(now).execute(connection).await?;
    Ok(done.rows_affected() == 1)
}

/// Stores the new names of a client in some of its drafts that have other names, at most `limit`, and returns their ids.
/// Final documents keep the names they were issued with.
pub(crate) async fn follow_client(
    connection: &mut PgConnection,
    account: AccountId,
    client: &Client,
    now: DateTime<Utc>,
    limit: i64,
) -> Result<Vec<Uuid>, Error> {
    let drafts = sqlx::query_scalar(
        "with draft as (select id from billing.document where account_id = $1 and client_id = $2 and not is_final \
         and (client_company_name, client_firstname, client_lastname) is distinct from ($3, $4, $5) \
         order by id limit $8 for update) \
         update billing.document set client_company_name = $3, client_firstname = $4, client_lastname = $5, \
         search_text = lower(title) || E'\\n' || $6 || lower(external_id) || E'\\n' || lower(number), \
         version = version + 1, content_version = content_version + 1, updated_at = $7 \
         where account_id = $1 and id in (select id from draft) returning id",
    )
    .bind(account)
    .bind(client.id)
    .bind(&client.company_name)
    .bind(&client.firstname)
    .bind(&client.lastname)
    .bind(search::names(client))
    .bind(now)
    .bind(limit)
    .fetch_all(connection)
    .await?;
    Ok(drafts)
}

/// A document that was sent.
#[derive(chassis_derive::FromRow)]
pub(crate) struct Sent {
    pub id: Uuid,
    pub kind: String,
}

/// The next documents of a client that were sent, in the order of their ids. Locks them.
pub(crate) async fn list_sent_locked(
    connection: &mut PgConnection,
    account: AccountId,
    client: Uuid,
    after: Uuid,
    limit: usize,
) -> Result<Vec<Sent>, Error> {
    let sql = "select id, kind from billing.document where account_id = $1 and client_id = $2 and id > $3 \
               and exists (select from billing.document_history sent where sent.account_id = $1 \
                    and sent.document_id = document.id and sent.event = 'sent') \
               order by id limit $4 for update";
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let query = sqlx::query_as(sql).bind(account).bind(client).bind(after).bind(limit);
    Ok(query.fetch_all(connection).await?)
}

/// Takes recipients and subjects out of the histories of documents. Returns those that had any, each with a new version.
pub(crate) async fn forget_recipients(
    connection: &mut PgConnection,
    account: AccountId,
    documents: &[Uuid],
    now: DateTime<Utc>,
) -> Result<Vec<Uuid>, Error> {
    let sql = "with emptied as (update billing.document_history \
               set data = ((data::jsonb - array['subject', 'attachments']) || '{\"recipients\": []}')::text, mail_error = '' \
               where account_id = $1 and document_id = any($2) and event = 'sent' \
               and (data::jsonb ?| array['subject', 'attachments'] or data::jsonb -> 'recipients' <> '[]' or mail_error <> '') \
               returning document_id) \
               update billing.document set version = version + 1, updated_at = $3 \
               where account_id = $1 and id in (select document_id from emptied) returning id";
    Ok(sqlx::query_scalar(sql).bind(account).bind(documents).bind(now).fetch_all(connection).await?)
}
