//! The accounts that are provisioned in this service.

use std::collections::HashMap;

use chassis_base::{Account, AccountId, Error};
use sqlx::PgConnection;

#[derive(chassis_derive::FromRow)]
struct Row {
    account_id: AccountId,
    country: String,
    timezone: String,
    currency: String,
}

/// Returns those of the accounts that are provisioned in this service, with their settings.
pub(crate) async fn find(
    connection: &mut PgConnection,
    ids: &[AccountId],
) -> Result<HashMap<AccountId, Account>, Error> {
    let rows: Vec<Row> = sqlx::query_as(
        "select account_id, country, timezone, currency from account where account_id = any($1)",
    )
    .bind(ids.iter().map(|id| id.uuid()).collect::<Vec<_>>())
    .fetch_all(connection)
    .await?;
    let account = |Row { account_id, country, timezone, currency }| {
        (account_id, Account::stored(account_id, country, &timezone, currency))
    };
    Ok(rows.into_iter().map(account).collect())
}
