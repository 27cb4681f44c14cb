//! The table `wish`: the queue of commands to providers. A command is stored before the call and removed when its
//! outcome is recorded. There is at most one command of a kind for each subject.

use chassis_base::AccountId;
use chassis_data::Tx;
use chrono::{DateTime, Utc};
use sqlx::postgres::PgRow;
use sqlx::{FromRow, PgConnection, Row};
use uuid::Uuid;

use crate::error::Error;
use crate::online_payment::{CommandKind, NewCommand, ProviderCommand, ProviderName, TAKEOVER_DELAY};
use chassis_base::stored::decode;

impl FromRow<'_, PgRow> for ProviderCommand {
    fn from_row(row: &PgRow) -> Result<Self, sqlx::Error> {
        Ok(Self {
            id: row.try_get("id")?,
            kind: decode("wish.kind", row.try_get("kind")?, CommandKind::from_name)?,
            subject: row.try_get("subject")?,
            amount: row.try_get("amount")?,
            attempts: row.try_get("attempts")?,
            created_at: row.try_get("created_at")?,
        })
    }
}

/// Queues a command. A command of the same kind for the same subject that is queued already stays as it is, with its
/// idempotency key.
pub(crate) async fn enqueue(tx: &mut Tx<'_>, command: &NewCommand<'_>) -> Result<(), Error> {
    let (account, id, now) = (tx.account(), tx.id(), tx.now());
    sqlx::query(
        "insert into billing.wish (account_id, id, kind, subject, provider, amount, attempts, next_at, last_error, \
         created_at) values ($1, $2, $3, $4, $5, $6, 0, $7, '', $8) on conflict (account_id, kind, subject) do nothing",
    )
    .bind(account)
    .bind(id)
    .bind(command.kind.name())
    .bind(command.subject)
    .bind(command.provider)
    .bind(command.amount)
    .bind(now + command.delay)
    .bind(now)
    .execute(tx.db())
    .await?;
    Ok(())
}

/// Schedules the next refresh of a payment, in place of the one that was scheduled before. Without a time no refresh
/// remains.
pub(crate) async fn schedule_refresh(
    tx: &mut Tx<'_>,
    payment: Uuid,
    provider: &str,
    at: Option<DateTime<Utc>>,
) -> Result<(), Error> {
    let (account, id, now) = (tx.account(), tx.id(), tx.now());
    let Some(at) = at else { return remove(tx, CommandKind::RefreshPayment, payment).await };
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

pub(crate) async fn remove(tx: &mut Tx<'_>, kind: CommandKind, subject: Uuid) -> Result<(), Error> {
    let account = tx.account();
    let sql = "delete from billing.wish where account_id = $1 and kind = $2 and subject = $3";
    sqlx::query(sql).bind(account).bind(kind.name()).bind(subject).execute(tx.db()).await?;
    Ok(())
}

/// Postpones a command that could not be executed.
pub(crate) async fn postpone(
    tx: &mut Tx<'_>,
    command: &ProviderCommand,
    until: DateTime<Utc>,
    error: &str,
) -> Result<(), Error> {
    let account = tx.account();
    let sql = "update billing.wish set next_at = $4, last_error = $5 \
               where account_id = $1 and kind = $2 and subject = $3";
    sqlx::query(sql)
        .bind(account)
        .bind(command.kind.name())
        .bind(command.subject)
        .bind(until)
        .bind(error)
        .execute(tx.db())
        .await?;
    Ok(())
}

pub(crate) async fn find(
    connection: &mut PgConnection,
    account: AccountId,
    kind: CommandKind,
    subject: Uuid,
) -> Result<Option<ProviderCommand>, Error> {
    let sql = "select id, kind, subject, amount, attempts, created_at from billing.wish \
               where account_id = $1 and kind = $2 and subject = $3";
    Ok(sqlx::query_as(sql).bind(account).bind(kind.name()).bind(subject).fetch_optional(connection).await?)
}

/// Claims the command that has been due longest. Claiming moves its due time, so that another worker takes it over if
/// this process ends before the outcome is recorded. No lock is held during the call to the provider.
pub(crate) async fn claim(
    tx: &mut Tx<'_>,
    provider: &ProviderName,
) -> Result<Option<ProviderCommand>, Error> {
    let (account, now) = (tx.account(), tx.now());
    let sql = "update billing.wish set attempts = attempts + 1, next_at = $3 where account_id = $1 and id = (\
               select id from billing.wish where account_id = $1 and provider = $4 and next_at <= $2 \
               order by next_at, id limit 1) returning id, kind, subject, amount, attempts, created_at";
    Ok(sqlx::query_as(sql)
        .bind(account)
        .bind(now)
        .bind(now + TAKEOVER_DELAY)
        .bind(provider.0)
        .fetch_optional(tx.db())
        .await?)
}
