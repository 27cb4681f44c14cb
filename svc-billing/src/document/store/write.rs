//! Creating, finalising, changing and deleting documents.

use chassis_base::AccountId;
use chrono::{DateTime, Utc};
use rust_decimal::Decimal;
use sqlx::postgres::PgArguments;
use sqlx::query::Query;
use sqlx::types::Json;
use sqlx::{PgConnection, Postgres};

use crate::document::rules::amounts::Row;
use crate::document::rules::settlement::Settlement;
use crate::document::{Parties, Record};
use crate::error::Error;

/// What is stored of a new document besides its record.
pub(crate) struct Draft<'a> {
    pub rows: &'a [Row],
    pub parties: Option<&'a Parties>,
    /// Without the number.
    pub search_text: &'a str,
    /// It is final, and its PDF is still to be made.
    pub awaits_pdf: bool,
}

/// The query that stores a new document.
type Insert<'q> = Query<'q, Postgres, PgArguments>;

/// `$awaited` is another part of the statement.
macro_rules! insert_sql {
    ($awaited:literal) => {
        concat!(
            "with stored_document as (insert into billing.document (account_id, id, kind, version, content_version, \
             is_final, number, number_given, title, invoice_date, due_date, currency, language, total_excl, vat_rate, \
             vat_amount, total_incl, row_count, client_id, client_company_name, client_firstname, client_lastname, \
             payment_status, paid_at, open_amount, credits, external_id, token, finalized_at, seller, buyer, \
             einvoice_missing, search_text, created_at, updated_at, subscription_id, period_from, period_to, \
             invoice_date_given, due_date_given, pdf_version) \
             values ($1, $2, $3, 1, 1, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, \
             $21, $22, $23, $24, $25, $26, $27, $28, $29, $30, $31 || lower($5), $32, $32, $33, $34, $35, $36, $37, \
             $38)), \
             stored_rows as (insert into billing.document_row (account_id, document_id, position, name, description, \
             quantity, unit, unit_price, vat_rate, vat_code, category) \
             select $1, $2, position - 1, name, description, quantity, unit, unit_price, vat_rate, vat_code, category \
             from unnest($39::text[], $40::text[], $41::numeric[], $42::text[], $43::numeric[], $44::numeric[], \
             $45::text[], $46::text[]) with ordinality \
             as r (name, description, quantity, unit, unit_price, vat_rate, vat_code, category, position))",
            $awaited,
            " select 1"
        )
    };
}

/// Stores a new document with its rows. If its PDF is not made yet, it waits for that. It may be left to the last statement of
/// the transaction ([`Plan::write_last`](chassis_data::Plan::write_last)), whose form it has.
pub(crate) fn insert<'q>(account: AccountId, record: &'q Record, draft: &Draft<'q>) -> Insert<'q> {
    let query = if draft.awaits_pdf {
        let sql = insert_sql!(
            ", awaited_pdf as (insert into billing.pdf_pending (account_id, document_id, due_at) values ($1, $2, $32))"
        );
        sqlx::query(sql)
    } else {
        sqlx::query(insert_sql!(""))
    };
    let texts =
        |text: fn(&Row) -> &str| draft.rows.iter().map(|row| text(row).to_owned()).collect::<Vec<_>>();
    let numbers = |number: fn(&Row) -> Decimal| draft.rows.iter().map(number).collect::<Vec<_>>();
    let client = record.client.clone().unwrap_or_default();
    query
        .bind(account)
        .bind(record.id)
        .bind(record.kind.name())
        .bind(record.is_final)
        .bind(&record.number)
        .bind(record.number_given)
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
        .bind(record.billed_period.map(|billed| billed.subscription))
        .bind(record.billed_period.map(|billed| billed.period.from))
        .bind(record.billed_period.map(|billed| billed.period.to))
        .bind(record.invoice_date_given)
        .bind(record.due_date_given)
        .bind(record.pdf_version)
        .bind(texts(|row| &row.name))
        .bind(texts(|row| &row.description))
        .bind(numbers(|row| row.quantity))
        .bind(texts(|row| &row.unit))
        .bind(numbers(|row| row.unit_price))
        .bind(numbers(|row| row.vat_rate))
        .bind(texts(|row| &row.vat_code))
        .bind(texts(|row| row.category.code()))
}

/// Stores a new document now, for a transaction that goes on to change it.
pub(crate) async fn insert_now(connection: &mut PgConnection, insert: Insert<'_>) -> Result<(), Error> {
    insert.execute(connection).await.map_err(repeat_if_number_taken)?;
    Ok(())
}

/// Makes a draft final under the number of the record. Its PDF is to be made by `pdf_due_at`.
pub(crate) async fn finalize(
    connection: &mut PgConnection,
    account: AccountId,
    record: &Record,
    parties: &Parties,
    search_text: &str,
    pdf_due_at: DateTime<Utc>,
) -> Result<(), Error> {
    let sql = "with awaited_pdf as (insert into billing.pdf_pending (account_id, document_id, due_at) \
         values ($1, $2, $22) on conflict (account_id, document_id) do nothing) \
         update billing.document set number = $3, is_final = true, version = $4, \
         content_version = $5, client_company_name = $6, client_firstname = $7, client_lastname = $8, \
         payment_status = $9, paid_at = $10, open_amount = $11, seller = $12, buyer = $13, einvoice_missing = $14, \
         search_text = $15 || lower($3), finalized_at = $16, updated_at = $17, overpaid_amount = $18, \
         invoice_date = $19, due_date = $20, prepaid_amount = $21 where account_id = $1 and id = $2";
    let client = record.client.clone().unwrap_or_default();
    sqlx::query(sql)
        .bind(account)
        .bind(record.id)
        .bind(&record.number)
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
        .bind(record.overpaid_amount)
        .bind(record.invoice_date)
        .bind(record.due_date)
        .bind(record.prepaid_amount)
        .bind(pdf_due_at)
        .execute(connection)
        .await
        .map_err(repeat_if_number_taken)?;
    Ok(())
}

/// Another transaction took the number after the look at whether it is free. The failed statement has aborted this
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
