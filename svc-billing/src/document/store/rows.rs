//! The rows of documents.

use chassis_base::AccountId;
use chassis_data::row::Columns;
use render::printed::Category;
use rust_decimal::Decimal;
use sqlx::postgres::PgRow;
use sqlx::{FromRow, PgConnection};
use uuid::Uuid;

use crate::document::StoredRow;
use crate::document::rules::amounts::Row;
use crate::error::Error;
use chassis_base::stored::{Undecodable, decode};

/// In the order in which rows are read.
macro_rules! row_columns {
    () => {
        "name, description, quantity, unit, unit_price, vat_rate, vat_code, category, credited_by"
    };
}
pub(super) use row_columns;

/// In the order of `row_columns!`.
impl FromRow<'_, PgRow> for StoredRow {
    fn from_row(row: &PgRow) -> Result<Self, sqlx::Error> {
        let mut columns = Columns::of(row);
        let row = Row {
            name: columns.take()?,
            description: columns.take()?,
            quantity: columns.take::<Decimal>()?.normalize(),
            unit: columns.take()?,
            unit_price: columns.take::<Decimal>()?.normalize(),
            vat_rate: columns.take::<Decimal>()?.normalize(),
            vat_code: columns.take()?,
            category: category(columns.take()?)?,
        };
        Ok(Self { row, credited_by: columns.take()? })
    }
}

fn category(code: &str) -> Result<Category, Undecodable> {
    decode("document_row.category", code, Category::from_code)
}

/// Reads rows of which each column comes as an array, in the order of `row_columns!`. Citus cannot pass arrays of records
/// between nodes, so there is one array for each column.
pub(crate) fn packed_rows(columns: &mut Columns<'_>) -> Result<Vec<StoredRow>, sqlx::Error> {
    let mut names = array::<String>(columns)?;
    let mut descriptions = array::<String>(columns)?;
    let mut quantities = array::<Decimal>(columns)?;
    let mut units = array::<String>(columns)?;
    let mut prices = array::<Decimal>(columns)?;
    let mut vat_rates = array::<Decimal>(columns)?;
    let mut vat_codes = array::<String>(columns)?;
    let mut categories = array::<String>(columns)?;
    let mut credits = array::<Option<Uuid>>(columns)?;
    // The arrays are of one length, so the first that ends ends them all.
    let next = || {
        let row = Row {
            name: names.next()?,
            description: descriptions.next()?,
            quantity: quantities.next()?.normalize(),
            unit: units.next()?,
            unit_price: prices.next()?.normalize(),
            vat_rate: vat_rates.next()?.normalize(),
            vat_code: vat_codes.next()?,
            category: match category(&categories.next()?) {
                Ok(category) => category,
                Err(error) => return Some(Err(error.into())),
            },
        };
        Some(Ok(StoredRow { row, credited_by: credits.next()? }))
    };
    std::iter::from_fn(next).collect()
}

/// The next column, an array. `array_agg` over no rows is null, which is read as an empty one.
pub(super) fn array<'r, T>(columns: &mut Columns<'r>) -> Result<std::vec::IntoIter<T>, sqlx::Error>
where
    Option<Vec<T>>: sqlx::Decode<'r, sqlx::Postgres>,
{
    Ok(columns.take::<Option<Vec<T>>>()?.unwrap_or_default().into_iter())
}

pub(crate) async fn list_rows(
    connection: &mut PgConnection,
    account: AccountId,
    id: Uuid,
) -> Result<Vec<StoredRow>, Error> {
    let sql = concat!(
        "select ",
        row_columns!(),
        " from billing.document_row where account_id = $1 and document_id = $2 order by position"
    );
    Ok(sqlx::query_as(sql).bind(account).bind(id).fetch_all(connection).await?)
}

/// Marks rows of an invoice as credited.
pub(crate) async fn credit_rows(
    connection: &mut PgConnection,
    account: AccountId,
    invoice: Uuid,
    positions: &[i32],
    credit: Uuid,
) -> Result<(), Error> {
    let sql = "update billing.document_row set credited_by = $4 \
               where account_id = $1 and document_id = $2 and position = any($3)";
    sqlx::query(sql).bind(account).bind(invoice).bind(positions).bind(credit).execute(connection).await?;
    Ok(())
}
