//! The places of things that are being done, in this process: some for those that are quick, others for those that keep us
//! waiting. Whoever takes long moves from the first to the second, so that the quick ones always have room; and as all of
//! them are counted, so is the memory that their requests take.

use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::mpsc::UnboundedSender;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use uuid::Uuid;

/// An answer that takes longer than this makes a thing slow.
pub(crate) const SLOW_AFTER: Duration = Duration::from_secs(2);
/// Things that are being done, of which not more than [`MAX_WORKING`] use the database, as they share it with requests.
const MAX_QUICK: usize = 128;
const MAX_WORKING: usize = 8;
const MAX_SLOW: usize = 256;
/// Things of groups that are known to be slow.
const MAX_PROBES: usize = 64;

tokio::task_local! {
    static PLACE: Arc<Place>;
}

/// Waits for an answer from outside. Meanwhile the place of whoever waits is not counted among those that work, and when it
/// takes long, neither among those that are quick.
pub(crate) async fn outside<F: Future>(answer: F) -> F::Output {
    match PLACE.try_with(Arc::clone) {
        Ok(place) => place.wait_for(answer).await,
        Err(_) => answer.await,
    }
}

/// All places of one worker in this process. Clones share them.
#[derive(Clone)]
pub(super) struct Places {
    quick: Arc<Semaphore>,
    working: Arc<Semaphore>,
    slow: Arc<Semaphore>,
    probes: Arc<Semaphore>,
}

impl Places {
    pub fn new() -> Self {
        let places = |count| Arc::new(Semaphore::new(count));
        Self {
            quick: places(MAX_QUICK),
            working: places(MAX_WORKING),
            slow: places(MAX_SLOW),
            probes: places(MAX_PROBES),
        }
    }

    /// Waits for a place among the quick ones. Whoever came first gets it first.
    pub async fn take(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.quick).acquire_owned().await.ok()
    }

    /// A place for a group that is known to be slow, if there is one.
    pub fn probe(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.probes).try_acquire_owned().ok()
    }
}

/// The place of one thing.
pub(super) struct Place {
    places: Places,
    held: Mutex<Held>,
    thing: (Uuid, UnboundedSender<Uuid>),
}

struct Held {
    place: OwnedSemaphorePermit,
    working: Option<OwnedSemaphorePermit>,
    is_slow: bool,
}

impl Place {
    /// Whoever is behind `thing` is told when it takes long, unless that is known.
    pub fn new(
        permit: OwnedSemaphorePermit,
        places: Places,
        thing: (Uuid, UnboundedSender<Uuid>),
        is_slow: bool,
    ) -> Self {
        let held = Mutex::new(Held { place: permit, working: None, is_slow });
        Self { places, held, thing }
    }

    /// Does what the place is for.
    pub async fn hold<F: Future>(self, work: F) -> F::Output {
        let place = Arc::new(self);
        place.begin_to_work().await;
        PLACE.scope(place, work).await
    }

    async fn begin_to_work(&self) {
        let permit = Arc::clone(&self.places.working).acquire_owned().await.ok();
        self.with(|held| held.working = permit);
    }

    async fn wait_for<F: Future>(&self, answer: F) -> F::Output {
        self.with(|held| held.working = None);
        let mut answer = pin!(answer);
        let answer = if let Ok(answer) = tokio::time::timeout(SLOW_AFTER, &mut answer).await {
            answer
        } else {
            self.become_slow();
            answer.await
        };
        self.begin_to_work().await;
        answer
    }

    /// Moves to the slow ones. Where these are too many, it stays: then there is no room for more of either kind.
    fn become_slow(&self) {
        if self.with(|held| held.is_slow) {
            return;
        }
        let Ok(permit) = Arc::clone(&self.places.slow).try_acquire_owned() else { return };
        self.with(|held| (held.place, held.is_slow) = (permit, true));
        let (id, turn) = &self.thing;
        // The turn may be over already; then nobody wants to know.
        let _ = turn.send(*id);
    }

    fn with<T>(&self, change: impl FnOnce(&mut Held) -> T) -> T {
        change(&mut self.held.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
