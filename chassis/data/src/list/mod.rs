//! The list builder: filters, order and page of one table's rows, with an exact total, in one statement.
//!
//! Column and table names come from the code, values are always bound. The order ends with the id, so that the pages of
//! an unchanged list never repeat or skip a row.

mod search;
mod selection;

use std::fmt::Write;

use chassis_base::paging::{MAX_PAGE_BYTES, Page};
use chassis_base::{AccountId, Error};
use chrono::{DateTime, NaiveDate, Utc};
use futures::TryStreamExt;
use proto::api::PageMeta;
use sqlx::postgres::{PgArguments, PgRow};
use sqlx::{Arguments, AssertSqlSafe, Encode, FromRow, PgConnection, Postgres, Row, Type};

use crate::long_pages::PageBytes;
use crate::totals;
use search::{has_trigram, substring_pattern};

pub use selection::{Fields, Selection};

/// From this offset on, a page in the default order starts at a day that is found with the counters.
const DEEP: i64 = 2_000;
/// So many rows are sorted sooner than a page of them is found in an index that has all rows of a large account.
const FEW: i64 = 5_000;

/// How the total of a list is found.
pub enum Total<'a> {
    /// From the counters of this list, as long as no filter narrows it. [`List::equals`] and [`List::is_null`] must
    /// select exactly the rows that the counters count.
    Counted(&'a str),
    /// By counting the matching rows.
    Matching,
}

/// A list of one account's rows in one table. A filter that narrows it changes the total to [`Total::Matching`].
pub struct List<'a> {
    account: AccountId,
    table: &'static str,
    columns: &'static str,
    conditions: String,
    values: Values,
    order: Order,
    total: Total<'a>,
    /// Whether an index that covers the order also covers everything that restricts the list: its definition, and bounds
    /// of the column that it is ordered by.
    is_covered: bool,
    /// Whether it has bounds of a time that it is not ordered by.
    has_other_bounds: bool,
}

#[derive(Clone, Copy)]
struct Order {
    column: &'static str,
    descending: bool,
    /// Whether it is one of the two times that the tables of counted lists have an index for.
    is_indexed: bool,
}

/// The default order: newest first.
const NEWEST: Order = Order { column: "created_at", descending: true, is_indexed: true };

impl<'a> List<'a> {
    /// `columns` are the columns that `FromRow` of the row type reads; `id` must be among them.
    pub fn new(account: AccountId, table: &'static str, columns: &'static str, total: Total<'a>) -> Self {
        let mut values = Values::default();
        let conditions = format!("account_id = {}", values.bind(account));
        let is_covered = matches!(total, Total::Counted(_));
        let order = NEWEST;
        Self {
            account,
            table,
            columns,
            conditions,
            values,
            order,
            total,
            is_covered,
            has_other_bounds: false,
        }
    }

    /// Orders by another column than `created_at` when the request asks for no order. Call it before [`Self::select`].
    pub fn order_by(&mut self, column: &'static str, descending: bool) -> &mut Self {
        self.order = Order { column, descending, is_indexed: false };
        self
    }

