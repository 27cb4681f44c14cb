//! The SQL of links, and nothing else.

use chassis_base::AccountId;
use chrono::{DateTime, Utc};
use proto::relations::RelationType;
use sqlx::postgres::PgRow;
use sqlx::{FromRow, PgConnection, Row};
use uuid::Uuid;

use super::Record;
use crate::error::Error;
use crate::relation_type;

/// The type of a client.
pub(crate) struct ClientType {
    pub id: Uuid,
    pub kind: RelationType,
    pub is_anonymized: bool,
}

impl FromRow<'_, PgRow> for ClientType {
    fn from_row(row: &PgRow) -> Result<Self, sqlx::Error> {
        let kind = relation_type::decode(row.try_get("type")?)?;
        Ok(Self { id: row.try_get("id")?, kind, is_anonymized: row.try_get("is_anonymized")? })
    }
}

/// The types of the clients among these ids. An id that is not the id of a client is left out.
pub(crate) async fn list_client_types(
    connection: &mut PgConnection,
    account: AccountId,
    ids: &[Uuid],
) -> Result<Vec<ClientType>, Error> {
    let clients = sqlx::query_as(
        "select id, type, anonymized_at is not null as is_anonymized from relations.relation
         where account_id = $1 and role = 'client' and id = any($2)",
    )
    .bind(account)
    .bind(ids)
    .fetch_all(connection)
    .await?;
    Ok(clients)
}

/// Stores a link, replacing a link between the same two clients.
pub(crate) async fn put(
    connection: &mut PgConnection,
    account: AccountId,
    link: &Record,
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

/// The links that have the client at either end, oldest first.
pub(crate) async fn list(
    connection: &mut PgConnection,
    account: AccountId,
    client: Uuid,
) -> Result<Vec<Record>, Error> {
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

/// Deletes the links that have the client at either end, and returns them.
pub(crate) async fn delete_of(
    connection: &mut PgConnection,
    account: AccountId,
    client: Uuid,
) -> Result<Vec<Record>, Error> {
    let links = sqlx::query_as(
        "delete from relations.link where account_id = $1 and (company_id = $2 or client_id = $2)
         returning company_id, client_id, function, department",
    )
    .bind(account)
    .bind(client)
    .fetch_all(connection)
    .await?;
    Ok(links)
}
