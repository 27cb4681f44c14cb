//! The SQL of custom fields, and nothing else.

use chassis::AccountId;
use chrono::{DateTime, Utc};
use proto::relations::{CustomField, CustomFieldEntity, CustomFieldType};
use sqlx::PgConnection;

use super::{entity_name, entity_named, type_name, type_named};
use crate::Error;

#[derive(sqlx::FromRow)]
struct Row {
    entity: String,
    key: String,
    label: String,
    r#type: String,
    options: Vec<String>,
}

impl From<Row> for CustomField {
    fn from(row: Row) -> Self {
        Self {
            entity: entity_named(&row.entity).into(),
            key: row.key,
            label: row.label,
            r#type: type_named(&row.r#type).into(),
            options: row.options,
        }
    }
}

/// All fields, or those of one entity, in the order of entity and key.
pub async fn list(
    connection: &mut PgConnection,
    account: AccountId,
    entity: Option<CustomFieldEntity>,
) -> Result<Vec<CustomField>, Error> {
    let rows: Vec<Row> = sqlx::query_as(
        "select entity, key, label, type, options from relations.custom_field
         where account_id = $1 and ($2::text is null or entity = $2) order by entity, key",
    )
    .bind(account)
    .bind(entity.map(entity_name))
    .fetch_all(connection)
    .await?;
    Ok(rows.into_iter().map(CustomField::from).collect())
}

pub async fn insert(
    connection: &mut PgConnection,
    account: AccountId,
    field: &CustomField,
    now: DateTime<Utc>,
) -> Result<(), Error> {
    sqlx::query(
        "insert into relations.custom_field
            (account_id, entity, key, label, type, options, created_at, updated_at)
         values ($1, $2, $3, $4, $5, $6, $7, $7)",
    )
    .bind(account)
    .bind(entity_name(field.entity()))
    .bind(&field.key)
    .bind(&field.label)
    .bind(type_name(field.r#type()))
    .bind(&field.options)
    .bind(now)
    .execute(connection)
    .await?;
    Ok(())
}

/// The type of a field that is about to be changed; others who want to change it wait.
pub async fn find_type_locked(
    connection: &mut PgConnection,
    account: AccountId,
    entity: CustomFieldEntity,
    key: &str,
) -> Result<Option<CustomFieldType>, Error> {
    let kind: Option<String> = sqlx::query_scalar(
        "select type from relations.custom_field where account_id = $1 and entity = $2 and key = $3 for update",
    )
    .bind(account)
    .bind(entity_name(entity))
    .bind(key)
    .fetch_optional(connection)
    .await?;
    Ok(kind.map(|kind| type_named(&kind)))
}

pub async fn update(
    connection: &mut PgConnection,
    account: AccountId,
    field: &CustomField,
    now: DateTime<Utc>,
) -> Result<(), Error> {
    sqlx::query(
        "update relations.custom_field set label = $4, options = $5, updated_at = $6
         where account_id = $1 and entity = $2 and key = $3",
    )
    .bind(account)
    .bind(entity_name(field.entity()))
    .bind(&field.key)
    .bind(&field.label)
    .bind(&field.options)
    .bind(now)
    .execute(connection)
    .await?;
    Ok(())
}

/// Tells whether there was one.
pub async fn delete(
    connection: &mut PgConnection,
    account: AccountId,
    entity: CustomFieldEntity,
    key: &str,
) -> Result<bool, Error> {
    let deleted =
        sqlx::query("delete from relations.custom_field where account_id = $1 and entity = $2 and key = $3")
            .bind(account)
            .bind(entity_name(entity))
            .bind(key)
            .execute(connection)
            .await?;
    Ok(deleted.rows_affected() > 0)
}
