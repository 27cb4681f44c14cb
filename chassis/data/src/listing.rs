//! Which lists show a record, and where in them. A service says it in one place for each kind of record; what a write adds to
//! the counters of the lists follows from the listings of the record before and after it.

use chrono::{DateTime, Utc};
use uuid::Uuid;

/// The lists that show a record, and its place in them: they are ordered by the time of creation and the id.
#[derive(Clone, Debug)]
pub struct Listing {
    pub(crate) created_at: DateTime<Utc>,
    pub(crate) id: Uuid,
    pub(crate) lists: Vec<ListName>,
}

#[derive(Clone, Debug)]
pub(crate) struct ListName {
    pub name: String,
    /// Whether the release before reads its counters by day.
    pub by_day: bool,
}

impl Listing {
    pub fn new(created_at: DateTime<Utc>, id: Uuid) -> Self {
        Self { created_at, id, lists: Vec::new() }
    }

    /// In the list with this counter, which the release before keeps as well.
    #[must_use]
    pub fn of(mut self, list: &str) -> Self {
        self.lists.push(ListName { name: list.to_owned(), by_day: true });
        self
    }

    /// In the list with this counter, which had none when its first records were stored.
    #[must_use]
    pub fn of_prepared(mut self, list: &str) -> Self {
        self.lists.push(ListName { name: list.to_owned(), by_day: false });
        self
    }

    /// In the list when it is filtered by this value of a column, see [`List::only_counted`](crate::list::List::only_counted)
    /// and [`List::only_counted_where`](crate::list::List::only_counted_where).
    #[must_use]
    pub fn with(mut self, list: &str, column: &str, value: &str) -> Self {
        self.lists.push(ListName { name: filtered(list, column, value), by_day: false });
        self
    }
}

/// The name of the counter of a list that is filtered.
pub(crate) fn filtered(list: &str, column: &str, value: &str) -> String {
    format!("{list}/{column}/{value}")
}
