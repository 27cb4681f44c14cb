//! The outcome of mails, for the service that sent them.

use std::collections::{BTreeMap, HashMap};

use chassis_base::stored::decode;
use chassis_base::{AccountId, Error};
use chrono::{DateTime, Utc};
use sqlx::encode::IsNull;
use sqlx::error::BoxDynError;
use sqlx::postgres::{PgArgumentBuffer, PgTypeInfo, PgValueRef};
use sqlx::types::Json;
use sqlx::{Decode, Encode, PgConnection, Postgres, Type};
use uuid::Uuid;

/// How many mails are listed.
const MAX_LISTED: i64 = 100;

/// Stored as text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// Delivery is not finished for all recipients.
    Queued,
    /// Accepted for all recipients.
    Sent,
    /// Given up for at least one recipient. It may be accepted for others: see [`Outcome::accepted`].
    Dead,
}

impl Status {
    fn name(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Sent => "sent",
            Self::Dead => "dead",
        }
    }

    fn from_name(name: &str) -> Option<Self> {
        [Self::Queued, Self::Sent, Self::Dead].into_iter().find(|status| status.name() == name)
    }
}

impl Type<Postgres> for Status {
    fn type_info() -> PgTypeInfo {
        str::type_info()
    }
}

impl Encode<'_, Postgres> for Status {
    fn encode_by_ref(&self, buffer: &mut PgArgumentBuffer) -> Result<IsNull, BoxDynError> {
        self.name().encode(buffer)
    }
}

impl Decode<'_, Postgres> for Status {
    fn decode(value: PgValueRef<'_>) -> Result<Self, BoxDynError> {
        Ok(decode("mail.status", <&str>::decode(value)?, Self::from_name)?)
    }
}

#[derive(Clone, Debug, PartialEq, chassis_derive::FromRow)]
pub struct Outcome {
    pub id: Uuid,
    pub status: Status,
    pub recipients: Vec<String>,
    /// The recipients for whom the server has accepted the mail.
    pub accepted: Vec<String>,
    /// The server's reply by recipient, for permanent refusals.
    #[sqlx(json)]
    pub refused: BTreeMap<String, String>,
    /// Why the last attempt failed, for operators.
    pub last_error: String,
    pub attempts: i32,
    pub created_at: DateTime<Utc>,
    /// When the mail was sent or given up.
    pub done_at: Option<DateTime<Utc>>,
}

/// The latest mails with this reference, the latest first.
pub async fn outcomes(
    connection: &mut PgConnection,
    account: AccountId,
    reference: &str,
) -> Result<Vec<Outcome>, Error> {
    let outcomes = sqlx::query_as(
        "select id, status, recipients, accepted, refused, last_error, attempts, created_at, done_at
         from mail where account_id = $1 and reference = $2 order by created_at desc, id desc limit $3",
    )
    .bind(account)
    .bind(reference)
    .bind(MAX_LISTED)
    .fetch_all(connection)
    .await?;
    Ok(outcomes)
}

/// The status of each of these mails; unknown ids are left out.
pub async fn statuses(
    connection: &mut PgConnection,
    account: AccountId,
    ids: &[Uuid],
) -> Result<HashMap<Uuid, Status>, Error> {
    if ids.is_empty() {
        return Ok(HashMap::new());
    }
    let statuses: Vec<(Uuid, Status)> =
        sqlx::query_as("select id, status from mail where account_id = $1 and id = any($2)")
            .bind(account)
            .bind(ids)
            .fetch_all(connection)
            .await?;
    Ok(statuses.into_iter().collect())
}

/// The type of the `refused` column.
pub(super) type Refused = Json<BTreeMap<String, String>>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_stored_name_is_read_as_it_was_written_and_no_other() {
        for status in [Status::Queued, Status::Sent, Status::Dead] {
            assert_eq!(Status::from_name(status.name()), Some(status));
        }
        assert_eq!((Status::from_name("Sent"), Status::from_name("")), (None, None));
    }
}
