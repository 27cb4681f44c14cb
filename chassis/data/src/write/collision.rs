//! A write whose record has a version that the log has already.
//!
//! Usually another transaction has changed the record at the same time, and running again is enough. But a program of the
//! release before, which knows no versions, may have removed the record and made it again: then its row counts from 1, and
//! every write collides. So before a write runs a third time, its records are compared with the log and get versions that
//! follow those in it.

use std::sync::{Arc, Mutex, PoisonError};

use chassis_base::error::RecordRef;
use chassis_base::{Account, Error};

use super::operation::Of;
use crate::db::Db;
use crate::log::snapshot::{Collided, relog};
use crate::origin::Origin;

/// The records of the last attempt of a write, if the log refused them.
#[derive(Clone, Default)]
pub(super) struct Collision(Arc<Mutex<Vec<RecordRef>>>);

impl Collision {
    pub(super) fn set(&self, records: impl Iterator<Item = RecordRef>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = records.collect();
    }

    fn take(&self) -> Vec<RecordRef> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Db {
    /// Logs the records that the log refused, if they differ from it.
    pub(super) async fn mend(&self, account: &Account, collision: &Collision) -> Result<(), Error> {
        let (records, refused) = (self.records.get(), collision.take());
        let Some(records) = records.filter(|_| !refused.is_empty()) else { return Ok(()) };
        let input = Collided { records: records.clone(), refused };
        let operation = Of { input: &input, function: &relog };
        match self
            .attempt(account, Origin::Service, &operation, &super::run::nothing, &Collision::default(), true)
            .await
        {
            // Somebody else changes them right now; the write finds out.
            Err(error) if error.is_repeatable() => Ok(()),
            mended => mended.map(|_| ()),
        }
    }
}
