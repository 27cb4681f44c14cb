//! The SQL of custom fields, and nothing else.

use chassis_base::AccountId;
use chassis_base::stored;
use chrono::{DateTime, Utc};
use proto::relations::{CustomFieldEntity, CustomFieldType};
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
            kind: decode_type(row.try_get("type")?)?,
            options: row.try_get("options")?,
        })
    }
}

fn decode_type(text: &str) -> Result<CustomFieldType, stored::Undecodable> {
    stored::decode("custom_field.type", text, type_from_name)
}

/// All fields, or the fields of one entity, ordered by entity and key.
pub(super) async fn list(
    connection: &mut PgConnection,
    account: AccountId,
    entity: Option<CustomFieldEntity>,
) -> Result<Vec<Record>, Error> {
    let records = sqlx::query_as(
        "select entity, key, label, type, options from relations.custom_field
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
    now: DateTime<Utc>,
) -> Result<(), Error> {
    sqlx::query(
        "insert into relations.custom_field
            (account_id, entity, key, label, type, options, created_at, updated_at)
         values ($1, $2, $3, $4, $5, $6, $7, $7)",
    )
    .bind(account)
    .bind(entity_name(record.entity))
    .bind(&record.key)
    .bind(&record.label)
    .bind(type_name(record.kind))
    .bind(&record.options)
    .bind(now)
    .execute(connection)
    .await?;
    Ok(())
}

/// Locks the row of a field and returns its type: the options are checked against it before the update.
pub(super) async fn find_type_locked(
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
    Ok(kind.as_deref().map(decode_type).transpose().map_err(chassis_base::Error::from)?)
}

pub(super) async fn update(
    connection: &mut PgConnection,
    account: AccountId,
    record: &Record,
    now: DateTime<Utc>,
) -> Result<(), Error> {
    sqlx::query(
        "update relations.custom_field set label = $4, options = $5, updated_at = $6
         where account_id = $1 and entity = $2 and key = $3",
    )
    .bind(account)
    .bind(entity_name(record.entity))
    .bind(&record.key)
    .bind(&record.label)
    .bind(&record.options)
    .bind(now)
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
