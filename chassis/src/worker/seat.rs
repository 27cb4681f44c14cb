//! The places of jobs: as many accounts are worked on at once as a worker has seats.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The seats of one worker, and whether its jobs have to come to their end.
#[derive(Clone)]
pub(super) struct Seats {
    free: Arc<Semaphore>,
    ending: Arc<AtomicBool>,
}

/// The seat of one job, which it may leave for a while.
pub(super) struct Seat {
    seats: Seats,
    held: Mutex<Option<OwnedSemaphorePermit>>,
}

impl Seats {
    pub fn new(count: usize) -> Self {
        Self { free: Arc::new(Semaphore::new(count)), ending: Arc::default() }
    }

    /// Waits for a free one.
    pub async fn free(self) -> Seat {
        let seat = Seat { seats: self, held: Mutex::default() };
        seat.take().await;
        seat
    }

    /// Asks the jobs to come to their end, or lets them go on.
    pub fn end_jobs(&self, end: bool) {
        self.ending.store(end, Ordering::Relaxed);
    }
}

impl Seat {
    pub fn leave(&self) {
        self.held.lock().unwrap_or_else(PoisonError::into_inner).take();
    }

    pub async fn take(&self) {
        if self.is_taken() {
            return;
        }
        // Nobody closes it.
        let Ok(permit) = Arc::clone(&self.seats.free).acquire_owned().await else { return };
        *self.held.lock().unwrap_or_else(PoisonError::into_inner) = Some(permit);
    }

    fn is_taken(&self) -> bool {
        self.held.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }

    pub fn has_to_end(&self) -> bool {
        self.seats.ending.load(Ordering::Relaxed)
    }
}
