//! What is to be asked of a provider: written before the call, gone when it is fulfilled. There is one wish of a kind
//! for a subject at most.

use chassis_base::AccountId;
use chassis_data::Tx;
use chrono::{DateTime, TimeDelta, Utc};
use rust_decimal::Decimal;
use sqlx::postgres::PgRow;
use sqlx::{FromRow, PgConnection, Row};
use uuid::Uuid;

use super::By;
use crate::Error;

/// When a wish is taken up whose maker was to fulfil it at once, and was killed.
pub const GRACE: TimeDelta = TimeDelta::seconds(30);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Make a client known to the provider.
    Customer,
    Payment,
    Cancel,
    Refund,
    /// Ask where a payment stands.
    Ask,
}

impl Kind {
    const ALL: [(Self, &'static str); 5] = [
        (Self::Customer, "customer"),
        (Self::Payment, "payment"),
        (Self::Cancel, "cancel"),
        (Self::Refund, "refund"),
        (Self::Ask, "ask"),
    ];

    pub fn name(self) -> &'static str {
        Self::ALL.into_iter().find(|(kind, _)| *kind == self).map_or("", |(_, name)| name)
    }

    fn named(name: &str) -> Self {
        Self::ALL.into_iter().find(|(_, of)| *of == name).map_or(Self::Ask, |(kind, _)| kind)
    }
}

#[derive(Clone, Debug)]
pub struct Wish {
    /// The key of the request.
    pub id: Uuid,
    pub kind: Kind,
    /// A client for a customer, else an online payment.
    pub subject: Uuid,
    /// Of a refund.
    pub amount: Decimal,
    /// How often it was begun, this time included.
    pub attempts: i32,
    pub created_at: DateTime<Utc>,
}

impl Wish {
    /// A question that somebody asks on the spot.
    pub fn ask(id: Uuid, payment: Uuid, now: DateTime<Utc>) -> Self {
        Self { id, kind: Kind::Ask, subject: payment, amount: Decimal::ZERO, attempts: 1, created_at: now }
    }

    pub fn key(&self) -> provider::Key {
        provider::Key(self.id.to_string())
    }
}

impl FromRow<'_, PgRow> for Wish {
    fn from_row(row: &PgRow) -> Result<Self, sqlx::Error> {
        Ok(Self {
            id: row.try_get("id")?,
            kind: Kind::named(row.try_get("kind")?),
            subject: row.try_get("subject")?,
            amount: row.try_get("amount")?,
            attempts: row.try_get("attempts")?,
            created_at: row.try_get("created_at")?,
        })
    }
}

/// Wishes for something; when the same is wished for already, that wish stays as it is. `after` from now it is taken up
/// by the worker.
pub async fn add(
    tx: &mut Tx<'_>,
    (kind, subject): (Kind, Uuid),
    provider: &str,
    amount: Decimal,
    after: TimeDelta,
) -> Result<(), Error> {
    let (account, id, now) = (tx.account(), tx.id(), tx.now());
    sqlx::query(
        "insert into billing.wish (account_id, id, kind, subject, provider, amount, attempts, next_at, last_error, \
         created_at) values ($1, $2, $3, $4, $5, $6, 0, $7, '', $8) on conflict (account_id, kind, subject) do nothing",
    )
    .bind(account)
    .bind(id)
    .bind(kind.name())
    .bind(subject)
    .bind(provider)
    .bind(amount)
    .bind(now + after)
    .bind(now)
    .execute(tx.db())
    .await?;
    Ok(())
}

/// Asks about a payment at this time, whatever was planned before; never again when there is none.
pub async fn ask_at(
    tx: &mut Tx<'_>,
    payment: Uuid,
    provider: &str,
    at: Option<DateTime<Utc>>,
) -> Result<(), Error> {
    let (account, id, now) = (tx.account(), tx.id(), tx.now());
    let Some(at) = at else { return remove(tx, Kind::Ask, payment).await };
    sqlx::query(
        "insert into billing.wish (account_id, id, kind, subject, provider, amount, attempts, next_at, last_error, \
         created_at) values ($1, $2, 'ask', $3, $4, 0, 0, $5, '', $6) \
         on conflict (account_id, kind, subject) do update set next_at = excluded.next_at, attempts = 0, last_error = ''",
    )
    .bind(account)
    .bind(id)
    .bind(payment)
    .bind(provider)
    .bind(at)
    .bind(now)
    .execute(tx.db())
    .await?;
    Ok(())
}

pub async fn remove(tx: &mut Tx<'_>, kind: Kind, subject: Uuid) -> Result<(), Error> {
    let account = tx.account();
    let sql = "delete from billing.wish where account_id = $1 and kind = $2 and subject = $3";
    sqlx::query(sql).bind(account).bind(kind.name()).bind(subject).execute(tx.db()).await?;
    Ok(())
}

/// Puts a wish off that could not be fulfilled.
pub async fn postpone(tx: &mut Tx<'_>, wish: &Wish, until: DateTime<Utc>, error: &str) -> Result<(), Error> {
    let account = tx.account();
    let sql = "update billing.wish set next_at = $4, last_error = $5 \
               where account_id = $1 and kind = $2 and subject = $3";
    sqlx::query(sql)
        .bind(account)
        .bind(wish.kind.name())
        .bind(wish.subject)
        .bind(until)
        .bind(error)
        .execute(tx.db())
        .await?;
    Ok(())
}

pub async fn find(
    connection: &mut PgConnection,
    account: AccountId,
    kind: Kind,
    subject: Uuid,
) -> Result<Option<Wish>, Error> {
    let sql = "select id, kind, subject, amount, attempts, created_at from billing.wish \
               where account_id = $1 and kind = $2 and subject = $3";
    Ok(sqlx::query_as(sql).bind(account).bind(kind.name()).bind(subject).fetch_optional(connection).await?)
}

/// Takes the wish that is longest due. Should the process end, it is due again after a while.
pub async fn claim(tx: &mut Tx<'_>, provider: &By) -> Result<Option<Wish>, Error> {
    let (account, now) = (tx.account(), tx.now());
    let sql = "update billing.wish set attempts = attempts + 1, next_at = $3 where account_id = $1 and id = (\
               select id from billing.wish where account_id = $1 and provider = $4 and next_at <= $2 \
               order by next_at, id limit 1) returning id, kind, subject, amount, attempts, created_at";
    Ok(sqlx::query_as(sql)
        .bind(account)
        .bind(now)
        .bind(now + GRACE)
        .bind(provider.0)
        .fetch_optional(tx.db())
        .await?)
}
