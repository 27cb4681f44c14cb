//! The SQL of custom fields, and nothing else.

use chassis_base::AccountId;
use chassis_base::stored;
use proto::relations::CustomFieldEntity;
use sqlx::postgres::PgRow;
use sqlx::{FromRow, PgConnection, Row};

use super::{Record, entity_from_name, entity_name, type_from_name, type_name};
use crate::error::Error;

impl FromRow<'_, PgRow> for Record {
    fn from_row(row: &PgRow) -> Result<Self, sqlx::Error> {
        let entity = stored::decode("custom_field.entity", row.try_get("entity")?, entity_from_name);
        Ok(Self {
            entity: entity?,
            key: row.try_get("key")?,
            label: row.try_get("label")?,
            kind: stored::decode("custom_field.type", row.try_get("type")?, type_from_name)?,
            options: row.try_get("options")?,
            version: row.try_get("version")?,
            updated_at: row.try_get("updated_at")?,
        })
    }
}

/// All fields, or the fields of one entity, ordered by entity and key.
pub(super) async fn list(
    connection: &mut PgConnection,
    account: AccountId,
    entity: Option<CustomFieldEntity>,
) -> Result<Vec<Record>, Error> {
    let records = sqlx::query_as(
        "select entity, key, label, type, options, version, updated_at from relations.custom_field
         where account_id = $1 and ($2::text is null or entity = $2) order by entity, key",
    )
    .bind(account)
    .bind(entity.map(entity_name))
    .fetch_all(connection)
    .await?;
    Ok(records)
}

pub(super) async fn insert(
    connection: &mut PgConnection,
    account: AccountId,
    record: &Record,
) -> Result<(), Error> {
    sqlx::query(
        "insert into relations.custom_field
            (account_id, entity, key, label, type, options, version, created_at, updated_at)
         values ($1, $2, $3, $4, $5, $6, $7, $8, $8)",
    )
    .bind(account)
    .bind(entity_name(record.entity))
    .bind(&record.key)
    .bind(&record.label)
    .bind(type_name(record.kind))
    .bind(&record.options)
    .bind(record.version)
    .bind(record.updated_at)
    .execute(connection)
    .await?;
    Ok(())
}

/// Finds a field and locks its row: an update reads it, decides and writes it back, so two of them must not overlap.
pub(super) async fn find_locked(
    connection: &mut PgConnection,
    account: AccountId,
    entity: CustomFieldEntity,
    key: &str,
) -> Result<Option<Record>, Error> {
    let record = sqlx::query_as(
        "select entity, key, label, type, options, version, updated_at from relations.custom_field
         where account_id = $1 and entity = $2 and key = $3 for update",
    )
    .bind(account)
    .bind(entity_name(entity))
    .bind(key)
    .fetch_optional(connection)
    .await?;
    Ok(record)
}

pub(super) async fn update(
    connection: &mut PgConnection,
    account: AccountId,
    record: &Record,
) -> Result<(), Error> {
    sqlx::query(
        "update relations.custom_field set label = $4, options = $5, version = $6, updated_at = $7
         where account_id = $1 and entity = $2 and key = $3",
    )
    .bind(account)
    .bind(entity_name(record.entity))
    .bind(&record.key)
    .bind(&record.label)
    .bind(&record.options)
    .bind(record.version)
    .bind(record.updated_at)
    .execute(connection)
    .await?;
    Ok(())
}

/// Returns whether there was such a field.
pub(super) async fn delete(
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
