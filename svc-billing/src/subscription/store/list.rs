//! Pages of subscriptions.

use chassis_base::AccountId;
use chassis_base::paging::Page;
use chassis_data::list::{List, Total};
use chrono::{DateTime, NaiveDate, Utc};
use proto::Faults;
use proto::api::PageMeta;
use sqlx::PgConnection;
use uuid::Uuid;

use super::columns;
use super::read::status_name;
use crate::Error;
use crate::subscription::rules::plan::Status;
use crate::subscription::{LIST, Record};

/// What can be sorted by, as the contract names it and as the table does.
const SORTS: [(&str, &str); 6] = [
    ("created_at", "created_at"),
    ("number", "number"),
    ("title", "title"),
    ("start_date", "start_date"),
    ("next_generate", "next_generate"),
    ("status", "status"),
];

/// Which subscriptions are asked for; empty texts and `None` ask for nothing.
#[derive(Debug, Default)]
pub struct Wanted {
    pub ids: Option<Vec<Uuid>>,
    pub client: Option<Uuid>,
    pub number: String,
    pub status: Option<Status>,
    pub starts: (Option<NaiveDate>, Option<NaiveDate>),
    pub created: (Option<DateTime<Utc>>, Option<DateTime<Utc>>),
    pub search: String,
    pub sort: String,
    pub order: String,
}

/// A page, newest first unless asked otherwise.
pub async fn list(
    connection: &mut PgConnection,
    account: AccountId,
    wanted: &Wanted,
    page: Page,
) -> Result<(Vec<Record>, PageMeta), Error> {
    let mut list = List::new(account, "billing.subscription", columns!(), Total::Counted(LIST));
    if let Some(ids) = &wanted.ids {
        list.any("id", ids);
    }
    list.only("client_id", wanted.client);
    list.only("status", wanted.status.map(status_name));
    list.only("number", Some(&wanted.number).filter(|number| !number.is_empty()));
    list.between("start_date", wanted.starts.0, wanted.starts.1);
    list.between("created_at", wanted.created.0, wanted.created.1);
    list.search("search_text", &wanted.search);
    let mut faults = Faults::default();
    list.sort(&SORTS, &wanted.sort, &wanted.order, &mut faults);
    if !faults.is_empty() {
        return Err(chassis_base::Error::from(faults).into());
    }
    Ok(list.fetch(connection, page).await?)
}
