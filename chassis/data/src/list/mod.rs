//! The list builder: filters, order and page of one table's rows, with an exact total, in one statement.
//!
//! Column and table names come from the code, values are always bound. The order ends with the id, so that the pages of
//! an unchanged list never repeat or skip a row.

pub(crate) mod export;
mod search;
mod selection;

use std::fmt::Write;

use chassis_base::paging::{MAX_PAGE_BYTES, Page};
use chassis_base::{AccountId, Error};
use chassis_rpc::export::Export;
use futures::TryStreamExt;
use proto::api::PageMeta;
use sqlx::postgres::{PgArguments, PgRow};
use sqlx::{Arguments, AssertSqlSafe, Encode, FromRow, PgConnection, Postgres, Type};

use crate::listing::filtered;
use crate::long_pages::PageBytes;
use crate::preparation::{GROUP, MAX_SKIPPED, Preparation, Restriction, notice};
use crate::row::Columns;
use crate::totals;
use crate::value::Value;
use search::{has_trigram, substring_pattern};

pub use selection::{Fields, Selection};

/// From this offset on, a page in the default order starts in a segment, see [`preparation`](crate::preparation).
const DEEP: i64 = 1_000;
/// So many rows are sorted sooner than a page of them is found in an index that has all rows of a large account.
const FEW: i64 = 5_000;
/// The last columns of the statement, after those of the table: whether the row is one of the list, then the total and how it
/// was found.
const BESIDE: usize = 4;
/// The least id, in SQL.
const NIL: &str = "'00000000-0000-0000-0000-000000000000'";

