//! Lists of subscriptions.

use chassis_base::AccountId;
use chassis_base::paging::Page;
use chassis_data::list::{Fields, List, Selection, Total};
use chrono::NaiveDate;
use proto::api::PageMeta;
use sqlx::PgConnection;
use uuid::Uuid;

use super::columns;
use crate::error::Error;
use crate::subscription::rules::calendar::Term;
use crate::subscription::rules::plan::Status;
use crate::subscription::{LIST, Record, STATUS_COLUMN, TERM_COLUMN};

const FIELDS: Fields = Fields::with_sorts(&[
    ("number", "number"),
    ("title", "title"),
    ("start_date", "start_date"),
    ("next_generate", "next_generate"),
    ("status", "status"),
]);

/// Restricts a list of subscriptions; empty texts and `None` restrict nothing.
#[derive(Debug, Default)]
pub(crate) struct Filter {
    pub selection: Selection,
    pub client: Option<Uuid>,
    pub number: String,
    pub status: Option<Status>,
    pub term: Option<Term>,
    pub start_from: Option<NaiveDate>,
    pub start_to: Option<NaiveDate>,
    pub search: String,
}

/// A page of subscriptions, newest first by default.
pub(crate) async fn list(
    connection: &mut PgConnection,
    account: AccountId,
    filter: &Filter,
    page: Page,
) -> Result<(Vec<Record>, PageMeta), Error> {
    let mut list = List::new(account, "billing.subscription", columns!(), Total::Counted(LIST));
    list.only("client_id", filter.client);
    list.only_counted(STATUS_COLUMN, filter.status.map(Status::name));
    list.only_counted(TERM_COLUMN, filter.term.map(Term::name));
    list.only("number", Some(&filter.number).filter(|number| !number.is_empty()));
    list.between("start_date", filter.start_from, filter.start_to);
    list.search("search_text", &filter.search);
    list.select(&filter.selection, &FIELDS)?;
    Ok(list.fetch(connection, page).await?)
}
