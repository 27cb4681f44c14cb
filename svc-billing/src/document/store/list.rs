//! Pages of documents.

use chassis_base::AccountId;
use chassis_base::paging::Page;
use chassis_base::time::timestamp;
use chassis_data::list::{Fields, List, Selection, Total, Values};
use chassis_data::row::Columns;
use chrono::{DateTime, NaiveDate, Utc};
use proto::api::PageMeta;
use proto::billing::{DocumentItem, DocumentItemMeta};
use rust_decimal::Decimal;
use sqlx::postgres::PgRow;
use sqlx::{FromRow, PgConnection};
use uuid::Uuid;

use crate::document::rules::status::Status;
use crate::document::{DRAFT, FINAL, IS_CREDIT, IS_OPEN, Kind, MODE, STATUS_COLUMN};
use crate::error::Error;
use crate::money::two_places;

const TABLE: &str = "billing.document";
const COLUMNS: &str = "id, number, title, invoice_date, due_date, created_at, total_excl, vat_rate, vat_amount, \
                       total_incl, client_id, payment_status, paid_at, sent_at, project_number, credits, external_id, \
                       version, updated_at";

const FIELDS: Fields = Fields::with_sorts(&[
    ("invoice_date", "invoice_date"),
    ("due_date", "due_date"),
    ("number", "number"),
    ("title", "title"),
    ("total_incl_vat", "total_incl"),
    ("payment_status", "payment_status"),
]);

/// The condition of [`Record::is_owed`](crate::document::Record::is_owed).
macro_rules! owed {
    () => {
        "kind = 'invoice' and is_final and credits is null and open_amount > 0 \
         and payment_status in ('open', 'partially_paid', 'partially_credited')"
    };
}
pub(crate) use owed;

/// Which documents to list. Empty texts and `None` do not restrict the list.
#[derive(Debug, Default)]
pub(crate) struct Filter {
    pub selection: Selection,
    pub client: Option<Uuid>,
    pub subscription: Option<Uuid>,
    pub number: String,
    pub invoice_date: Range<NaiveDate>,
    pub due_date: Range<NaiveDate>,
    pub search: String,
    pub payment_status: String,
    pub external_id: String,
    pub is_open: Option<bool>,
    pub overdue: Option<Overdue>,
    pub amount: Range<Decimal>,
    pub is_final: Option<bool>,
    pub is_credit: Option<bool>,
    pub credits: Option<Uuid>,
}

/// Only what is overdue on a day, or only the rest.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Overdue {
    pub on: NaiveDate,
    pub is_wanted: bool,
}

/// Both ends included; an end that is `None` is open.
#[derive(Debug)]
pub(crate) struct Range<T> {
    pub from: Option<T>,
    pub to: Option<T>,
}

impl<T> Default for Range<T> {
    fn default() -> Self {
        Self { from: None, to: None }
    }
}

/// A document as lists show it. Read directly into the message that is sent: a page has hundreds of them.
pub(crate) struct Item(pub DocumentItem);

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
            meta: Some(DocumentItemMeta {
                version: columns.take()?,
                updated_at: Some(timestamp(columns.take()?)),
            }),
        }))
    }
}

/// A page of documents, newest first unless the filter sorts otherwise.
pub(crate) async fn list(
    connection: &mut PgConnection,
    account: AccountId,
    kind: Kind,
    filter: &Filter,
    page: Page,
) -> Result<(Vec<Item>, PageMeta), Error> {
    let mut list = List::new(account, TABLE, COLUMNS, Total::Counted(kind.name()));
    list.equals("kind", kind.name());
    list.only("client_id", filter.client);
    list.only("subscription_id", filter.subscription);
    list.only("number", Some(&filter.number).filter(|number| !number.is_empty()));
    let status = Some(filter.payment_status.as_str()).filter(|status| !status.is_empty());
    if status.is_some_and(|status| Status::from_text(status).is_custom()) {
        list.only(STATUS_COLUMN, status);
    } else {
        list.only_counted(STATUS_COLUMN, status);
    }
    match filter.is_final {
        Some(true) => list.only_counted_where(MODE, FINAL, "is_final"),
        Some(false) => list.only_counted_where(MODE, DRAFT, "not is_final"),
        None => &mut list,
    };
    if !filter.external_id.is_empty() {
        list.look_up(|values| {
            format!("external_id = {} and external_id <> ''", values.bind(&filter.external_id))
        });
    }
    only_owed(&mut list, filter);
    only_credits(&mut list, filter);
    list.between("total_incl", filter.amount.from, filter.amount.to);
    list.between("invoice_date", filter.invoice_date.from, filter.invoice_date.to);
    list.between("due_date", filter.due_date.from, filter.due_date.to);
    list.search("search_text", &filter.search);
    list.select(&filter.selection, &FIELDS)?;
    Ok(list.fetch(connection, page).await?)
}

/// Few documents are not paid, all others are most of a list: only those are counted.
fn only_owed(list: &mut List<'_>, filter: &Filter) {
    match filter.is_open {
        Some(true) => list.only_counted_where(IS_OPEN, "true", owed!()),
        Some(false) => list.matching(|_| concat!("not (", owed!(), ")").to_owned()),
        None => list,
    };
    if let Some(Overdue { on, is_wanted }) = filter.overdue {
        let condition =
            |values: &mut Values| format!(concat!(owed!(), " and due_date < {}"), values.bind(on));
        if is_wanted {
            list.look_up(condition);
        } else {
            list.matching(|values| format!("not ({})", condition(values)));
        }
    }
}

/// The same for credit invoices.
fn only_credits(list: &mut List<'_>, filter: &Filter) {
    match filter.is_credit {
        Some(true) => list.only_counted_where(IS_CREDIT, "true", "credits is not null"),
        Some(false) => list.matching(|_| "credits is null".to_owned()),
        None => list,
    };
    list.only("credits", filter.credits);
}
