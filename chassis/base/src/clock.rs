//! Time and ids. Nothing else in the product asks the machine for the time, so a test can hold it still.

use std::sync::{Arc, Mutex, PoisonError};

use chrono::{DateTime, NaiveDate, SubsecRound, TimeDelta, Utc};
use chrono_tz::Tz;
use uuid::{ContextV7, Timestamp, Uuid};

/// A source of time and of ids that agree with it. Cheap to clone; clones share the source.
#[derive(Clone)]
pub struct Clock {
    held: Option<Arc<Mutex<DateTime<Utc>>>>,
    ids: Arc<Mutex<ContextV7>>,
}

impl Clock {
    pub fn system() -> Self {
        Self { held: None, ids: Arc::new(Mutex::new(ContextV7::new())) }
    }

    /// A clock that stands at `time` until it is moved.
    pub fn held_at(time: DateTime<Utc>) -> Self {
        Self { held: Some(Arc::new(Mutex::new(time))), ..Self::system() }
    }

    /// Moves a held clock; without effect on the system's.
    pub fn advance(&self, by: TimeDelta) {
        if let Some(held) = &self.held {
            let mut time = held.lock().unwrap_or_else(PoisonError::into_inner);
            *time += by;
        }
    }

    /// Now, in the precision that the API shows and the database stores: milliseconds.
    #[expect(clippy::disallowed_methods, reason = "the one place that asks the machine for the time")]
    pub fn now(&self) -> DateTime<Utc> {
        match &self.held {
            Some(held) => *held.lock().unwrap_or_else(PoisonError::into_inner),
            None => Utc::now(),
        }
        .trunc_subsecs(3)
    }

    /// The calendar day in a time zone.
    pub fn today(&self, zone: Tz) -> NaiveDate {
        self.now().with_timezone(&zone).date_naive()
    }

    /// A new UUIDv7 of this moment; ids of one process grow.
    pub fn id(&self) -> Uuid {
        let now = self.now();
        let seconds = u64::try_from(now.timestamp()).unwrap_or_default();
        let ids = self.ids.lock().unwrap_or_else(PoisonError::into_inner);
        Uuid::new_v7(Timestamp::from_unix(&*ids, seconds, now.timestamp_subsec_nanos()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_grow_even_while_time_stands_still() {
        let clock = Clock::held_at(DateTime::UNIX_EPOCH + TimeDelta::days(20_000));
        let ids: Vec<Uuid> = (0..1000).map(|_| clock.id()).collect();
        assert!(ids.is_sorted());
        clock.advance(TimeDelta::milliseconds(1));
        assert!(clock.id() > ids[999]);
    }

    #[test]
    fn the_day_changes_at_midnight_of_the_zone() {
        let clock = Clock::held_at(DateTime::parse_from_rfc3339("2026-06-30T22:30:00Z").unwrap().to_utc());
        assert_eq!(clock.today(chrono_tz::Europe::Amsterdam).to_string(), "2026-07-01");
        assert_eq!(clock.today(chrono_tz::UTC).to_string(), "2026-06-30");
    }
}
