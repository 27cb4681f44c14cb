//! The SQL of products, and nothing else.

use chassis_base::AccountId;
use chassis_base::paging::Page;
use chassis_data::list::{Fields, List, Selection, Total};
use chassis_data::row::Columns;
use proto::api::PageMeta;
use proto::billing::ProductInput;
use rust_decimal::Decimal;
use sqlx::postgres::{PgArguments, PgRow};
use sqlx::query::Query;
use sqlx::{FromRow, PgConnection, Postgres};
use uuid::Uuid;

use super::{ACTIVE_COLUMN, LIST, Record, rules};
use crate::error::Error;

macro_rules! columns {
    () => {
        "id, name, code, price, vat_rate, unit, active, created_at, updated_at, version"
    };
}

/// In the order of `columns!`.
impl FromRow<'_, PgRow> for Record {
    fn from_row(row: &PgRow) -> Result<Self, sqlx::Error> {
        let mut columns = Columns::of(row);
        Ok(Self {
            id: columns.take()?,
            values: ProductInput {
                name: columns.take()?,
                code: columns.take()?,
                price: columns
                    .take::<Option<Decimal>>()?
                    .map(|price| price.normalize().to_string())
                    .unwrap_or_default(),
                vat_rate: columns.take()?,
                unit: columns.take()?,
                active: Some(columns.take()?),
            },
            created_at: columns.take()?,
            updated_at: columns.take()?,
            version: columns.take()?,
        })
    }
}

/// Which products a list shows. `None` and empty texts restrict nothing.
pub(crate) struct Filter<'a> {
    pub selection: Selection,
    pub code: &'a str,
    pub active: Option<bool>,
    pub search: &'a str,
}

/// A page, newest first unless `filter` has another order.
pub(crate) async fn list(
    connection: &mut PgConnection,
    account: AccountId,
    filter: &Filter<'_>,
    page: Page,
) -> Result<(Vec<Record>, PageMeta), Error> {
    let mut list = List::new(account, "billing.product", columns!(), Total::Counted(LIST));
    match filter.active {
        Some(true) => list.only_counted_where(ACTIVE_COLUMN, "true", "active"),
        Some(false) => list.only_counted_where(ACTIVE_COLUMN, "false", "not active"),
        None => &mut list,
    };
    if !filter.code.is_empty() {
        list.look_up(|values| format!("code = {} and code <> ''", values.bind(filter.code)));
    }
    list.search("search_text", filter.search);
    list.select(&filter.selection, &Fields::TIMES)?;
    Ok(list.fetch(connection, page).await?)
}

pub(crate) async fn find(
    connection: &mut PgConnection,
    account: AccountId,
    id: Uuid,
) -> Result<Option<Record>, Error> {
    let sql = concat!("select ", columns!(), " from billing.product where account_id = $1 and id = $2");
    Ok(sqlx::query_as(sql).bind(account).bind(id).fetch_optional(connection).await?)
}

/// Finds a product and locks it until the transaction ends, because it is about to be changed.
pub(crate) async fn find_locked(
    connection: &mut PgConnection,
    account: AccountId,
    id: Uuid,
) -> Result<Option<Record>, Error> {
    let sql =
        concat!("select ", columns!(), " from billing.product where account_id = $1 and id = $2 for update");
    Ok(sqlx::query_as(sql).bind(account).bind(id).fetch_optional(connection).await?)
}

/// The product that has this code.
pub(crate) async fn find_holder(
    connection: &mut PgConnection,
    account: AccountId,
    code: &str,
) -> Result<Option<Uuid>, Error> {
    let sql = "select id from billing.product where account_id = $1 and code = $2 and code <> ''";
    Ok(sqlx::query_scalar(sql).bind(account).bind(code).fetch_optional(connection).await?)
}

/// Stores a new product. `false` when another product has its code.
pub(crate) async fn insert(
    connection: &mut PgConnection,
    account: AccountId,
    record: &Record,
) -> Result<bool, Error> {
    let sql = "insert into billing.product \
               (account_id, id, name, code, price, vat_rate, unit, active, search_text, created_at, updated_at, \
               version) values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $10, $11) \
               on conflict (account_id, code) where code <> '' do nothing";
    let inserted = bind(sqlx::query(sql), account, record).execute(connection).await?;
    Ok(inserted.rows_affected() > 0)
}

pub(crate) async fn update(
    connection: &mut PgConnection,
    account: AccountId,
    record: &Record,
) -> Result<(), Error> {
    let sql = "update billing.product set name = $3, code = $4, price = $5, vat_rate = $6, unit = $7, active = $8, \
               search_text = $9, updated_at = $10, version = $11 where account_id = $1 and id = $2";
    bind(sqlx::query(sql), account, record).execute(connection).await?;
    Ok(())
}

/// Binds $1 to $11, which insert and update share.
fn bind<'q>(
    query: Query<'q, Postgres, PgArguments>,
    account: AccountId,
    record: &'q Record,
) -> Query<'q, Postgres, PgArguments> {
    let values = &record.values;
    query
        .bind(account)
        .bind(record.id)
        .bind(&values.name)
        .bind(&values.code)
        // Only an empty text is not a number here; it is stored as null.
        .bind(values.price.parse::<Decimal>().ok())
        .bind(&values.vat_rate)
        .bind(&values.unit)
        .bind(record.is_active())
        .bind(rules::search_text(values))
        .bind(record.updated_at)
        .bind(record.version)
}

/// Removes a product and returns it.
pub(crate) async fn delete(
    connection: &mut PgConnection,
    account: AccountId,
    id: Uuid,
) -> Result<Option<Record>, Error> {
    let sql = concat!("delete from billing.product where account_id = $1 and id = $2 returning ", columns!());
    Ok(sqlx::query_as(sql).bind(account).bind(id).fetch_optional(connection).await?)
}
