//! Changing documents.

use chassis_base::AccountId;
use chrono::{DateTime, NaiveDate, Utc};
use rust_decimal::Decimal;
use sqlx::types::Json;
use sqlx::{PgConnection, Row as _};
use uuid::Uuid;

use super::columns;
use super::read::{category_name, language_name};
use crate::Error;
use crate::document::rules::amounts::Row;
use crate::document::rules::standing::Standing;
use crate::document::{Parties, Record};

/// Where a number comes from.
#[derive(Clone, Debug)]
pub struct Numbering {
    /// The number itself, when the caller chose it; else empty.
    pub given: String,
    pub counter: String,
    pub prefix: String,
    pub padding: i32,
}

/// A document to be stored, besides its record.
pub struct Draft<'a> {
    pub rows: &'a [Row],
    pub parties: Option<&'a Parties>,
    pub search_text: &'a str,
}

/// The number of a counter's value.
macro_rules! written {
    ($prefix:literal, $padding:literal) => {
        concat!($prefix, " || lpad(value::text, greatest(", $padding, ", length(value::text)), '0')")
    };
}

/// Stores a new document with its rows and gives it its number, in one round trip. `None` when the number or the external
/// id belongs to another one: then nothing is stored, and a number of the sequence is used up, which is right when it was
/// taken. The counter stays locked until the transaction ends, so this is the last thing that a create does.
pub async fn insert(
    connection: &mut PgConnection,
    account: AccountId,
    record: &Record,
    draft: &Draft<'_>,
    numbering: &Numbering,
) -> Result<Option<String>, Error> {
    let sql = concat!(
        "with taken as (insert into counter (account_id, name, value) select $1, $4, 1 where $3 = '' \
         on conflict (account_id, name) do update set value = counter.value + 1 returning value), \
         numbered as (select case when $3 <> '' then $3 else (select ",
        written!("$5", "$6"),
        " from taken) end as number), \
         inserted as (insert into billing.document (account_id, id, kind, version, content_version, is_final, number, \
         number_given, title, invoice_date, due_date, currency, language, total_excl, vat_rate, vat_amount, \
         total_incl, row_count, client_id, client_company_name, client_firstname, client_lastname, payment_status, \
         paid_at, open_amount, credits, external_id, token, finalized_at, seller, buyer, einvoice_missing, \
         search_text, created_at, updated_at, subscription_id, period_from, period_to, invoice_date_given, due_date_given) \
         select $1, $2, $7, 1, 1, $8, number, $3 <> '', $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, \
         $21, $22, $23, $24, $25, $26, $27, $28, $29, $30, $31, $32, $33 || lower(number), $34, $34, $43, $44, $45, $46, $47 \
         from numbered \
         on conflict do nothing returning number), \
         stored as (insert into billing.document_row (account_id, document_id, position, name, description, quantity, \
         unit, unit_price, vat_rate, vat_code, category) \
         select $1, $2, position - 1, name, description, quantity, unit, unit_price, vat_rate, vat_code, category \
         from unnest($35::text[], $36::text[], $37::numeric[], $38::text[], $39::numeric[], $40::numeric[], \
         $41::text[], $42::text[]) with ordinality \
         as r (name, description, quantity, unit, unit_price, vat_rate, vat_code, category, position) \
         where exists (select from inserted)) \
         select number from inserted"
    );
    let texts =
        |text: fn(&Row) -> &str| draft.rows.iter().map(|row| text(row).to_owned()).collect::<Vec<_>>();
    let numbers = |number: fn(&Row) -> Decimal| draft.rows.iter().map(number).collect::<Vec<_>>();
    let client = record.client.clone().unwrap_or_default();
    let row = sqlx::query(sql)
        .bind(account)
        .bind(record.id)
        .bind(&numbering.given)
        .bind(&numbering.counter)
        .bind(&numbering.prefix)
        .bind(numbering.padding)
        .bind(record.kind.name())
        .bind(record.is_final)
        .bind(&record.title)
        .bind(record.invoice_date)
        .bind(record.due_date)
        .bind(&record.currency)
        .bind(language_name(record.language))
        .bind(record.total_excl)
        .bind(record.vat_rate)
        .bind(record.vat_amount)
        .bind(record.total_incl)
        .bind(record.row_count)
        .bind(record.client.as_ref().map(|client| client.id))
        .bind(client.company_name)
        .bind(client.firstname)
        .bind(client.lastname)
        .bind(&record.payment_status)
        .bind(record.paid_at)
        .bind(record.open_amount)
        .bind(record.credits)
        .bind(&record.external_id)
        .bind(record.token.as_slice())
        .bind(record.finalized_at)
        .bind(draft.parties.map(|parties| Json(&parties.seller)))
        .bind(draft.parties.map(|parties| Json(&parties.buyer)))
        .bind(&record.einvoice_missing)
        .bind(draft.search_text)
        .bind(record.created_at)
        .bind(texts(|row| &row.name))
        .bind(texts(|row| &row.description))
        .bind(numbers(|row| row.quantity))
        .bind(texts(|row| &row.unit))
        .bind(numbers(|row| row.unit_price))
        .bind(numbers(|row| row.vat_rate))
        .bind(texts(|row| &row.vat_code))
        .bind(texts(|row| category_name(row.category)))
        .bind(record.origin.map(|origin| origin.subscription))
        .bind(record.origin.map(|origin| origin.period.from))
        .bind(record.origin.map(|origin| origin.period.to))
        .bind(record.invoice_date_given)
        .bind(record.due_date_given)
        .fetch_optional(connection)
        .await?;
    Ok(row.map(|row| row.try_get(0)).transpose()?)
}

