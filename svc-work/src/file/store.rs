//! The SQL of files.

use chassis_base::AccountId;
use chassis_base::paging::Page;
use chassis_data::list::{Fields, List, Selection, Total};
use chassis_data::row::Columns;
use chrono::{DateTime, Utc};
use proto::api::PageMeta;
use sqlx::postgres::PgRow;
use sqlx::{FromRow, PgConnection};
use uuid::Uuid;

use super::{KIND_COLUMN, LIST, Record, Source};
use crate::error::Error;

/// The last change of a file that never changed is its creation; its row may have the time of a migration there.
macro_rules! columns {
    () => {
        "id, version, name, content_type, size, key, source_type, source_id, source_version, created_at, \
         greatest(updated_at, created_at) as updated_at"
    };
}

/// Reads the columns in the order of `columns!`.
impl FromRow<'_, PgRow> for Record {
    fn from_row(row: &PgRow) -> Result<Self, sqlx::Error> {
        let mut columns = Columns::of(row);
        Ok(Self {
            id: columns.take()?,
            version: columns.take()?,
            name: columns.take()?,
            content_type: columns.take()?,
            size: columns.take()?,
            key: columns.take()?,
            source: Source { kind: columns.take()?, id: columns.take()?, version: columns.take()? },
            created_at: columns.take()?,
            updated_at: columns.take()?,
        })
    }
}

/// The times as `columns!` shows them.
const FIELDS: Fields = Fields { updated_at: "greatest(updated_at, created_at)", ..Fields::TIMES };

/// Which files a list shows. `None` restricts nothing.
pub(super) struct Filter {
    pub selection: Selection,
    pub kind: Option<&'static str>,
    pub source: Option<Uuid>,
}

/// A page, newest first unless `filter` has another order.
pub(super) async fn list(
    connection: &mut PgConnection,
    account: AccountId,
    filter: &Filter,
    page: Page,
) -> Result<(Vec<Record>, PageMeta), Error> {
    let mut list = List::new(account, "work.file", columns!(), Total::Counted(LIST));
    list.is_null("deleted_at").only_counted(KIND_COLUMN, filter.kind).only("source_id", filter.source);
    list.select(&filter.selection, &FIELDS)?;
    Ok(list.fetch(connection, page).await?)
}

pub(super) async fn find(
    connection: &mut PgConnection,
    account: AccountId,
    id: Uuid,
) -> Result<Option<Record>, Error> {
    let sql = concat!(
        "select ",
        columns!(),
        " from work.file where account_id = $1 and id = $2 and deleted_at is null"
    );
    Ok(sqlx::query_as(sql).bind(account).bind(id).fetch_optional(connection).await?)
}

/// Stores a file. `false` when it was stored before, even if it was deleted since, when another row has its bytes, or when it
/// was generated and there is a newer version of it.
pub(super) async fn insert(
    connection: &mut PgConnection,
    account: AccountId,
    record: &Record,
) -> Result<bool, Error> {
    let inserted = sqlx::query(
        "insert into work.file (account_id, id, name, content_type, size, key, source_type, source_id, \
         source_version, created_at, updated_at, version) \
         select $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12 where not exists (\
         select from work.file newer where newer.account_id = $1 and newer.source_type = $7 and newer.source_id = $8 \
         and newer.source_version > $9 and newer.deleted_at is null) on conflict do nothing",
    )
    .bind(account)
    .bind(record.id)
    .bind(&record.name)
    .bind(&record.content_type)
    .bind(record.size)
    .bind(&record.key)
    .bind(&record.source.kind)
    .bind(record.source.id)
    .bind(record.source.version)
    .bind(record.created_at)
    .bind(record.updated_at)
    .bind(record.version)
    .execute(connection)
    .await?;
    Ok(inserted.rows_affected() > 0)
}

/// The generated files of a source. Locks them: of two transactions that replace the same files, the second waits.
pub(super) async fn list_generated_locked(
    connection: &mut PgConnection,
    account: AccountId,
    source: &Source,
) -> Result<Vec<Record>, Error> {
    let sql = concat!(
        "select ",
        columns!(),
        " from work.file where account_id = $1 and source_type = $2 and source_id = $3 \
         and source_version is not null and deleted_at is null order by id for update"
    );
    Ok(sqlx::query_as(sql).bind(account).bind(&source.kind).bind(source.id).fetch_all(connection).await?)
}

/// Deletes a file: erases its name and keeps its key, so that its bytes can be removed. Returns the file.
pub(super) async fn delete(
    connection: &mut PgConnection,
    account: AccountId,
    id: Uuid,
    now: DateTime<Utc>,
) -> Result<Option<Record>, Error> {
    let sql = concat!(
        "update work.file set deleted_at = $3, name = '' where account_id = $1 and id = $2 and deleted_at is null \
         returning ",
        columns!()
    );
    Ok(sqlx::query_as(sql).bind(account).bind(id).bind(now).fetch_optional(connection).await?)
}

/// A deleted file whose bytes were not removed yet.
#[derive(chassis_derive::FromRow)]
pub(super) struct PendingRemoval {
    pub id: Uuid,
    pub key: String,
    /// Whether a file that is not deleted has the same bytes.
    pub is_shared: bool,
}

/// The deleted files whose bytes were not removed yet, the oldest deletion first.
pub(super) async fn list_pending_removals(
    connection: &mut PgConnection,
    account: AccountId,
    limit: i64,
) -> Result<Vec<PendingRemoval>, Error> {
    let sql = "select id, key, exists (select from work.file other where other.account_id = $1 \
               and other.key = deleted.key and other.deleted_at is null) as is_shared from work.file deleted \
               where account_id = $1 and deleted_at is not null and removed_at is null order by deleted_at limit $2";
    Ok(sqlx::query_as(sql).bind(account).bind(limit).fetch_all(connection).await?)
}

/// Stores that the bytes of deleted files were removed.
pub(super) async fn mark_removed(
    connection: &mut PgConnection,
    account: AccountId,
    ids: &[Uuid],
    now: DateTime<Utc>,
) -> Result<(), Error> {
    let sql = "update work.file set removed_at = $3 where account_id = $1 and id = any($2) and deleted_at is not null";
    sqlx::query(sql).bind(account).bind(ids).bind(now).execute(connection).await?;
    Ok(())
}
