//! The SQL of debtors and their mandates, and nothing else.

use chassis_base::AccountId;
use chassis_data::Tx;
use chassis_data::row::Columns;
use chrono::{DateTime, Utc};
use sqlx::postgres::PgRow;
use sqlx::{FromRow, PgConnection};
use uuid::Uuid;

use super::{Debtor, MandateState};
use crate::error::Error;
use chassis_base::stored::decode;

/// The mandate of a client is one record, with whichever provider: its version goes on when the provider is another.
/// That of the row itself is read outside the subquery, which does not see what was committed during the wait for the
/// lock.
macro_rules! select {
    ($rest:literal) => {
        concat!(
            "select client_id, provider, customer_id, mandate_id, mandate_status, verified_at, authorized_at, \
             activated_at, asked_at, greatest(version, (select max(other.version) from billing.debtor other \
             where other.account_id = $1 and other.client_id = $2 and other.provider <> $3)), updated_at \
             from billing.debtor where account_id = $1 and client_id = $2 and provider = $3",
            $rest
        )
    };
}

/// In the order of `select!`.
impl FromRow<'_, PgRow> for Debtor {
    fn from_row(row: &PgRow) -> Result<Self, sqlx::Error> {
        let mut columns = Columns::of(row);
        Ok(Self {
            client_id: columns.take()?,
            provider: columns.take()?,
            customer_id: columns.take()?,
            mandate_id: columns.take()?,
            mandate: decode("debtor.mandate_status", columns.take()?, MandateState::from_name)?,
            verified_at: columns.take()?,
            authorized_at: columns.take()?,
            activated_at: columns.take()?,
            asked_at: columns.take()?,
            version: columns.take()?,
            updated_at: columns.take()?,
        })
    }
}

pub(crate) async fn find(
    connection: &mut PgConnection,
    account: AccountId,
    client: Uuid,
    provider: &str,
) -> Result<Option<Debtor>, Error> {
    let sql = select!("");
    Ok(sqlx::query_as(sql).bind(account).bind(client).bind(provider).fetch_optional(connection).await?)
}

/// The debtor of a client that changed last, whichever its provider is: the one that the log shows.
pub(crate) async fn find_latest(
    connection: &mut PgConnection,
    account: AccountId,
    client: Uuid,
) -> Result<Option<Debtor>, Error> {
    let sql = "select provider from billing.debtor where account_id = $1 and client_id = $2 \
               order by version desc, updated_at desc, provider limit 1";
    let query = sqlx::query_scalar(sql).bind(account).bind(client);
    let provider: Option<String> = query.fetch_optional(&mut *connection).await?;
    match provider {
        Some(provider) => find(connection, account, client, &provider).await,
        None => Ok(None),
    }
}

/// Locks a debtor until the transaction ends. Locked after the invoice and before the online payment.
pub(crate) async fn lock(
    connection: &mut PgConnection,
    account: AccountId,
    client: Uuid,
    provider: &str,
) -> Result<Option<Debtor>, Error> {
    let sql = select!(" for update");
    Ok(sqlx::query_as(sql).bind(account).bind(client).bind(provider).fetch_optional(connection).await?)
}

/// Locks a debtor, which is inserted first if the client has none with this provider.
pub(crate) async fn lock_or_insert(tx: &mut Tx<'_>, client: Uuid, provider: &str) -> Result<Debtor, Error> {
    let (account, now) = (tx.account(), tx.now());
    tx.refers_to(client);
    let sql = "insert into billing.debtor (account_id, client_id, provider, customer_id, mandate_id, mandate_status, \
               version, created_at, updated_at) values ($1, $2, $3, '', '', 'none', 0, $4, $4) on conflict do nothing";
    sqlx::query(sql).bind(account).bind(client).bind(provider).bind(now).execute(tx.db()).await?;
    let found = lock(tx.db(), account, client, provider).await?;
    found.ok_or_else(|| chassis_base::Error::Raced.into())
}

/// Stores the provider's id of a client and the version, and leaves the mandate as it is.
pub(crate) async fn update_customer(tx: &mut Tx<'_>, debtor: &Debtor) -> Result<(), Error> {
    let account = tx.account();
    let sql = "update billing.debtor set customer_id = $4, version = $5, updated_at = $6 \
               where account_id = $1 and client_id = $2 and provider = $3";
    sqlx::query(sql)
        .bind(account)
        .bind(debtor.client_id)
        .bind(&debtor.provider)
        .bind(&debtor.customer_id)
        .bind(debtor.version)
        .bind(debtor.updated_at)
        .execute(tx.db())
        .await?;
    Ok(())
}

/// Stores the mandate and the version. The mandate is fetched again at `ask_at`.
pub(crate) async fn update(tx: &mut Tx<'_>, debtor: &Debtor, ask_at: DateTime<Utc>) -> Result<(), Error> {
    let account = tx.account();
    sqlx::query(
        "update billing.debtor set mandate_id = $4, mandate_status = $5, verified_at = $6, authorized_at = $7, \
         activated_at = $8, updated_at = $9, asked_at = $10, ask_at = $11, ask_failures = 0, version = $12 \
         where account_id = $1 and client_id = $2 and provider = $3",
    )
    .bind(account)
    .bind(debtor.client_id)
    .bind(&debtor.provider)
    .bind(&debtor.mandate_id)
    .bind(debtor.mandate.name())
    .bind(debtor.verified_at)
    .bind(debtor.authorized_at)
    .bind(debtor.activated_at)
    .bind(debtor.updated_at)
    .bind(debtor.asked_at)
    .bind(ask_at)
    .bind(debtor.version)
    .execute(tx.db())
    .await?;
    Ok(())
}

/// A client whose mandate is to be fetched.
#[derive(Debug, chassis_derive::FromRow)]
pub(crate) struct DueMandate {
    pub client_id: Uuid,
    pub customer_id: String,
    /// The number of fetches since the last answer, including this one.
    pub ask_failures: i32,
}

/// Claims the valid mandate that has been due longest, which is due again at `again_at`.
pub(crate) async fn claim(
    tx: &mut Tx<'_>,
    provider: &str,
    again_at: DateTime<Utc>,
) -> Result<Option<DueMandate>, Error> {
    let (account, now) = (tx.account(), tx.now());
    let sql = "update billing.debtor set ask_at = $3, ask_failures = ask_failures + 1 \
               where account_id = $1 and provider = $4 and client_id = (select client_id from billing.debtor \
               where account_id = $1 and provider = $4 and mandate_status = 'valid' and ask_at <= $2 \
               order by ask_at, client_id limit 1) returning client_id, customer_id, ask_failures";
    let query = sqlx::query_as(sql).bind(account).bind(now).bind(again_at).bind(provider);
    Ok(query.fetch_optional(tx.db()).await?)
}

/// Postpones the fetch of a mandate.
pub(crate) async fn postpone(
    tx: &mut Tx<'_>,
    client: Uuid,
    provider: &str,
    until: DateTime<Utc>,
) -> Result<(), Error> {
    let account = tx.account();
    let sql =
        "update billing.debtor set ask_at = $4 where account_id = $1 and client_id = $2 and provider = $3";
    sqlx::query(sql).bind(account).bind(client).bind(provider).bind(until).execute(tx.db()).await?;
    Ok(())
}