/// Makes a draft final and gives it its number. `None` when that number of the sequence belongs to another document; then
/// it is used up, and the next one can be tried. Locks the counter like [`insert`].
pub async fn finalize(
    connection: &mut PgConnection,
    account: AccountId,
    record: &Record,
    parties: &Parties,
    search_text: &str,
    numbering: &Numbering,
) -> Result<Option<String>, Error> {
    let sql = concat!(
        "with taken as (insert into counter (account_id, name, value) select $1, $4, 1 where $3 = '' \
         on conflict (account_id, name) do update set value = counter.value + 1 returning value), \
         numbered as (select case when $3 <> '' then $3 else (select ",
        written!("$5", "$6"),
        " from taken) end as number) \
         update billing.document d set number = numbered.number, is_final = true, version = $7, \
         content_version = $8, client_company_name = $9, client_firstname = $10, client_lastname = $11, \
         payment_status = $12, paid_at = $13, open_amount = $14, seller = $15, buyer = $16, einvoice_missing = $17, \
         search_text = $18 || lower(numbered.number), finalized_at = $19, updated_at = $20, overpaid_amount = $22, \
         invoice_date = $23, due_date = $24, prepaid_amount = $25 \
         from numbered where d.account_id = $1 and d.id = $2 and not exists (\
         select from billing.document other where other.account_id = $1 and other.kind = $21 \
         and other.number = numbered.number and other.id <> $2) returning d.number"
    );
    let client = record.client.clone().unwrap_or_default();
    let row = sqlx::query(sql)
        .bind(account)
        .bind(record.id)
        .bind(&numbering.given)
        .bind(&numbering.counter)
        .bind(&numbering.prefix)
        .bind(numbering.padding)
        .bind(record.version)
        .bind(record.content_version)
        .bind(client.company_name)
        .bind(client.firstname)
        .bind(client.lastname)
        .bind(&record.payment_status)
        .bind(record.paid_at)
        .bind(record.open_amount)
        .bind(Json(&parties.seller))
        .bind(Json(&parties.buyer))
        .bind(&record.einvoice_missing)
        .bind(search_text)
        .bind(record.finalized_at)
        .bind(record.updated_at)
        .bind(record.kind.name())
        .bind(record.overpaid_amount)
        .bind(record.invoice_date)
        .bind(record.due_date)
        .bind(record.prepaid_amount)
        .fetch_optional(connection)
        .await
        .map_err(raced)?;
    Ok(row.map(|row| row.try_get(0)).transpose()?)
}

/// Someone took the number between the look and the change: the whole transaction is run again.
fn raced(error: sqlx::Error) -> chassis_base::Error {
    match chassis_base::error::database::violated_constraint(&error) {
        Some("document_number") => chassis_base::Error::Raced,
        _ => error.into(),
    }
}

/// Stores the fields that stay editable.
pub async fn update_content(
    connection: &mut PgConnection,
    account: AccountId,
    record: &Record,
    search_text: &str,
) -> Result<(), Error> {
    sqlx::query(
        "update billing.document set version = $3, content_version = $4, title = $5, invoice_date = $6, \
         due_date = $7, payment_status = $8, paid_at = $9, accepted_at = $10, search_text = $11, updated_at = $12, \
         invoice_date_given = $13, due_date_given = $14 where account_id = $1 and id = $2",
    )
    .bind(account)
    .bind(record.id)
    .bind(record.version)
    .bind(record.content_version)
    .bind(&record.title)
    .bind(record.invoice_date)
    .bind(record.due_date)
    .bind(&record.payment_status)
    .bind(record.paid_at)
    .bind(record.accepted_at)
    .bind(search_text)
    .bind(record.updated_at)
    .bind(record.invoice_date_given)
    .bind(record.due_date_given)
    .execute(connection)
    .await?;
    Ok(())
}

