//! The number of entries of a list, without counting rows: each transaction that adds or removes entries updates
//! counters.
//!
//! A counter has several slots, so that concurrent writers rarely wait for the same row. It has a bucket for each day
//! of creation besides the sum of all days, so that a deep page can start near its first row.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU16, Ordering};

use chassis_base::{AccountId, Error};
use chrono::NaiveDate;
use sqlx::PgConnection;

const SLOTS: u16 = 8;

/// The bucket of the sum over all days. It is a finite date, because Postgres cannot calculate with infinite ones.
pub(crate) const ALL_DAYS: NaiveDate = NaiveDate::from_yo_opt(1, 1).expect("a valid date");

/// The changes of one transaction.
#[derive(Default)]
pub(crate) struct Totals {
    changes: BTreeMap<(String, NaiveDate), i64>,
}

pub(crate) type Columns = (Vec<String>, Vec<NaiveDate>, Vec<i16>, Vec<i64>);

impl Totals {
    pub(crate) fn add(&mut self, list: &str, day: NaiveDate, by: i64) {
        for bucket in [ALL_DAYS, day] {
            *self.changes.entry((list.to_owned(), bucket)).or_default() += by;
        }
    }

    /// The rows to add, all in one slot. Transactions take slots in turn, so that those that run at the same time have
    /// different ones, as far as there are enough.
    pub(crate) fn rows(&self) -> Columns {
        static NEXT: AtomicU16 = AtomicU16::new(0);
        let slot = i16::try_from(NEXT.fetch_add(1, Ordering::Relaxed) % SLOTS).unwrap_or_default();
        let mut columns = Columns::default();
        for ((list, bucket), by) in self.changes.iter().filter(|(_, by)| **by != 0) {
            columns.0.push(list.clone());
            columns.1.push(*bucket);
            columns.2.push(slot);
            columns.3.push(*by);
        }
        columns
    }
}

/// The day on which a page of the newest-first order starts.
pub(crate) struct Start {
    pub day: NaiveDate,
    /// How many entries the later days have.
    pub skipped: i64,
}

/// Finds the day that holds the entry at `offset`, newest first. `None` when the list ends before it.
pub(crate) async fn locate(
    connection: &mut PgConnection,
    account: AccountId,
    list: &str,
    offset: i64,
) -> Result<Option<Start>, Error> {
    let start: Option<(NaiveDate, i64)> = sqlx::query_as(
        "select bucket, (through - entries)::bigint as skipped from (
            select bucket, sum(entries) as entries, sum(sum(entries)) over (order by bucket desc) as through
            from total where account_id = $1 and list = $2 and bucket > $3 group by bucket
         ) days where through > $4 order by bucket desc limit 1",
    )
    .bind(account)
    .bind(list)
    .bind(ALL_DAYS)
    .bind(offset)
    .fetch_optional(connection)
    .await?;
    Ok(start.map(|(day, skipped)| Start { day, skipped }))
}
