//! The number of entries of a list, without counting rows: each transaction that adds or removes entries updates
//! counters.
//!
//! A counter has several slots, so that concurrent writers rarely wait for the same row. The release before finds deep pages
//! with one more counter for each day of creation; this release only keeps them for it, and reads segments
//! ([`preparation`](crate::preparation)).

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU16, Ordering};

use chrono::{DateTime, NaiveDate, TimeDelta, Utc};
use uuid::Uuid;

use crate::listing::Listing;

pub(crate) const SLOTS: u16 = 8;

/// The bucket of the sum over all days. It is a finite date, because Postgres cannot calculate with infinite ones.
pub(crate) const ALL_DAYS: NaiveDate = NaiveDate::from_yo_opt(1, 1).expect("a valid date");

/// Younger entries are in no segment yet, so that a write need not look for it. Entries get into segments when they are much
/// older ([`SETTLED`](crate::preparation::SETTLED)): the difference is more than a write can take, and more than clocks differ.
pub(crate) const RECENT: TimeDelta = TimeDelta::minutes(5);

/// The changes of one transaction.
#[derive(Default)]
pub(crate) struct Totals {
    counters: BTreeMap<(String, NaiveDate), i64>,
    /// By list and place, of entries that may be in a segment.
    places: BTreeMap<(String, DateTime<Utc>, Uuid), i64>,
}

/// The rows of counters: list, bucket, slot, entries.
pub(crate) type Columns = (Vec<String>, Vec<NaiveDate>, Vec<i16>, Vec<i64>);

/// Changes within segments: list, time of creation, id, entries.
pub(crate) type Places = (Vec<String>, Vec<DateTime<Utc>>, Vec<Uuid>, Vec<i64>);

impl Totals {
    pub(crate) fn add(&mut self, listing: &Listing, by: i64, now: DateTime<Utc>) {
        let Listing { created_at, id, lists } = listing;
        for list in lists {
            let day = list.by_day.then(|| created_at.date_naive());
            for bucket in std::iter::once(ALL_DAYS).chain(day) {
                *self.counters.entry((list.name.clone(), bucket)).or_default() += by;
            }
            if *created_at < now - RECENT {
                *self.places.entry((list.name.clone(), *created_at, *id)).or_default() += by;
            }
        }
    }

    /// The rows to add, all in one slot. Transactions take slots in turn, so that those that run at the same time have
    /// different ones, as far as there are enough. A list whose entries change in segments has a row even if its total stays:
    /// the row's lock and epoch tell whether the segments stay.
    pub(crate) fn rows(&self) -> Columns {
        static NEXT: AtomicU16 = AtomicU16::new(0);
        let slot = i16::try_from(NEXT.fetch_add(1, Ordering::Relaxed) % SLOTS).unwrap_or_default();
        let mut columns = Columns::default();
        let places = self.places();
        let is_needed = |(list, bucket): &(String, NaiveDate)| *bucket == ALL_DAYS && places.0.contains(list);
        for ((list, bucket), by) in self.counters.iter().filter(|(key, by)| **by != 0 || is_needed(key)) {
            columns.0.push(list.clone());
            columns.1.push(*bucket);
            columns.2.push(slot);
            columns.3.push(*by);
        }
        columns
    }

    pub(crate) fn places(&self) -> Places {
        let mut columns = Places::default();
        for ((list, created_at, id), by) in self.places.iter().filter(|(_, by)| **by != 0) {
            columns.0.push(list.clone());
            columns.1.push(*created_at);
            columns.2.push(*id);
            columns.3.push(*by);
        }
        columns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn now() -> DateTime<Utc> {
        chassis_testing::moment()
    }

    fn listing(created_at: DateTime<Utc>, status: &str) -> Listing {
        Listing::new(created_at, Uuid::nil()).of("thing").with("thing", "status", status)
    }

    #[test]
    fn a_record_that_moves_between_filters_changes_their_counters_only() {
        let (mut totals, long_ago) = (Totals::default(), now() - TimeDelta::days(1));
        totals.add(&listing(long_ago, "open"), -1, now());
        totals.add(&listing(long_ago, "done"), 1, now());
        let (lists, buckets, _, by) = totals.rows();
        assert_eq!(lists, ["thing/status/done", "thing/status/open"]);
        assert_eq!((buckets, by), (vec![ALL_DAYS; 2], vec![1, -1]));
        assert_eq!(totals.places().0, ["thing/status/done", "thing/status/open"]);
    }

    #[test]
    fn a_list_that_loses_an_old_entry_and_gets_a_new_one_has_a_row_for_its_segments() {
        let (mut totals, today) = (Totals::default(), now());
        totals.add(&Listing::new(today - TimeDelta::hours(1), Uuid::nil()).of("thing"), -1, today);
        totals.add(&Listing::new(today, Uuid::max()).of("thing"), 1, today);
        let (lists, buckets, _, by) = totals.rows();
        assert_eq!((lists.len(), buckets, by), (1, vec![ALL_DAYS], vec![0]));
        assert_eq!(totals.places().3, [-1]);
    }

    #[test]
    fn a_new_record_is_in_no_segment() {
        let mut totals = Totals::default();
        totals.add(&listing(now(), "open"), 1, now());
        assert_eq!(
            totals.rows().0,
            ["thing", "thing", "thing/status/open"],
            "all days, its day, and the filter"
        );
        assert!(totals.places().0.is_empty());
    }
}