/// Stores where an invoice stands; its status and `paid_at` are those of the record.
pub async fn update_standing(
    connection: &mut PgConnection,
    account: AccountId,
    record: &Record,
    standing: &Standing,
) -> Result<(), Error> {
    sqlx::query(
        "update billing.document set version = $3, payment_status = $4, paid_at = $5, paid_amount = $6, \
         open_amount = $7, overpaid_amount = $8, updated_at = $9 where account_id = $1 and id = $2",
    )
    .bind(account)
    .bind(record.id)
    .bind(record.version)
    .bind(&record.payment_status)
    .bind(record.paid_at)
    .bind(standing.paid)
    .bind(standing.open)
    .bind(standing.overpaid)
    .bind(record.updated_at)
    .execute(connection)
    .await?;
    Ok(())
}

pub async fn mark_sent(
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

/// Notes that a quote's page was opened on a day; false when it was before.
pub async fn note_view(
    connection: &mut PgConnection,
    account: AccountId,
    id: Uuid,
    day: NaiveDate,
) -> Result<Option<i64>, Error> {
    let sql = "update billing.document set viewed_on = $3, version = version + 1 where account_id = $1 and id = $2 \
               and (viewed_on is null or viewed_on < $3) returning version";
    Ok(sqlx::query_scalar(sql).bind(account).bind(id).bind(day).fetch_optional(connection).await?)
}

/// Gives documents a new version, for an event that no change stands behind.
pub async fn raise_versions(
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

/// Names the project that was made of a quote, unless the quote names one already; tells whether it did.
pub async fn set_project(
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

/// Notes of which content there is a PDF. Tells whether that is new.
pub async fn mark_pdf(
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

/// Notes of which content there is a PDF, or why there is none.
pub async fn note_pdf(
    connection: &mut PgConnection,
    account: AccountId,
    id: Uuid,
    made: Option<i64>,
    error: &str,
) -> Result<(), Error> {
    let sql = "update billing.document set pdf_version = coalesce($3, pdf_version), pdf_error = $4 \
               where account_id = $1 and id = $2 and ($3 is null or pdf_version is null or pdf_version <= $3)";
    sqlx::query(sql).bind(account).bind(id).bind(made).bind(error).execute(connection).await?;
    Ok(())
}

/// Marks rows of an invoice as taken back by a credit.
pub async fn credit_rows(
    connection: &mut PgConnection,
    account: AccountId,
    invoice: Uuid,
    positions: &[i32],
    credit: Uuid,
) -> Result<(), Error> {
    let sql = "update billing.document_row set credited_by = $4 \
               where account_id = $1 and document_id = $2 and position = any($3)";
    sqlx::query(sql).bind(account).bind(invoice).bind(positions).bind(credit).execute(connection).await?;
    Ok(())
}

/// Removes a draft with its rows and history; rows that it credited can be credited again.
pub async fn delete(connection: &mut PgConnection, account: AccountId, record: &Record) -> Result<(), Error> {
    if let Some(invoice) = record.credits {
        let sql = "update billing.document_row set credited_by = null \
                   where account_id = $1 and document_id = $2 and credited_by = $3";
        sqlx::query(sql).bind(account).bind(invoice).bind(record.id).execute(&mut *connection).await?;
    }
    let sql = "delete from billing.document where account_id = $1 and id = $2";
    sqlx::query(sql).bind(account).bind(record.id).execute(connection).await?;
    Ok(())
}

/// An entry of a document's history.
pub struct History<'a> {
    pub document: Uuid,
    pub id: Uuid,
    pub event: &'static str,
    pub actor: &'a str,
    /// JSON text of an object.
    pub data: String,
    pub mail: Option<Uuid>,
}

pub async fn log(
    connection: &mut PgConnection,
    account: AccountId,
    entry: History<'_>,
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

/// Remembers that a client has paid an invoice; true the first time.
pub async fn first_payment_of(
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

/// Gives the drafts of a client its new names.
pub async fn follow_client(
    connection: &mut PgConnection,
    account: AccountId,
    client: &crate::document::Client,
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
    .bind(crate::document::rules::search::names(client))
    .bind(now)
    .execute(connection)
    .await?;
    Ok(())
}
