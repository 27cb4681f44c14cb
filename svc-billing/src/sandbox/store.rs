//! The SQL of the sandbox, and nothing else.

use chassis_base::AccountId;
use chassis_data::row::Columns;
use chrono::{DateTime, Utc};
use provider::{MandateStatus, Status};
use sqlx::postgres::PgRow;
use sqlx::{FromRow, PgConnection};
use uuid::Uuid;

use super::{Mandate, Payment, Sequence};
use crate::error::Error;
use chassis_base::stored::decode;

/// The number of payments of a customer that a page shows.
const MAX_SHOWN: i64 = 20;

macro_rules! select {
    ($rest:literal) => {
        concat!(
            "select id, reference, sequence, customer_id, mandate_id, amount, currency, description, return_url, \
             webhook_url, status, refunded, charged_back, failure, paid_at, fails, created_at \
             from billing.sandbox_payment where account_id = $1 and ",
            $rest
        )
    };
}

/// In the order of `select!`.
impl FromRow<'_, PgRow> for Payment {
    fn from_row(row: &PgRow) -> Result<Self, sqlx::Error> {
        let mut columns = Columns::of(row);
        Ok(Self {
            id: columns.take()?,
            reference: columns.take()?,
            sequence: decode("sandbox_payment.sequence", columns.take()?, Sequence::from_name)?,
            customer_id: columns.take()?,
            mandate_id: columns.take()?,
            amount: columns.take()?,
            currency: columns.take()?,
            description: columns.take()?,
            return_url: columns.take()?,
            webhook_url: columns.take()?,
            status: decode("sandbox_payment.status", columns.take()?, Status::from_name)?,
            refunded: columns.take()?,
            charged_back: columns.take()?,
            failure: columns.take()?,
            paid_at: columns.take()?,
            fails: columns.take()?,
            created_at: columns.take()?,
        })
    }
}

impl FromRow<'_, PgRow> for Mandate {
    fn from_row(row: &PgRow) -> Result<Self, sqlx::Error> {
        let mut columns = Columns::of(row);
        Ok(Self {
            id: columns.take()?,
            status: decode("sandbox_mandate.status", columns.take()?, MandateStatus::from_name)?,
            refuses_next: columns.take()?,
        })
    }
}

pub(crate) async fn find(
    connection: &mut PgConnection,
    account: AccountId,
    id: Uuid,
) -> Result<Option<Payment>, Error> {
    Ok(sqlx::query_as(select!("id = $2")).bind(account).bind(id).fetch_optional(connection).await?)
}

/// Locks a payment until the transaction ends.
pub(crate) async fn lock(
    connection: &mut PgConnection,
    account: AccountId,
    id: Uuid,
) -> Result<Option<Payment>, Error> {
    let sql = select!("id = $2 for update");
    Ok(sqlx::query_as(sql).bind(account).bind(id).fetch_optional(connection).await?)
}

pub(crate) async fn find_by_reference(
    connection: &mut PgConnection,
    account: AccountId,
    reference: &str,
) -> Result<Option<Payment>, Error> {
    let sql = select!("reference = $2 order by created_at desc, id limit 1");
    Ok(sqlx::query_as(sql).bind(account).bind(reference).fetch_optional(connection).await?)
}

/// The latest payments of a customer.
pub(crate) async fn list_of_customer(
    connection: &mut PgConnection,
    account: AccountId,
    customer: Uuid,
) -> Result<Vec<Payment>, Error> {
    let sql = select!("customer_id = $2 order by created_at desc, id limit $3");
    Ok(sqlx::query_as(sql).bind(account).bind(customer).bind(MAX_SHOWN).fetch_all(connection).await?)
}

/// Locks the payment whose time has been over longest.
pub(crate) async fn lock_due(
    connection: &mut PgConnection,
    account: AccountId,
    now: DateTime<Utc>,
) -> Result<Option<Payment>, Error> {
    let sql =
        select!("status in ('open', 'pending') and ends_at <= $2 order by ends_at, id limit 1 for update");
    Ok(sqlx::query_as(sql).bind(account).bind(now).fetch_optional(connection).await?)
}

