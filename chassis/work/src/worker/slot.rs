//! Slots limit how many jobs of a worker run in parallel.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The slots of one worker, and whether its jobs must end soon.
#[derive(Clone)]
pub(super) struct Slots {
    free: Arc<Semaphore>,
    ending: Arc<AtomicBool>,
}

/// The slot of one job. The job may release and reacquire it.
pub(super) struct Slot {
    slots: Slots,
    held: Mutex<Option<OwnedSemaphorePermit>>,
}

impl Slots {
    pub(super) fn new(count: usize) -> Self {
        Self { free: Arc::new(Semaphore::new(count)), ending: Arc::default() }
    }

    /// Waits for a free slot.
    pub(super) async fn free(self) -> Slot {
        let slot = Slot { slots: self, held: Mutex::default() };
        slot.take().await;
        slot
    }

    /// Asks running jobs to end soon, or withdraws that request.
    pub(super) fn end_jobs(&self, end: bool) {
        self.ending.store(end, Ordering::Relaxed);
    }
}

impl Slot {
    pub(super) fn leave(&self) {
        self.held.lock().unwrap_or_else(PoisonError::into_inner).take();
    }

    pub(super) async fn take(&self) {
        if self.is_taken() {
            return;
        }
        // The semaphore is never closed, so acquiring cannot fail.
        let Ok(permit) = Arc::clone(&self.slots.free).acquire_owned().await else { return };
        *self.held.lock().unwrap_or_else(PoisonError::into_inner) = Some(permit);
    }

    fn is_taken(&self) -> bool {
        self.held.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }

    pub(super) fn should_stop(&self) -> bool {
        self.slots.ending.load(Ordering::Relaxed)
    }
}
