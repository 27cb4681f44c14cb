//! A document at the time of its issue, from which its PDF is made after the commit of the transaction that made it final.

use std::sync::{Arc, Mutex, PoisonError};

use render::PrintedDocument;

use super::Full;

/// A final document, and what its PDF shows for ever.
pub(crate) struct Issued {
    pub full: Full,
    /// In the state at the time of issue.
    pub printed: PrintedDocument,
}

/// The document that a transaction has made final, so that nothing of it is read again for its PDF. If the transaction runs
/// more than once, that of the last run.
#[derive(Clone, Default)]
pub(crate) struct LastIssued(Arc<Mutex<Option<Issued>>>);

impl LastIssued {
    pub(crate) fn set(&self, issued: Issued) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(issued);
    }

    pub(crate) fn take(&self) -> Option<Issued> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}
