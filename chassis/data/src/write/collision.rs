//! A write whose record has a version that the log has already.
//!
//! Usually another transaction has changed the record at the same time, and running again is enough. But a program of the
//! release before, which knows no versions, may have removed the record and made it again: then its row counts from 1, and
//! every write collides. So before a write runs a third time, its records are compared with the log and get versions that
//! follow those in it.

use std::sync::{Arc, Mutex, PoisonError};

use chassis_base::error::RecordRef;

/// The records of the last attempt of a write, if the log refused them.
#[derive(Clone, Default)]
pub(super) struct Collision(Arc<Mutex<Vec<RecordRef>>>);

impl Collision {
    pub(super) fn set(&self, records: impl Iterator<Item = RecordRef>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = records.collect();
    }

    pub(super) fn take(&self) -> Vec<RecordRef> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
