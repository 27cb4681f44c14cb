//! A document at the time of its issue, from which its PDF is made.

use std::sync::{Arc, Mutex, PoisonError};

use render::PrintedDocument;
use uuid::Uuid;

use super::Full;

/// A final document, and what its PDF shows for ever.
pub(crate) struct Issued {
    pub full: Full,
    /// In the state at the time of issue.
    pub printed: PrintedDocument,
}

/// The document whose PDF was stored by the last run of an operation, before its commit. If that run does not commit, nothing
/// lists the file.
#[derive(Clone, Default)]
pub(crate) struct PrintedAhead(Arc<Mutex<Option<Uuid>>>);

impl PrintedAhead {
    pub(crate) fn set(&self, document: Uuid) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(document);
    }

    pub(crate) fn take(&self) -> Option<Uuid> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}
