//! Creating, finalising, changing and deleting documents.

use chassis_base::AccountId;
use rust_decimal::Decimal;
use sqlx::types::Json;
use sqlx::{PgConnection, Row as _};

use crate::document::rules::amounts::Row;
use crate::document::rules::settlement::Settlement;
use crate::document::{Parties, Record};
use crate::error::Error;

/// Where the number of a document comes from.
#[derive(Clone, Debug)]
pub(crate) struct Numbering {
    /// The number itself, when the caller chose it; else empty.
    pub given: String,
    pub counter: String,
    pub prefix: String,
    pub padding: i32,
}

/// What is stored of a new document besides its record.
pub(crate) struct Draft<'a> {
    pub rows: &'a [Row],
    pub parties: Option<&'a Parties>,
    pub search_text: &'a str,
}

/// The number made from a counter's value, padded with zeros.
macro_rules! written {
    ($prefix:literal, $padding:literal) => {
        concat!($prefix, " || lpad(value::text, greatest(", $padding, ", length(value::text)), '0')")
    };
}

/// Stores a new document with its rows and assigns its number, in one round trip. `None` when another document has the
/// number or the external id. Then nothing is stored, but the counter has advanced, so that a retry gets the next number.
///
/// The counter's row stays locked until the transaction ends, and every other create in the account waits for it. So this
/// is the last statement of a create that takes time.
pub(crate) async fn insert(
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
        .bind(record.language.code())
        .bind(record.total_excl)
        .bind(record.vat_rate)
        .bind(record.vat_amount)
        .bind(record.total_incl)
        .bind(record.row_count)
        .bind(record.client.as_ref().map(|client| client.id))
        .bind(client.company_name)
        .bind(client.firstname)
        .bind(client.lastname)
        .bind(record.status.as_str())
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
        .bind(texts(|row| row.category.code()))
        .bind(record.billed_period.map(|billed| billed.subscription))
        .bind(record.billed_period.map(|billed| billed.period.from))
        .bind(record.billed_period.map(|billed| billed.period.to))
        .bind(record.invoice_date_given)
        .bind(record.due_date_given)
        .fetch_optional(connection)
        .await?;
    Ok(row.map(|row| row.try_get(0)).transpose()?)
}

/// Makes a draft final and assigns its number. `None` when another document has that number of the sequence; then the
/// counter has advanced, and the next number can be tried. Locks the counter like [`insert`].
pub(crate) async fn finalize(
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
        .bind(record.status.as_str())
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
        .map_err(repeat_if_number_taken)?;
    Ok(row.map(|row| row.try_get(0)).transpose()?)
}

/// Another transaction took the number between the `not exists` and the update. The failed statement has aborted this
/// transaction, so the whole of it is run again.
fn repeat_if_number_taken(error: sqlx::Error) -> chassis_base::Error {
    match chassis_base::error::database::violated_constraint(&error) {
        Some("document_number") => chassis_base::Error::Raced,
        _ => error.into(),
    }
}

/// Stores the fields that stay editable, and the acceptance.
pub(crate) async fn update_content(
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
    .bind(record.status.as_str())
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

/// Stores a settlement. Status and `paid_at` are those of the record.
pub(crate) async fn update_settlement(
    connection: &mut PgConnection,
    account: AccountId,
    record: &Record,
    settlement: &Settlement,
) -> Result<(), Error> {
    sqlx::query(
        "update billing.document set version = $3, payment_status = $4, paid_at = $5, paid_amount = $6, \
         open_amount = $7, overpaid_amount = $8, updated_at = $9 where account_id = $1 and id = $2",
    )
    .bind(account)
    .bind(record.id)
    .bind(record.version)
    .bind(record.status.as_str())
    .bind(record.paid_at)
    .bind(settlement.paid)
    .bind(settlement.open)
    .bind(settlement.overpaid)
    .bind(record.updated_at)
    .execute(connection)
    .await?;
    Ok(())
}

/// Deletes a draft with its rows and history. Rows that it credited can be credited again.
pub(crate) async fn delete(
    connection: &mut PgConnection,
    account: AccountId,
    record: &Record,
) -> Result<(), Error> {
    if let Some(invoice) = record.credits {
        let sql = "update billing.document_row set credited_by = null \
                   where account_id = $1 and document_id = $2 and credited_by = $3";
        sqlx::query(sql).bind(account).bind(invoice).bind(record.id).execute(&mut *connection).await?;
    }
    let sql = "delete from billing.document where account_id = $1 and id = $2";
    sqlx::query(sql).bind(account).bind(record.id).execute(connection).await?;
    Ok(())
}
