//! The SQL of links, and nothing else.

use chassis::AccountId;
use chrono::{DateTime, Utc};
use proto::relations::RelationType;
use sqlx::PgConnection;
use uuid::Uuid;

use crate::Error;
use crate::relation::type_named;

/// A link as it is stored.
#[derive(sqlx::FromRow)]
pub struct Row {
    pub company_id: Uuid,
    pub client_id: Uuid,
    pub function: String,
    pub department: String,
}

/// The types of those of the ids that are clients.
pub async fn types_of_clients(
    connection: &mut PgConnection,
    account: AccountId,
    ids: &[Uuid],
) -> Result<Vec<(Uuid, RelationType)>, Error> {
    let rows: Vec<(Uuid, String)> = sqlx::query_as(
        "select id, type from relations.relation where account_id = $1 and role = 'client' and id = any($2)",
    )
    .bind(account)
    .bind(ids)
    .fetch_all(connection)
    .await?;
    Ok(rows.into_iter().map(|(id, kind)| (id, type_named(&kind).unwrap_or_default())).collect())
}

/// Stores a link; one between the same two is replaced.
pub async fn put(
    connection: &mut PgConnection,
    account: AccountId,
    link: &Row,
    now: DateTime<Utc>,
) -> Result<(), Error> {
    sqlx::query(
        "insert into relations.link
            (account_id, company_id, client_id, function, department, created_at, updated_at)
         values ($1, $2, $3, $4, $5, $6, $6)
         on conflict (account_id, company_id, client_id) do update
            set function = excluded.function, department = excluded.department, updated_at = excluded.updated_at",
    )
    .bind(account)
    .bind(link.company_id)
    .bind(link.client_id)
    .bind(&link.function)
    .bind(&link.department)
    .bind(now)
    .execute(connection)
    .await?;
    Ok(())
}

/// The links that a client is an end of, oldest first.
pub async fn list(
    connection: &mut PgConnection,
    account: AccountId,
    client: Uuid,
) -> Result<Vec<Row>, Error> {
    let links = sqlx::query_as(
        "select company_id, client_id, function, department from relations.link
         where account_id = $1 and (company_id = $2 or client_id = $2)
         order by created_at, company_id, client_id",
    )
    .bind(account)
    .bind(client)
    .fetch_all(connection)
    .await?;
    Ok(links)
}
