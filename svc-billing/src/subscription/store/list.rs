//! Lists of subscriptions.

use chassis_base::AccountId;
use chassis_base::paging::Page;
use chassis_data::list::{List, Total};
use chrono::{DateTime, NaiveDate, Utc};
use proto::Faults;
use proto::api::PageMeta;
use sqlx::PgConnection;
use uuid::Uuid;

use super::columns;
use crate::error::Error;
use crate::subscription::rules::plan::Status;
use crate::subscription::{LIST, Record};

/// The sort keys: the name in the contract and the column.
const SORTS: [(&str, &str); 6] = [
    ("created_at", "created_at"),
    ("number", "number"),
    ("title", "title"),
    ("start_date", "start_date"),
    ("next_generate", "next_generate"),
    ("status", "status"),
];

/// Restricts a list of subscriptions; empty texts and `None` restrict nothing.
#[derive(Debug, Default)]
pub(crate) struct Filter {
    pub ids: Option<Vec<Uuid>>,
    pub client: Option<Uuid>,
    pub number: String,
    pub status: Option<Status>,
    pub start_from: Option<NaiveDate>,
    pub start_to: Option<NaiveDate>,
    pub created_from: Option<DateTime<Utc>>,
    pub created_to: Option<DateTime<Utc>>,
    pub search: String,
    pub sort: String,
    pub order: String,
}

/// A page of subscriptions, newest first by default.
pub(crate) async fn list(
    connection: &mut PgConnection,
    account: AccountId,
    filter: &Filter,
    page: Page,
) -> Result<(Vec<Record>, PageMeta), Error> {
    let mut list = List::new(account, "billing.subscription", columns!(), Total::Counted(LIST));
    if let Some(ids) = &filter.ids {
        list.any("id", ids);
    }
    list.only("client_id", filter.client);
    list.only("status", filter.status.map(Status::name));
    list.only("number", Some(&filter.number).filter(|number| !number.is_empty()));
    list.between("start_date", filter.start_from, filter.start_to);
    list.between("created_at", filter.created_from, filter.created_to);
    list.search("search_text", &filter.search);
    let mut faults = Faults::default();
    list.sort(&SORTS, &filter.sort, &filter.order, &mut faults);
    if !faults.is_empty() {
        return Err(chassis_base::Error::from(faults).into());
    }
    Ok(list.fetch(connection, page).await?)
}
