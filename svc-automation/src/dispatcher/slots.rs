//! Concurrency slots of one worker in this process: some for items that are quick, others for items that wait long for an
//! external response. An item that becomes slow moves from the first kind to the second, so that quick items always have
//! room. Every item holds a slot, so the memory that requests take is bounded too.

use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::mpsc::UnboundedSender;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use uuid::Uuid;

/// An external response that takes longer than this makes an item slow.
pub(crate) const SLOW_AFTER: Duration = Duration::from_secs(2);
/// Items in progress that are not slow.
const MAX_QUICK: usize = 128;
/// Items of these that use the database at the same time: they share its connections with requests.
const MAX_USING_DATABASE: usize = 8;
const MAX_SLOW: usize = 256;
/// Items of groups that were slow before.
const MAX_PROBES: usize = 64;

tokio::task_local! {
    static SLOT: Arc<Slot>;
}

/// Awaits an external response. Meanwhile the item of this task does not count as using the database, and after
/// [`SLOW_AFTER`] it does not count as quick either. Outside of an item this only awaits.
pub(crate) async fn await_external<F: Future>(response: F) -> F::Output {
    match SLOT.try_with(Arc::clone) {
        Ok(slot) => slot.wait_for(response).await,
        Err(_) => response.await,
    }
}

/// All slots of one worker in this process. Clones share them.
#[derive(Clone)]
pub(super) struct Slots {
    quick: Arc<Semaphore>,
    using_database: Arc<Semaphore>,
    slow: Arc<Semaphore>,
    probes: Arc<Semaphore>,
}

impl Slots {
    pub(super) fn new() -> Self {
        let slots = |count| Arc::new(Semaphore::new(count));
        Self {
            quick: slots(MAX_QUICK),
            using_database: slots(MAX_USING_DATABASE),
            slow: slots(MAX_SLOW),
            probes: slots(MAX_PROBES),
        }
    }

    /// Waits for a slot for a quick item, first come, first served.
    pub(super) async fn acquire(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.quick).acquire_owned().await.ok()
    }

    /// A slot for an item of a group that was slow before, if one is free.
    pub(super) fn try_acquire_probe(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.probes).try_acquire_owned().ok()
    }
}

/// The slot of one item.
pub(super) struct Slot {
    slots: Slots,
    held: Mutex<Held>,
    item: Uuid,
    /// Receives the item's id when it becomes slow.
    became_slow: UnboundedSender<Uuid>,
}

struct Held {
    permit: OwnedSemaphorePermit,
    using_database: Option<OwnedSemaphorePermit>,
    is_slow: bool,
}

impl Slot {
    /// `is_slow` is set for a probe, which counts as slow from the beginning.
    pub(super) fn new(
        permit: OwnedSemaphorePermit,
        slots: Slots,
        item: Uuid,
        became_slow: UnboundedSender<Uuid>,
        is_slow: bool,
    ) -> Self {
        let held = Mutex::new(Held { permit, using_database: None, is_slow });
        Self { slots, held, item, became_slow }
    }

    /// Performs the item while it holds this slot.
    pub(super) async fn hold<F: Future>(self, work: F) -> F::Output {
        let slot = Arc::new(self);
        slot.start_using_database().await;
        SLOT.scope(slot, work).await
    }

    async fn start_using_database(&self) {
        let permit = Arc::clone(&self.slots.using_database).acquire_owned().await.ok();
        self.with(|held| held.using_database = permit);
    }

    async fn wait_for<F: Future>(&self, response: F) -> F::Output {
        self.with(|held| held.using_database = None);
        let mut response = pin!(response);
        let response = if let Ok(response) = tokio::time::timeout(SLOW_AFTER, &mut response).await {
            response
        } else {
            self.become_slow();
            response.await
        };
        self.start_using_database().await;
        response
    }

    /// Moves to the slow slots. When these are all taken the item keeps its quick slot: then this process starts no more
    /// of either kind until some end.
    fn become_slow(&self) {
        if self.with(|held| held.is_slow) {
            return;
        }
        let Ok(permit) = Arc::clone(&self.slots.slow).try_acquire_owned() else { return };
        self.with(|held| {
            held.permit = permit;
            held.is_slow = true;
        });
        // The receiver is gone when the job has ended; then the state of the item is of no interest any more.
        let _ = self.became_slow.send(self.item);
    }

    fn with<T>(&self, change: impl FnOnce(&mut Held) -> T) -> T {
        change(&mut self.held.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
