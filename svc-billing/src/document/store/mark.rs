//! Smaller changes of documents: what was sent, viewed and printed, the history, and names that follow a client.

use chassis_base::AccountId;
use chrono::{DateTime, NaiveDate, Utc};
use sqlx::PgConnection;
use uuid::Uuid;

use super::columns;
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

/// Records that the page of a quote was opened on a day. Returns the new version, or `None` when that day was recorded
/// before.
pub(crate) async fn mark_viewed(
    connection: &mut PgConnection,
    account: AccountId,
    id: Uuid,
    day: NaiveDate,
) -> Result<Option<i64>, Error> {
    let sql = "update billing.document set viewed_on = $3, version = version + 1 where account_id = $1 and id = $2 \
               and (viewed_on is null or viewed_on < $3) returning version";
    Ok(sqlx::query_scalar(sql).bind(account).bind(id).bind(day).fetch_optional(connection).await?)
}

/// Gives documents a new version, for an event without a change.
pub(crate) async fn raise_versions(
    connection: &mut PgConnection,
    account: AccountId,
    ids: &[Uuid],
) -> Result<Vec<Record>, Error> {
    let sql = concat!(
        "update billing.document d set version = d.version + 1 where d.account_id = $1 and d.id = any($2) returning ",
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

/// Records the content version of which there is a PDF. Tells whether that is new.
pub(crate) async fn mark_pdf(
    connection: &mut PgConnection,
    account: AccountId,
    id: Uuid,
    version: i64,
) -> Result<bool, Error> {
    let sql = "update billing.document set pdf_version = $3, pdf_error = '' \
               where account_id = $1 and id = $2 and (pdf_version is null or pdf_version < $3)";
    let marked = sqlx::query(sql).bind(account).bind(id).bind(version).execute(connection).await?;
    Ok(marked.rows_affected() > 0)
}

/// Records the content version of which there is a PDF, or why there is none. A newer version stays as it is.
pub(crate) async fn record_pdf(
    connection: &mut PgConnection,
    account: AccountId,
    id: Uuid,
    made: Option<i64>,
    error: &str,
) -> Result<(), Error> {
    let sql = "update billing.document set pdf_version = coalesce($3, pdf_version), pdf_error = $4 \
               where account_id = $1 and id = $2 and ($3::bigint is null or pdf_version is null or pdf_version <= $3)";
    sqlx::query(sql).bind(account).bind(id).bind(made).bind(error).execute(connection).await?;
    Ok(())
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

/// Stores the new names of a client in its drafts. Final documents keep the names they were issued with.
pub(crate) async fn follow_client(
    connection: &mut PgConnection,
    account: AccountId,
    client: &Client,
    now: DateTime<Utc>,
) -> Result<(), Error> {
    sqlx::query(
        "update billing.document set client_company_name = $3, client_firstname = $4, client_lastname = $5, \
         search_text = lower(title) || E'\\n' || $6 || lower(external_id) || E'\\n' || lower(number), \
         version = version + 1, content_version = content_version + 1, updated_at = $7 \
         where account_id = $1 and client_id = $2 and not is_final \
         and (client_company_name, client_firstname, client_lastname) is distinct from ($3, $4, $5)",
    )
    .bind(account)
    .bind(client.id)
    .bind(&client.company_name)
    .bind(&client.firstname)
    .bind(&client.lastname)
    .bind(search::names(client))
    .bind(now)
    .execute(connection)
    .await?;
    Ok(())
}
