//! Time and ids. Nothing else in the product reads the system time, so a test can stop the clock.

use std::sync::{Arc, Mutex, PoisonError};

use crate::Timezone;
use chrono::{DateTime, NaiveDate, SubsecRound, TimeDelta, Utc};
use uuid::{ContextV7, Timestamp, Uuid};

/// A source of the time and of ids that contain it. Clones are cheap and share the source.
#[derive(Clone)]
pub struct Clock {
    held: Option<Arc<Mutex<DateTime<Utc>>>>,
    ids: Arc<Mutex<ContextV7>>,
}

impl Clock {
    pub fn system() -> Self {
        Self { held: None, ids: Arc::new(Mutex::new(ContextV7::new())) }
    }

    /// A clock that stays at `time` until it is advanced.
    pub fn held_at(time: DateTime<Utc>) -> Self {
        Self { held: Some(Arc::new(Mutex::new(time))), ..Self::system() }
    }

    /// Advances a held clock. Has no effect on the system clock.
    pub fn advance(&self, by: TimeDelta) {
        if let Some(held) = &self.held {
            let mut time = held.lock().unwrap_or_else(PoisonError::into_inner);
            *time += by;
        }
    }

    /// The current time in milliseconds, the precision of the API and the database.
    #[expect(clippy::disallowed_methods, reason = "the only place that reads the system time")]
    pub fn now(&self) -> DateTime<Utc> {
        match &self.held {
            Some(held) => *held.lock().unwrap_or_else(PoisonError::into_inner),
            None => Utc::now(),
        }
        .trunc_subsecs(3)
    }

    /// The current calendar day in a time zone.
    pub fn today(&self, zone: Timezone) -> NaiveDate {
        self.now().with_timezone(&zone).date_naive()
    }

    /// A new UUIDv7 of the current time. The ids of one clock ascend.
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
        assert_eq!(clock.today(Timezone::AMSTERDAM).to_string(), "2026-07-01");
        assert_eq!(clock.today(Timezone::UTC).to_string(), "2026-06-30");
    }
}
