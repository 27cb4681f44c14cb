//! The SQL of notes.

use chassis_base::AccountId;
use chassis_base::paging::Page;
use chassis_data::list::{Fields, List, Selection, Total};
use chassis_data::row::Columns;
use chrono::{DateTime, Utc};
use proto::api::PageMeta;
use sqlx::postgres::PgRow;
use sqlx::{FromRow, PgConnection};
use uuid::Uuid;

use super::{Deleted, LIST, Record, Related};
use crate::error::Error;

macro_rules! columns {
    () => {
        "id, version, body, client_id, invoice_id, project_id, deal_id, created_at, updated_at"
    };
}

/// Reads the columns in the order of `columns!`.
impl FromRow<'_, PgRow> for Record {
    fn from_row(row: &PgRow) -> Result<Self, sqlx::Error> {
        let mut columns = Columns::of(row);
        Ok(Self {
            id: columns.take()?,
            version: columns.take()?,
            body: columns.take()?,
            related: Related {
                client: columns.take()?,
                invoice: columns.take()?,
                project: columns.take()?,
                deal: columns.take()?,
            },
            created_at: columns.take()?,
            updated_at: columns.take()?,
        })
    }
}

/// A page of the notes about every record that `related` names, newest first unless `selection` has another order.
pub(super) async fn list(
    connection: &mut PgConnection,
    account: AccountId,
    selection: &Selection,
    related: Related,
    page: Page,
) -> Result<(Vec<Record>, PageMeta), Error> {
    let mut list = List::new(account, "work.note", columns!(), Total::Counted(LIST));
    for (column, id) in [
        ("client_id", related.client),
        ("invoice_id", related.invoice),
        ("project_id", related.project),
        ("deal_id", related.deal),
    ] {
        list.only(column, id);
    }
    list.select(selection, &Fields::TIMES)?;
    Ok(list.fetch(connection, page).await?)
}

pub(super) async fn insert(
    connection: &mut PgConnection,
    account: AccountId,
    record: &Record,
) -> Result<(), Error> {
    let related = record.related;
    sqlx::query(
        "insert into work.note (account_id, id, body, client_id, invoice_id, project_id, deal_id, created_at, \
         updated_at, version) values ($1, $2, $3, $4, $5, $6, $7, $8, $8, $9)",
    )
    .bind(account)
    .bind(record.id)
    .bind(&record.body)
    .bind(related.client)
    .bind(related.invoice)
    .bind(related.project)
    .bind(related.deal)
    .bind(record.created_at)
    .bind(record.version)
    .execute(connection)
    .await?;
    Ok(())
}

pub(super) async fn find(
    connection: &mut PgConnection,
    account: AccountId,
    id: Uuid,
) -> Result<Option<Record>, Error> {
    let sql = concat!("select ", columns!(), " from work.note where account_id = $1 and id = $2");
    Ok(sqlx::query_as(sql).bind(account).bind(id).fetch_optional(connection).await?)
}

/// Replaces the text of a note. Returns the changed note; `None` when it has that text already or does not exist.
pub(super) async fn update(
    connection: &mut PgConnection,
    account: AccountId,
    id: Uuid,
    body: &str,
    now: DateTime<Utc>,
) -> Result<Option<Record>, Error> {
    let sql = concat!(
        "update work.note set body = $3, version = version + 1, updated_at = $4 \
         where account_id = $1 and id = $2 and body <> $3 returning ",
        columns!()
    );
    Ok(sqlx::query_as(sql).bind(account).bind(id).bind(body).bind(now).fetch_optional(connection).await?)
}

/// Removes the references of notes to records that were deleted. Returns the changed notes.
pub(super) async fn clear_references(
    connection: &mut PgConnection,
    account: AccountId,
    deleted: &Deleted<'_>,
    now: DateTime<Utc>,
) -> Result<Vec<Record>, Error> {
    let sql = concat!(
        "update work.note set deal_id = case when deal_id = any($2) then null else deal_id end, \
         invoice_id = case when invoice_id = any($3) then null else invoice_id end, \
         version = version + 1, updated_at = $4 \
         where account_id = $1 and (deal_id = any($2) or invoice_id = any($3)) returning ",
        columns!()
    );
    let query = sqlx::query_as(sql).bind(account).bind(deleted.deals).bind(deleted.invoices).bind(now);
    Ok(query.fetch_all(connection).await?)
}

/// Removes the notes about these clients. Returns their ids, and when they were created.
pub(super) async fn delete_of_clients(
    connection: &mut PgConnection,
    account: AccountId,
    clients: &[Uuid],
) -> Result<Vec<(Uuid, DateTime<Utc>)>, Error> {
    let sql = "delete from work.note where account_id = $1 and client_id = any($2) returning id, created_at";
    Ok(sqlx::query_as(sql).bind(account).bind(clients).fetch_all(connection).await?)
}

/// Removes a note. Returns when it was created.
pub(super) async fn delete(
    connection: &mut PgConnection,
    account: AccountId,
    id: Uuid,
) -> Result<Option<DateTime<Utc>>, Error> {
    let sql = "delete from work.note where account_id = $1 and id = $2 returning created_at";
    Ok(sqlx::query_scalar(sql).bind(account).bind(id).fetch_optional(connection).await?)
}
