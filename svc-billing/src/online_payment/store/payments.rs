//! The table `online_payment`.

use chassis_base::AccountId;
use chassis_data::row::Columns;
use chrono::{DateTime, Utc};
use rust_decimal::Decimal;
use sqlx::postgres::PgRow;
use sqlx::{FromRow, PgConnection};
use uuid::Uuid;

use crate::error::Error;
use crate::money::two_places;
use crate::online_payment::{OnlinePayment, Purpose, Status};
use chassis_base::stored::decode;

macro_rules! columns {
    () => {
        "id, purpose, client_id, document_id, provider, token, amount, currency, description, customer_id, mandate_id, \
         return_url, status, closing, external_id, checkout_url, refunded, charged_back, failure, paid_at, asked_at, \
         created_at"
    };
}

macro_rules! select {
    ($rest:literal) => {
        concat!("select ", columns!(), " from billing.online_payment where account_id = $1 and ", $rest)
    };
}

/// In the order of `columns!`.
impl FromRow<'_, PgRow> for OnlinePayment {
    fn from_row(row: &PgRow) -> Result<Self, sqlx::Error> {
        let mut columns = Columns::of(row);
        Ok(Self {
            id: columns.take()?,
            purpose: decode("online_payment.purpose", columns.take()?, Purpose::from_name)?,
            client_id: columns.take()?,
            document_id: columns.take()?,
            provider: columns.take()?,
            token: columns.take()?,
            amount: two_places(columns.take()?),
            currency: columns.take()?,
            description: columns.take()?,
            customer_id: columns.take()?,
            mandate_id: columns.take()?,
            return_url: columns.take()?,
            status: decode("online_payment.status", columns.take()?, Status::from_name)?,
            closing: columns.take()?,
            external_id: columns.take()?,
            checkout_url: columns.take()?,
            refunded: two_places(columns.take()?),
            charged_back: two_places(columns.take()?),
            failure: columns.take()?,
            paid_at: columns.take()?,
            asked_at: columns.take()?,
            created_at: columns.take()?,
        })
    }
}

pub(crate) async fn insert(
    connection: &mut PgConnection,
    account: AccountId,
    payment: &OnlinePayment,
) -> Result<(), Error> {
    sqlx::query(
        "insert into billing.online_payment (account_id, id, purpose, client_id, document_id, provider, token, amount, \
         currency, description, customer_id, mandate_id, return_url, status, is_open, closing, external_id, \
         checkout_url, refunded, charged_back, failure, paid_at, asked_at, created_at, updated_at) \
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, true, false, '', '', 0, 0, '', null, $15, \
         $15, $15)",
    )
    .bind(account)
    .bind(payment.id)
    .bind(payment.purpose.name())
    .bind(payment.client_id)
    .bind(payment.document_id)
    .bind(&payment.provider)
    .bind(payment.token.as_slice())
    .bind(payment.amount)
    .bind(&payment.currency)
    .bind(&payment.description)
    .bind(&payment.customer_id)
    .bind(&payment.mandate_id)
    .bind(&payment.return_url)
    .bind(payment.status.name())
    .bind(payment.created_at)
    .execute(connection)
    .await?;
    Ok(())
}

/// Stores the columns that may change.
pub(crate) async fn update(
    connection: &mut PgConnection,
    account: AccountId,
    payment: &OnlinePayment,
    now: DateTime<Utc>,
) -> Result<(), Error> {
    sqlx::query(
        "update billing.online_payment set status = $3, is_open = $4, closing = $5, external_id = $6, \
         checkout_url = $7, refunded = $8, charged_back = $9, failure = $10, paid_at = $11, asked_at = $12, \
         customer_id = $13, mandate_id = $14, updated_at = $15 where account_id = $1 and id = $2",
    )
    .bind(account)
    .bind(payment.id)
    .bind(payment.status.name())
    .bind(payment.status.is_open())
    .bind(payment.closing)
    .bind(&payment.external_id)
    .bind(&payment.checkout_url)
    .bind(payment.refunded)
    .bind(payment.charged_back)
    .bind(&payment.failure)
    .bind(payment.paid_at)
    .bind(payment.asked_at)
    .bind(&payment.customer_id)
    .bind(&payment.mandate_id)
    .bind(now)
    .execute(connection)
    .await?;
    Ok(())
}

