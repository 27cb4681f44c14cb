//! Pages of documents.

use chassis_base::AccountId;
use chassis_base::paging::Page;
use chassis_base::time::timestamp;
use chassis_data::list::{List, Total};
use chassis_data::row::Columns;
use chrono::{DateTime, NaiveDate, Utc};
use proto::Faults;
use proto::api::PageMeta;
use proto::billing::DocumentItem;
use rust_decimal::Decimal;
use sqlx::postgres::PgRow;
use sqlx::{FromRow, PgConnection};
use uuid::Uuid;

use crate::Error;
use crate::document::Kind;
use crate::document::rules::amounts::two_places;

const TABLE: &str = "billing.document";
const COLUMNS: &str = "id, number, title, invoice_date, due_date, created_at, total_excl, vat_rate, vat_amount, \
                       total_incl, client_id, payment_status, paid_at, sent_at, project_number, credits, external_id";

/// What can be sorted by, as the contract names it and as the table does.
const SORTS: [(&str, &str); 7] = [
    ("created_at", "created_at"),
    ("invoice_date", "invoice_date"),
    ("due_date", "due_date"),
    ("number", "number"),
    ("title", "title"),
    ("total_incl_vat", "total_incl"),
    ("payment_status", "payment_status"),
];

/// Which documents are asked for; empty texts and `None` ask for nothing.
#[derive(Debug, Default)]
pub struct Wanted {
    pub ids: Option<Vec<Uuid>>,
    pub client: Option<Uuid>,
    pub subscription: Option<Uuid>,
    pub number: String,
    pub dates: (Option<NaiveDate>, Option<NaiveDate>),
    pub due_dates: (Option<NaiveDate>, Option<NaiveDate>),
    pub created: (Option<DateTime<Utc>>, Option<DateTime<Utc>>),
    pub search: String,
    pub payment_status: String,
    pub sort: String,
    pub order: String,
}

/// A document as lists show it. Read straight into the message that is sent.
pub struct Item(pub DocumentItem);

impl FromRow<'_, PgRow> for Item {
    fn from_row(row: &PgRow) -> Result<Self, sqlx::Error> {
        let mut columns = Columns::of(row);
        let id: Uuid = columns.take()?;
        let (number, title) = (columns.take()?, columns.take()?);
        let (invoice_date, due_date): (NaiveDate, NaiveDate) = (columns.take()?, columns.take()?);
        let created_at: DateTime<Utc> = columns.take()?;
        let total_excl = two_places(columns.take()?).to_string();
        Ok(Self(DocumentItem {
            id: id.to_string(),
            number,
            title,
            invoice_date: invoice_date.to_string(),
            due_date: due_date.to_string(),
            created_at: Some(timestamp(created_at)),
            subtotal: total_excl.clone(),
            vat_rate: columns.take::<Decimal>()?.normalize().to_string(),
            vat_amount: two_places(columns.take()?).to_string(),
            total_excl_vat: total_excl,
            total_incl_vat: two_places(columns.take()?).to_string(),
            client_id: columns.take::<Option<Uuid>>()?.map(|id| id.to_string()).unwrap_or_default(),
            payment_status: columns.take()?,
            paid_at: columns.take::<Option<DateTime<Utc>>>()?.map(timestamp),
            sent_at: columns.take::<Option<DateTime<Utc>>>()?.map(timestamp),
            project_number: columns.take()?,
            is_credit: columns.take::<Option<Uuid>>()?.is_some(),
            external_id: columns.take::<Option<String>>()?.filter(|text| !text.is_empty()),
        }))
    }
}

/// A page, newest first unless asked otherwise.
pub async fn list(
    connection: &mut PgConnection,
    account: AccountId,
    kind: Kind,
    wanted: &Wanted,
    page: Page,
) -> Result<(Vec<Item>, PageMeta), Error> {
    let mut list = List::new(account, TABLE, COLUMNS, Total::Counted(kind.name()));
    list.equals("kind", kind.name());
    if let Some(ids) = &wanted.ids {
        list.any("id", ids);
    }
    list.only("client_id", wanted.client);
    list.only("subscription_id", wanted.subscription);
    for (column, text) in [("number", &wanted.number), ("payment_status", &wanted.payment_status)] {
        list.only(column, Some(text).filter(|text| !text.is_empty()));
    }
    list.between("invoice_date", wanted.dates.0, wanted.dates.1);
    list.between("due_date", wanted.due_dates.0, wanted.due_dates.1);
    list.between("created_at", wanted.created.0, wanted.created.1);
    list.search("search_text", &wanted.search);
    let mut faults = Faults::default();
    list.sort(&SORTS, &wanted.sort, &wanted.order, &mut faults);
    if !faults.is_empty() {
        return Err(chassis_base::Error::from(faults).into());
    }
    Ok(list.fetch(connection, page).await?)
}
