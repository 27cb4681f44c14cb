//! What documents need to know of their payments. Only read here; `payment` writes them, and depends on documents.

use chassis_base::AccountId;
use chrono::NaiveDate;
use rust_decimal::Decimal;
use sqlx::PgConnection;
use uuid::Uuid;

use crate::error::Error;

/// A payment that was received.
#[derive(Clone, Copy, Debug, chassis_derive::FromRow)]
pub(crate) struct ReceivedPayment {
    pub document_id: Uuid,
    pub date: NaiveDate,
    pub amount: Decimal,
}

macro_rules! received {
    ($of:literal) => {
        concat!(
            "select document_id, date, amount from billing.payment where account_id = $1 and ",
            $of,
            " and status = 'paid' order by date, id"
        )
    };
}

/// The payments that were received for some invoices, oldest first.
pub(crate) async fn list_received_payments(
    connection: &mut PgConnection,
    account: AccountId,
    invoices: &[Uuid],
) -> Result<Vec<ReceivedPayment>, Error> {
    // With an array Postgres makes a new plan at every call; most invoices have no credit.
    if let [invoice] = invoices {
        let sql = received!("document_id = $2");
        return Ok(sqlx::query_as(sql).bind(account).bind(invoice).fetch_all(connection).await?);
    }
    let sql = received!("document_id = any($2)");
    Ok(sqlx::query_as(sql).bind(account).bind(invoices).fetch_all(connection).await?)
}

/// Whether an invoice has a payment, of any status.
pub(crate) async fn has_payments(
    connection: &mut PgConnection,
    account: AccountId,
    invoice: Uuid,
) -> Result<bool, Error> {
    let sql = "select exists (select from billing.payment where account_id = $1 and document_id = $2)";
    Ok(sqlx::query_scalar(sql).bind(account).bind(invoice).fetch_one(connection).await?)
}