pub(crate) async fn insert(
    connection: &mut PgConnection,
    account: AccountId,
    payment: &Payment,
    ends_at: DateTime<Utc>,
) -> Result<(), Error> {
    sqlx::query(
        "insert into billing.sandbox_payment (account_id, id, reference, sequence, customer_id, mandate_id, amount, \
         currency, description, return_url, webhook_url, status, refunded, charged_back, failure, paid_at, fails, \
         ends_at, created_at) \
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, 0, 0, '', null, $13, $14, $15)",
    )
    .bind(account)
    .bind(payment.id)
    .bind(&payment.reference)
    .bind(payment.sequence.name())
    .bind(payment.customer_id)
    .bind(payment.mandate_id)
    .bind(payment.amount)
    .bind(&payment.currency)
    .bind(&payment.description)
    .bind(&payment.return_url)
    .bind(&payment.webhook_url)
    .bind(payment.status.name())
    .bind(payment.fails)
    .bind(ends_at)
    .bind(payment.created_at)
    .execute(connection)
    .await?;
    Ok(())
}

/// Stores the columns that may change.
pub(crate) async fn update(
    connection: &mut PgConnection,
    account: AccountId,
    payment: &Payment,
) -> Result<(), Error> {
    sqlx::query(
        "update billing.sandbox_payment set mandate_id = $3, status = $4, refunded = $5, charged_back = $6, \
         failure = $7, paid_at = $8 where account_id = $1 and id = $2",
    )
    .bind(account)
    .bind(payment.id)
    .bind(payment.mandate_id)
    .bind(payment.status.name())
    .bind(payment.refunded)
    .bind(payment.charged_back)
    .bind(&payment.failure)
    .bind(payment.paid_at)
    .execute(connection)
    .await?;
    Ok(())
}

/// A customer to be stored.
#[derive(Clone, Copy)]
pub(crate) struct NewCustomer<'a> {
    pub id: Uuid,
    pub reference: &'a str,
    pub name: &'a str,
}

pub(crate) async fn insert_customer(
    connection: &mut PgConnection,
    account: AccountId,
    customer: NewCustomer<'_>,
    now: DateTime<Utc>,
) -> Result<(), Error> {
    let sql = "insert into billing.sandbox_customer (account_id, id, reference, name, created_at) \
               values ($1, $2, $3, $4, $5)";
    sqlx::query(sql)
        .bind(account)
        .bind(customer.id)
        .bind(customer.reference)
        .bind(customer.name)
        .bind(now)
        .execute(connection)
        .await?;
    Ok(())
}

/// The name of a customer.
pub(crate) async fn find_customer(
    connection: &mut PgConnection,
    account: AccountId,
    id: Uuid,
) -> Result<Option<String>, Error> {
    let sql = "select name from billing.sandbox_customer where account_id = $1 and id = $2";
    Ok(sqlx::query_scalar(sql).bind(account).bind(id).fetch_optional(connection).await?)
}

pub(crate) async fn insert_mandate(
    connection: &mut PgConnection,
    account: AccountId,
    id: Uuid,
    customer: Uuid,
    now: DateTime<Utc>,
) -> Result<(), Error> {
    let sql = "insert into billing.sandbox_mandate (account_id, id, customer_id, status, refuses_next, created_at) \
               values ($1, $2, $3, 'valid', false, $4)";
    sqlx::query(sql).bind(account).bind(id).bind(customer).bind(now).execute(connection).await?;
    Ok(())
}

/// Newest first.
pub(crate) async fn list_mandates(
    connection: &mut PgConnection,
    account: AccountId,
    customer: Uuid,
) -> Result<Vec<Mandate>, Error> {
    let sql = "select id, status, refuses_next from billing.sandbox_mandate \
               where account_id = $1 and customer_id = $2 order by created_at desc, id desc limit 50";
    Ok(sqlx::query_as(sql).bind(account).bind(customer).fetch_all(connection).await?)
}

pub(crate) async fn find_mandate(
    connection: &mut PgConnection,
    account: AccountId,
    id: Uuid,
) -> Result<Option<Mandate>, Error> {
    let sql =
        "select id, status, refuses_next from billing.sandbox_mandate where account_id = $1 and id = $2";
    Ok(sqlx::query_as(sql).bind(account).bind(id).fetch_optional(connection).await?)
}

pub(crate) async fn update_mandate(
    connection: &mut PgConnection,
    account: AccountId,
    mandate: &Mandate,
) -> Result<(), Error> {
    let sql =
        "update billing.sandbox_mandate set status = $3, refuses_next = $4 where account_id = $1 and id = $2";
    sqlx::query(sql)
        .bind(account)
        .bind(mandate.id)
        .bind(mandate.status.name())
        .bind(mandate.refuses_next)
        .execute(connection)
        .await?;
    Ok(())
}