    /// Selects rows whose `column` has this value, as part of the list's definition. Does not narrow the list.
    pub fn equals<'q>(
        &mut self,
        column: &'static str,
        value: impl Encode<'q, Postgres> + Type<Postgres>,
    ) -> &mut Self {
        self.compare(column, "=", value)
    }

    /// Narrows the list to rows whose `column` has this value, if a value is given.
    pub fn only<'q, V>(&mut self, column: &'static str, value: Option<V>) -> &mut Self
    where
        V: Encode<'q, Postgres> + Type<Postgres>,
    {
        match value {
            Some(value) => self.narrow().compare(column, "=", value),
            None => self,
        }
    }

    /// Narrows the list to rows whose `column` has one of these ids.
    pub fn any(&mut self, column: &'static str, ids: &[uuid::Uuid]) -> &mut Self {
        self.narrow();
        let value = self.values.bind(ids);
        // Writing to a String cannot fail.
        let _ = write!(self.conditions, " and {column} = any({value})");
        self
    }

    /// Selects rows whose `column` is null, as part of the list's definition. Does not narrow the list.
    pub fn is_null(&mut self, column: &'static str) -> &mut Self {
        // Writing to a String cannot fail.
        let _ = write!(self.conditions, " and {column} is null");
        self
    }

    /// Narrows the list to rows whose `column`, which holds lower-case text, contains the term. Case does not matter.
    pub fn contains(&mut self, column: &'static str, term: &str) -> &mut Self {
        self.narrow().compare(column, "like", substring_pattern(term))
    }

    /// Narrows the list to rows whose `column` contains a search term; an empty term has no effect. The column holds
    /// lower-case text and has a trigram index.
    pub fn search(&mut self, column: &'static str, term: &str) -> &mut Self {
        if term.is_empty() {
            return self;
        }
        let pattern = substring_pattern(term);
        if has_trigram(term) {
            return self.narrow().compare(column, "like", pattern);
        }
        // For a shorter term Postgres would scan the whole index, which takes longer than reading the account's rows.
        // An expression that is not indexed keeps the planner from using it.
        self.narrow().compare(column, "|| '' like", pattern)
    }

    /// Narrows the list to rows from `from` to `to`, inclusive, as far as they are given.
    pub fn between<'q, V>(&mut self, column: &'static str, from: Option<V>, to: Option<V>) -> &mut Self
    where
        V: Encode<'q, Postgres> + Type<Postgres>,
    {
        for (operator, bound) in [(">=", from), ("<=", to)] {
            if let Some(bound) = bound {
                self.narrow().compare(column, operator, bound);
            }
        }
        self
    }

    /// Narrows the list by an SQL condition; `condition` binds its values and returns its text.
    pub fn matching(&mut self, condition: impl FnOnce(&mut Values) -> String) -> &mut Self {
        let condition = condition(&mut self.values);
        // Writing to a String cannot fail.
        let _ = write!(self.conditions, " and ({condition})");
        self.narrow()
    }

    fn narrow(&mut self) -> &mut Self {
        self.total = Total::Matching;
        self.is_covered = false;
        self
    }

    fn compare<'q>(
        &mut self,
        column: &'static str,
        operator: &'static str,
        value: impl Encode<'q, Postgres> + Type<Postgres>,
    ) -> &mut Self {
        let value = self.values.bind(value);
        // Writing to a String cannot fail.
        let _ = write!(self.conditions, " and {column} {operator} {value}");
        self
    }

    /// Fetches a page, and cuts it where its entries become too long for one response. Takes one round trip; a page
    /// deep in a counted list takes a second one, to find where it starts.
    pub async fn fetch<R>(
        mut self,
        connection: &mut PgConnection,
        page: Page,
    ) -> Result<(Vec<R>, PageMeta), Error>
    where
        R: for<'r> FromRow<'r, PgRow> + Send + Unpin,
    {
        let mut offset = page.offset();
        if offset >= DEEP
            && let Some(list) = self.counted_newest()
            && let Some(start) = totals::locate(connection, self.account, list, offset).await?
        {
            self.compare("created_at", "<", end_of(start.day));
            offset -= start.skipped;
        }
        let account = self.account;
        let (sql, values) = self.statement(page.size(), offset);
        let mut rows = sqlx::query_with(AssertSqlSafe(sql), values).fetch(connection);
        let (mut entries, mut total, mut bytes, mut fit) = (Vec::new(), 0, PageBytes::new(account), None);
        while let Some(row) = rows.try_next().await? {
            total = row.try_get("total")?;
            if fit.is_some() || row.try_get::<Option<bool>, _>("found")? != Some(true) {
                continue;
            }
            if bytes.add(&row)? > MAX_PAGE_BYTES && !entries.is_empty() {
                fit = Some(entries.len());
            } else {
                entries.push(R::from_row(&row)?);
            }
        }
        let mut meta = page.meta(total);
        meta.cut = fit.map(|fit| page.cut(i64::try_from(fit).unwrap_or(i64::MAX)));
        if let Some(cut) = &meta.cut {
            entries.truncate(usize::try_from(cut.per_page).unwrap_or(usize::MAX));
        }
        Ok((entries, meta))
    }

    fn counted_newest(&self) -> Option<&'a str> {
        match self.total {
            Total::Counted(list) if self.order.column == NEWEST.column && self.order.descending => Some(list),
            _ => None,
        }
    }

    /// Builds the statement for the total and the rows. The left join keeps the total when the page is empty. The
    /// columns come first, so that a row type can read them by index.
    fn statement(self, limit: i64, offset: i64) -> (String, PgArguments) {
        let by_index = self.is_covered && self.order.is_indexed;
        let Self { account, table, columns, conditions, mut values, order, total, has_other_bounds, .. } =
            self;
        let column = order.column;
        let (direction, from) = if order.descending { ("desc", "<=") } else { ("asc", ">=") };
        let head = match total {
            Total::Counted(list) => {
                let (list, bucket) = (values.bind(list), values.bind(totals::ALL_DAYS));
                let account = values.bind(account);
                format!(
                    "select coalesce(sum(entries), 0)::bigint as total from total \
                     where account_id = {account} and list = {list} and bucket = {bucket}"
                )
            }
            Total::Matching => format!("select count(*) as total from {table} where {conditions}"),
        };
        // If the index covers the order, an index-only scan skips the rows before the page. Fetching them from the
        // table would cost more than the page itself.
        let start = if offset > 0 && by_index {
            let offset = values.bind(offset);
            format!(
                " and ({column}, id) {from} (select {column}, id from {table} where {conditions} \
                 order by {column} {direction}, id {direction} limit 1 offset {offset})"
            )
        } else {
            String::new()
        };
        // The limit is a literal and not bound: with a limit that it does not know, Postgres plans every call anew,
        // which costs more than the page. There are at most 100 limits. Offsets have many values, so they stay bound.
        let offset =
            if offset > 0 && !by_index { format!(" offset {}", values.bind(offset)) } else { String::new() };
        let page = |also: &str, order: &str| {
            format!(
                "select {columns}, true as found from {table} where {conditions}{start}{also} \
                 order by {order} limit {limit}{offset}"
            )
        };
        let by_column = format!("{column} {direction}, id {direction}");
        let page = if has_other_bounds {
            // A few rows are sorted; of many, the first ones in the order are soon found. Postgres cannot know which it
            // will be when it plans for values that it does not know, and could read a whole account for one row that
            // changed recently. No index has the order of the first part, so it uses that of the bounds.
            let (few, many) = (format!(" and counted.total <= {FEW}"), format!(" and counted.total > {FEW}"));
            let by_row = format!("row({column}, id) {direction}");
            format!("({}) union all ({})", page(&few, &by_row), page(&many, &by_column))
        } else {
            page("", &by_column)
        };
        let sql = format!(
            "select page.*, counted.total from ({head}) counted left join lateral ({page}) page on true"
        );
        (sql, values.arguments)
    }
}

/// The bound values of a statement.
#[derive(Default)]
pub struct Values {
    arguments: PgArguments,
}

impl Values {
    /// Binds a value and returns its placeholder.
    pub fn bind<'q>(&mut self, value: impl Encode<'q, Postgres> + Type<Postgres>) -> String {
        // A value that cannot be encoded is not added; the statement then fails, because a placeholder has no value.
        let _ = self.arguments.add(value);
        format!("${}", self.arguments.len())
    }
}

/// The end of a day of the counters, which count by days in UTC.
fn end_of(day: NaiveDate) -> DateTime<Utc> {
    (day + chrono::Days::new(1)).and_time(chrono::NaiveTime::MIN).and_utc()
}