pub(crate) async fn find(
    connection: &mut PgConnection,
    account: AccountId,
    id: Uuid,
) -> Result<Option<OnlinePayment>, Error> {
    Ok(sqlx::query_as(select!("id = $2")).bind(account).bind(id).fetch_optional(connection).await?)
}

/// Locks a payment until the transaction ends. A transaction that locks its invoice or its client too locks these
/// first, so that no two transactions wait for each other.
pub(crate) async fn lock(
    connection: &mut PgConnection,
    account: AccountId,
    id: Uuid,
) -> Result<Option<OnlinePayment>, Error> {
    let sql = select!("id = $2 for update");
    Ok(sqlx::query_as(sql).bind(account).bind(id).fetch_optional(connection).await?)
}

/// The payment whose URLs contain this secret.
pub(crate) async fn find_by_token(
    connection: &mut PgConnection,
    account: AccountId,
    token: [u8; 16],
) -> Result<Option<OnlinePayment>, Error> {
    let sql = select!("token = $2");
    Ok(sqlx::query_as(sql).bind(account).bind(token.as_slice()).fetch_optional(connection).await?)
}

/// The open payment of an invoice, otherwise the latest one.
pub(crate) async fn find_latest(
    connection: &mut PgConnection,
    account: AccountId,
    invoice: Uuid,
) -> Result<Option<OnlinePayment>, Error> {
    let sql = select!("document_id = $2 order by is_open desc, id desc limit 1");
    Ok(sqlx::query_as(sql).bind(account).bind(invoice).fetch_optional(connection).await?)
}

/// The collections of an invoice, oldest first.
pub(crate) async fn list_collections(
    connection: &mut PgConnection,
    account: AccountId,
    invoice: Uuid,
) -> Result<Vec<OnlinePayment>, Error> {
    let sql = select!("document_id = $2 and purpose = 'collection' order by id");
    Ok(sqlx::query_as(sql).bind(account).bind(invoice).fetch_all(connection).await?)
}

/// The latest payment of a client for this purpose.
pub(crate) async fn find_of_client(
    connection: &mut PgConnection,
    account: AccountId,
    client: Uuid,
    provider: &str,
    purpose: Purpose,
) -> Result<Option<OnlinePayment>, Error> {
    let sql = select!("client_id = $2 and purpose = $4 and provider = $3 order by id desc limit 1");
    Ok(sqlx::query_as(sql)
        .bind(account)
        .bind(client)
        .bind(provider)
        .bind(purpose.name())
        .fetch_optional(connection)
        .await?)
}

/// A payment whose cancellation was requested.
#[derive(Debug, chassis_derive::FromRow)]
pub(crate) struct Closed {
    pub id: Uuid,
    pub provider: String,
}

/// Marks the open payment of an invoice for cancellation if it is for another amount than this, and returns it. An
/// invoice has at most one open payment, which an index of the table guarantees.
pub(crate) async fn close_superseded(
    connection: &mut PgConnection,
    account: AccountId,
    invoice: Uuid,
    amount: Decimal,
    now: DateTime<Utc>,
) -> Result<Option<Closed>, Error> {
    let sql = "update billing.online_payment set closing = true, updated_at = $4 \
               where account_id = $1 and document_id = $2 and is_open and not closing and amount <> $3 \
               returning id, provider";
    Ok(sqlx::query_as(sql)
        .bind(account)
        .bind(invoice)
        .bind(amount)
        .bind(now)
        .fetch_optional(connection)
        .await?)
}
