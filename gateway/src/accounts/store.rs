//! The SQL of accounts.

use chassis::{Account, AccountId};
use chrono::{DateTime, Utc};
use sqlx::PgConnection;
use uuid::Uuid;

/// An account as it is stored.
#[derive(Clone, Debug, sqlx::FromRow)]
pub struct AccountRow {
    pub account_id: AccountId,
    pub name: String,
    pub country: String,
    pub timezone: String,
    pub currency: String,
    pub created_at: DateTime<Utc>,
}

impl AccountRow {
    pub fn account(&self) -> Result<Account, chassis::Error> {
        let unusable = |_| chassis::Error::Internal(format!("the time zone of account {}", self.account_id));
        Ok(Account {
            id: self.account_id,
            timezone: self.timezone.parse().map_err(unusable)?,
            country: self.country.clone(),
            currency: self.currency.clone(),
        })
    }
}

pub async fn insert(connection: &mut PgConnection, row: &AccountRow) -> Result<(), sqlx::Error> {
    sqlx::query(
        "insert into account (account_id, name, country, timezone, currency, created_at, updated_at)
         values ($1, $2, $3, $4, $5, $6, $6)",
    )
    .bind(row.account_id)
    .bind(&row.name)
    .bind(&row.country)
    .bind(&row.timezone)
    .bind(&row.currency)
    .bind(row.created_at)
    .execute(connection)
    .await?;
    Ok(())
}

/// By creation.
pub async fn list(connection: &mut PgConnection) -> Result<Vec<AccountRow>, sqlx::Error> {
    sqlx::query_as(
        "select account_id, name, country, timezone, currency, created_at
         from account order by created_at, account_id",
    )
    .fetch_all(connection)
    .await
}

/// By id, or by name without regard to upper and lower case. No name looks like an id.
pub async fn find(
    connection: &mut PgConnection,
    id_or_name: &str,
) -> Result<Option<AccountRow>, sqlx::Error> {
    sqlx::query_as(
        "select account_id, name, country, timezone, currency, created_at
         from account where account_id = $1 or lower(name) = lower($2)",
    )
    .bind(Uuid::parse_str(id_or_name).unwrap_or_default())
    .bind(id_or_name.trim())
    .fetch_optional(connection)
    .await
}