/// How the total of a list is found.
#[derive(Clone, Copy)]
pub enum Total<'a> {
    /// From the counters of this list, as long as at most one filter narrows it, and that one is counted
    /// ([`List::only_counted`]). [`List::equals`] and [`List::is_null`] must select exactly the rows that the counters count.
    Counted(&'a str),
    /// The same for a list that had no counters when its first records were stored: rows are counted until it is prepared.
    Prepared(&'a str),
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
    definition: Vec<Restriction>,
    /// The counted filter that narrows it.
    filter: Option<Filter>,
    /// Whether an index that covers the order also covers everything that restricts the list: its definition, and bounds
    /// of the column that it is ordered by.
    is_covered: bool,
    /// Whether it has bounds of a time that it is not ordered by, or another restriction that few rows meet as a rule.
    is_sparse: bool,
    /// The columns with bounds that the service has set.
    bounded: Vec<&'static str>,
}

/// A filter that has a counter.
struct Filter {
    /// Its name and its value in the name of the counter.
    name: &'static str,
    value: String,
    restriction: Restriction,
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
        let is_covered = !matches!(total, Total::Matching);
        let order = NEWEST;
        Self {
            account,
            table,
            columns,
            conditions,
            values,
            order,
            total,
            definition: Vec::new(),
            filter: None,
            is_covered,
            is_sparse: false,
            bounded: Vec::new(),
        }
    }

    /// Orders by another column than `created_at` when the request asks for no order. Call it before [`Self::select`].
    pub fn order_by(&mut self, column: &'static str, descending: bool) -> &mut Self {
        self.order = Order { column, descending, is_indexed: false };
        self
    }

    /// Selects rows whose `column` has this value, as part of the list's definition. Does not narrow the list.
    pub fn equals(&mut self, column: &'static str, value: impl Into<Value>) -> &mut Self {
        self.define(Restriction::Equals(column, value.into()))
    }

    /// Narrows the list to rows whose `column` has this value, if a value is given. All values of the column that are asked
    /// for like this are counted: the record is [`listed`](crate::Listing::with) with them. An index has the rows with the
    /// value in the order of their creation.
    pub fn only_counted(&mut self, column: &'static str, value: Option<impl Into<Value>>) -> &mut Self {
        let Some(value) = value.map(Into::into) else { return self };
        let text = value.to_string();
        self.filter(Filter { name: column, value: text, restriction: Restriction::Equals(column, value) })
    }

    /// Narrows the list to rows for which an SQL condition without parameters holds, and counts them: the record is
    /// [`listed`](crate::Listing::with) with `name` and `value` as long as it holds. An index has these rows in the order of
    /// their creation.
    pub fn only_counted_where(
        &mut self,
        name: &'static str,
        value: &'static str,
        condition: &'static str,
    ) -> &mut Self {
        let restriction = Restriction::Holds(condition);
        self.filter(Filter { name, value: value.to_owned(), restriction })
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
        self.define(Restriction::Null(column))
    }

    /// Narrows the list to rows whose `column`, which holds lower-case text, contains the term. Case does not matter.
    pub fn contains(&mut self, column: &'static str, term: &str) -> &mut Self {
        self.narrow().compare(column, "like", substring_pattern(&term.to_lowercase()))
    }

    /// Narrows the list to rows whose `column` contains a search term; an empty term has no effect. The column holds
    /// lower-case text and has a trigram index.
    pub fn search(&mut self, column: &'static str, term: &str) -> &mut Self {
        self.find(column, "like", &term.to_lowercase())
    }

    /// The same for a column with text as it was sent.
    pub fn search_any_case(&mut self, column: &'static str, term: &str) -> &mut Self {
        self.find(column, "ilike", term)
    }

    fn find(&mut self, column: &'static str, operator: &'static str, term: &str) -> &mut Self {
        if term.is_empty() {
            return self;
        }
        // For a term without three letters in a row Postgres would scan the whole index, which takes longer than reading
        // the account's rows. An expression that is not indexed keeps the planner from using it.
        let is_indexed = if has_trigram(term) { "" } else { "|| '' " };
        self.matching(|values| {
            let pattern = values.bind(substring_pattern(term));
            format!("{column} {is_indexed}{operator} {pattern}")
        })
    }

    /// Narrows the list to rows from `from` to `to`, inclusive, as far as they are given.
    pub fn between<'q, V>(&mut self, column: &'static str, from: Option<V>, to: Option<V>) -> &mut Self
    where
        V: Encode<'q, Postgres> + Type<Postgres>,
    {
        for (operator, bound) in [(">=", from), ("<=", to)] {
            if let Some(bound) = bound {
                self.bounded.push(column);
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

    /// The same for a condition that an index finds, and that few rows meet as a rule. These are sorted, so that Postgres does
    /// not look for them in the order of the list.
    pub fn look_up(&mut self, condition: impl FnOnce(&mut Values) -> String) -> &mut Self {
        self.is_sparse = true;
        self.matching(condition)
    }

    fn narrow(&mut self) -> &mut Self {
        self.total = Total::Matching;
        self.filter = None;
        self.is_covered = false;
        self
    }

    fn define(&mut self, restriction: Restriction) -> &mut Self {
        restriction.write(&mut self.conditions, &mut self.values.arguments);
        self.definition.push(restriction);
        self
    }

    fn filter(&mut self, filter: Filter) -> &mut Self {
        filter.restriction.write(&mut self.conditions, &mut self.values.arguments);
        if matches!(self.total, Total::Matching) || self.filter.is_some() {
            return self.narrow();
        }
        self.filter = Some(filter);
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

    /// Fetches a page, and cuts it where its entries become too long for one response. Takes one round trip. In an export it
    /// is the next part of the whole list, without a total.
    pub async fn fetch<R>(
        self,
        connection: &mut PgConnection,
        page: Page,
    ) -> Result<(Vec<R>, PageMeta), Error>
    where
        R: for<'r> FromRow<'r, PgRow> + Send + Unpin + 'static,
    {
        if let Some(export) = Export::current() {
            let (sql, values) = self.whole();
            return Ok((export::fetch(connection, &export, sql, values).await?, PageMeta::default()));
        }
        let account = self.account;
        let preparation = self.preparation();
        let (sql, values) = self.statement(page.size(), page.offset());
        let mut rows = sqlx::query_with(AssertSqlSafe(sql), values).fetch(connection);
        let (mut entries, mut total, mut bytes, mut fit) = (Vec::new(), 0, PageBytes::new(account), None);
        let (mut is_counted, mut is_far) = (true, false);
        while let Some(row) = rows.try_next().await? {
            let mut beside = Columns::last(&row, BESIDE);
            let found: Option<bool> = beside.take()?;
            (total, is_counted, is_far) = (beside.take()?, beside.take()?, beside.take()?);
            if fit.is_some() || found != Some(true) {
                continue;
            }
            if bytes.add(&row)? > MAX_PAGE_BYTES && !entries.is_empty() {
                fit = Some(entries.len());
            } else {
                entries.push(R::from_row(&row)?);
            }
        }
        // What matches nothing is counted at once, and may be any text that a request asks for.
        if let Some(mut preparation) = preparation.filter(|_| is_far || (!is_counted && total > 0)) {
            preparation.with_segments = is_far;
            notice(preparation);
        }
        let mut meta = page.meta(total);
        meta.cut = fit.map(|fit| page.cut(i64::try_from(fit).unwrap_or(i64::MAX)));
        if let Some(cut) = &meta.cut {
            entries.truncate(usize::try_from(cut.per_page).unwrap_or(usize::MAX));
        }
        Ok((entries, meta))
    }

    /// What prepares the list; `None` if it is not counted.
    fn preparation(&self) -> Option<Preparation> {
        let list = self.counter()?;
        let filter = self.filter.as_ref().map(|filter| filter.restriction.clone());
        Some(Preparation {
            account: self.account,
            list,
            table: self.table,
            is_to_be_counted: self.is_to_be_counted(),
            with_segments: false,
            definition: self.definition.iter().cloned().chain(filter).collect(),
        })
    }

    /// The name of the counter.
    fn counter(&self) -> Option<String> {
        let (Total::Counted(list) | Total::Prepared(list)) = self.total else { return None };
        Some(match &self.filter {
            None => list.to_owned(),
            Some(Filter { name, value, .. }) => filtered(list, name, value),
        })
    }

    /// Whether its counter is right only once it has been prepared.
    fn is_to_be_counted(&self) -> bool {
        self.filter.is_some() || matches!(self.total, Total::Prepared(_))
    }

    fn is_newest_first(&self) -> bool {
        self.order.column == NEWEST.column && self.order.descending
    }

    /// Builds the statement for the total and the rows. The left join keeps the total when the page is empty. The
    /// columns come first, so that a row type can read them by index.
    fn statement(mut self, limit: i64, offset: i64) -> (String, PgArguments) {
        // The index of a filter has the order of creation only.
        let by_index = self.is_covered
            && self.order.is_indexed
            && (self.filter.is_none() || self.order.column == NEWEST.column);
        let is_deep = by_index && offset >= DEEP && self.is_newest_first();
        let counted = self.counted_sql();
        let offset = (offset > 0).then(|| self.values.bind(offset));
        let located = match (&offset, self.counter()) {
            (Some(offset), Some(list)) if is_deep => Some(self.located_sql(&list, offset)),
            _ => None,
        };
        let Self { table, columns, conditions, values, order, is_sparse, bounded, .. } = self;
        let column = order.column;
        let is_sparse = is_sparse || bounded.iter().any(|bounded| *bounded != column);
        let (direction, from) = if order.descending { ("desc", "<=") } else { ("asc", ">=") };
        // If the index covers the order, an index-only scan skips the rows before the page. Fetching them from the
        // table would cost more than the page itself.
        let start = offset.as_ref().filter(|_| by_index).map(|offset| {
            let (segment, offset) = match located {
                Some(_) => {
                    let end = "(select last_created_at, last_id from located)";
                    (format!(" and (created_at, id) <= {end}"), "(select skipped from located)")
                }
                None => (String::new(), offset.as_str()),
            };
            format!(
                " and ({column}, id) {from} (select {column}, id from {table} where {conditions}{segment} \
                 order by {column} {direction}, id {direction} limit 1 offset {offset})"
            )
        });
        // The limit is a literal and not bound: with a limit that it does not know, Postgres plans every call anew,
        // which costs more than the page. There are at most 100 limits. Offsets have many values, so they stay bound.
        let offset = offset.filter(|_| !by_index).map(|offset| format!(" offset {offset}"));
        let (start, offset) = (start.unwrap_or_default(), offset.unwrap_or_default());
        let page = |also: &str, order: &str| {
            format!(
                "select {columns}, true as found from {table} where {conditions}{start}{also} \
                 order by {order} limit {limit}{offset}"
            )
        };
        let by_column = format!("{column} {direction}, id {direction}");
        let page = if is_sparse {
            // A few rows are sorted; of many, the first ones in the order are soon found. Postgres cannot know which it
            // will be when it plans for values that it does not know, and could read a whole account for one row that
            // changed recently. No index has the order of the first part, so it uses that of the bounds.
            let (few, many) = (format!(" and counted.total <= {FEW}"), format!(" and counted.total > {FEW}"));
            let by_row = format!("row({column}, id) {direction}");
            format!("({}) union all ({})", page(&few, &by_row), page(&many, &by_column))
        } else {
            page("", &by_column)
        };
        let sql = match located {
            None => format!(
                "select page.*, counted.total, counted.is_counted, false as is_far from ({counted}) counted \
                 left join lateral ({page}) page on true"
            ),
            Some(located) => format!(
                "with counted as ({counted}), located as ({located}) \
                 select page.*, counted.total, counted.is_counted, located.skipped > {MAX_SKIPPED} as is_far \
                 from counted left join located on true left join lateral ({page}) page on true"
            ),
        };
        (sql, values.arguments)
    }

    /// The total, and whether it is known without a preparation.
    fn counted_sql(&mut self) -> String {
        let Some(list) = self.counter() else {
            let Self { table, conditions, .. } = self;
            return format!("select count(*) as total, true as is_counted from {table} where {conditions}");
        };
        let (bucket, account) = (self.values.bind(totals::ALL_DAYS), self.values.bind(self.account));
        let counter = self.values.bind(list.as_str());
        let sum = format!(
            "select coalesce(sum(entries), 0)::bigint as total from total \
             where account_id = {account} and list = {counter} and bucket = {bucket}"
        );
        if !self.is_to_be_counted() {
            return format!("select sum.total, true as is_counted from ({sum}) sum");
        }
        let prepared = self.prepared_sql(&list);
        let Self { table, conditions, .. } = self;
        format!(
            "select is_counted, case when is_counted then ({sum}) \
                else (select count(*) from {table} where {conditions}) end as total \
             from (select {prepared} as is_counted) prepared"
        )
    }

    /// The end of the segment in which the page begins, and how many entries come before it there. Without one, the page
    /// begins among the newest entries.
    fn located_sql(&mut self, list: &str, offset: &str) -> String {
        let (account, prepared) = (self.values.bind(self.account), self.prepared_sql(list));
        let list = self.values.bind(list);
        let level = |level: i16| {
            format!(
                "list_segment where account_id = {account} and list = {list} and level = {level} and {prepared}"
            )
        };
        let (groups, segments) = (level(1), level(0));
        let through = "(sum(entries) over (order by last_created_at, last_id))::bigint as through";
        // The last group that ends before the position, then the first segment after it that does not.
        format!(
            "select coalesce(segment.last_created_at, 'infinity') as last_created_at, \
                coalesce(segment.last_id, 'ffffffff-ffff-ffff-ffff-ffffffffffff') as last_id, \
                coalesce(segment.skipped, {offset}) as skipped \
             from counted left join lateral ( \
                select last_created_at, last_id, through from ( \
                    select last_created_at, last_id, {through} from {groups} \
                ) groups \
                where through < counted.total - {offset} order by last_created_at desc, last_id desc limit 1 \
             ) before on true left join lateral ( \
                select last_created_at, last_id, \
                    coalesce(before.through, 0) + through - (counted.total - {offset}) as skipped \
                from ( \
                    select last_created_at, last_id, {through} from ( \
                        select last_created_at, last_id, entries from {segments} \
                            and (last_created_at, last_id) \
                                > (coalesce(before.last_created_at, '-infinity'), coalesce(before.last_id, {NIL})) \
                        order by last_created_at, last_id limit {GROUP} \
                    ) next \
                ) segments \
                where coalesce(before.through, 0) + through >= counted.total - {offset} \
                order by last_created_at, last_id limit 1 \
             ) segment on true"
        )
    }

    /// Whether the list is prepared, and no program of the release before has written since.
    fn prepared_sql(&mut self, list: &str) -> String {
        let (account, list) = (self.values.bind(self.account), self.values.bind(list));
        format!(
            "exists (select from prepared_list where account_id = {account} and list = {list} and not exists ( \
                select from audit where audit.account_id = {account} and audit.id > prepared_list.seen))"
        )
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
