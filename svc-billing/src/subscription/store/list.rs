//! Pages of subscriptions.

use chassis::AccountId;
use chassis::list::{List, Total};
use chassis::paging::Page;
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

impl Wanted {
    fn is_everything(&self) -> bool {
        let Self { ids, client, number, status, starts, created, search, sort: _, order: _ } = self;
        ids.is_none()
            && client.is_none()
            && status.is_none()
            && number.is_empty()
            && search.is_empty()
            && *starts == (None, None)
            && *created == (None, None)
    }
}

/// A page, newest first unless asked otherwise.
pub async fn list(
    connection: &mut PgConnection,
    account: AccountId,
    wanted: &Wanted,
    page: Page,
) -> Result<(Vec<Record>, PageMeta), Error> {
    let total = if wanted.is_everything() { Total::Counted(LIST) } else { Total::Matching };
    let mut list = List::new(account, "billing.subscription", columns!(), total);
    if let Some(ids) = &wanted.ids {
        list.any("id", ids);
    }
    if let Some(client) = wanted.client {
        list.equals("client_id", client);
    }
    if let Some(status) = wanted.status {
        list.equals("status", status_name(status));
    }
    if !wanted.number.is_empty() {
        list.equals("number", &wanted.number);
    }
    list.between("start_date", wanted.starts.0, wanted.starts.1);
    list.between("created_at", wanted.created.0, wanted.created.1);
    if !wanted.search.is_empty() {
        list.search("search_text", &wanted.search);
    }
    let mut faults = Faults::default();
    list.sort(&SORTS, &wanted.sort, &wanted.order, &mut faults);
    if !faults.is_empty() {
        return Err(chassis::Error::from(faults).into());
    }
    Ok(list.fetch(connection, page).await?)
}
