//! Why an attempt of a write was refused, as far as the next attempt has to know.
//!
//! **A record has a version that the log has already.** Usually another transaction has changed the record at the same time,
//! and running again is enough. But a program of the release before, which knows no versions, may have removed the record and
//! made it again: then its row counts from 1, and every write collides. So before a write runs a third time, its records are
//! compared with the log and get versions that follow those in it.
//!
//! **A number was not the next one.** The next attempt stands in line anew, see [`sequence`](super::sequence).

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use chassis_base::error::RecordRef;

/// Shared by the attempts of one write.
#[derive(Clone, Default)]
pub(super) struct Collision(Arc<Mutex<Refused>>);

#[derive(Default)]
struct Refused {
    /// The records that the log refused.
    records: Vec<RecordRef>,
    /// Whether the counter refused the number.
    number: bool,
}

impl Collision {
    fn refused(&self) -> MutexGuard<'_, Refused> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn set(&self, records: impl Iterator<Item = RecordRef>) {
        self.refused().records = records.collect();
    }

    pub(super) fn take(&self) -> Vec<RecordRef> {
        std::mem::take(&mut self.refused().records)
    }

    pub(super) fn refuse_number(&self) {
        self.refused().number = true;
    }

    pub(super) fn take_number(&self) -> bool {
        std::mem::take(&mut self.refused().number)
    }
}
