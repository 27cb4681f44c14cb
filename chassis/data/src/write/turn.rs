//! Turns at a counter that many transactions of this process want at the same time.
//!
//! A counter's row is locked until its transaction ends. Transactions that wait for it in the database all wake up when it
//! becomes free, look at the row again, and wait again but one. Here they wait in order, and each wakes once. The row's lock
//! is what keeps numbers right, also between processes; a turn only saves work.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use chassis_base::AccountId;
use tokio::sync::{Mutex as Queue, OwnedMutexGuard};

/// How long a transaction waits here at most; then it waits in the database, which also finds deadlocks.
pub(super) const MAX_WAIT: Duration = Duration::from_secs(1);

pub(super) type Counter = (AccountId, String);

/// The counters that transactions of this process hold or wait for.
#[derive(Default)]
pub(crate) struct Turns {
    queues: Mutex<HashMap<Counter, Arc<Queue<()>>>>,
}

/// The turn at a counter. It ends when this is dropped.
pub(super) struct Turn {
    turns: Arc<Turns>,
    counter: Counter,
    /// `None` before and after the turn.
    held: Option<OwnedMutexGuard<()>>,
}

impl Turns {
    /// `None` if the turn does not come in time.
    pub(super) async fn wait(self: &Arc<Self>, counter: Counter, max_wait: Duration) -> Option<Turn> {
        // Before the queue, so that a wait that is cancelled is cleared away too.
        let mut turn = Turn { turns: Arc::clone(self), counter, held: None };
        let queue = self.with_queues(|queues| Arc::clone(queues.entry(turn.counter.clone()).or_default()));
        turn.held = tokio::time::timeout(max_wait, queue.lock_owned()).await.ok();
        turn.held.is_some().then_some(turn)
    }

    fn with_queues<T>(&self, change: impl FnOnce(&mut HashMap<Counter, Arc<Queue<()>>>) -> T) -> T {
        change(&mut self.queues.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Turn {
    pub(super) fn is_at(&self, counter: &Counter) -> bool {
        self.counter == *counter
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.held = None;
        self.turns.with_queues(|queues| {
            // The map has one; whoever waits has another.
            if queues.get(&self.counter).is_some_and(|queue| Arc::strong_count(queue) == 1) {
                queues.remove(&self.counter);
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    fn counter(name: &str) -> Counter {
        (AccountId::trust(Uuid::from_u128(1)), name.to_owned())
    }

    #[tokio::test]
    async fn turns_come_in_order_and_other_counters_do_not_wait() {
        let turns = Arc::new(Turns::default());
        let order = Arc::new(Mutex::new(Vec::new()));
        let first = turns.wait(counter("a"), MAX_WAIT).await;
        let waiting: Vec<_> = (1..=3)
            .map(|number| {
                let (turns, order) = (Arc::clone(&turns), Arc::clone(&order));
                tokio::spawn(async move {
                    let _turn = turns.wait(counter("a"), MAX_WAIT).await;
                    order.lock().unwrap().push(number);
                })
            })
            .collect();
        assert!(turns.wait(counter("b"), MAX_WAIT).await.is_some());
        tokio::task::yield_now().await;
        assert!(order.lock().unwrap().is_empty(), "the first has its turn");
        drop(first);
        for task in waiting {
            task.await.unwrap();
        }
        assert_eq!(*order.lock().unwrap(), [1, 2, 3]);
        assert!(
            turns.with_queues(|queues| queues.is_empty()),
            "nothing is kept for counters that nobody wants"
        );
    }

    #[tokio::test]
    async fn a_wait_that_is_given_up_leaves_nothing() {
        let turns = Arc::new(Turns::default());
        let first = turns.wait(counter("a"), MAX_WAIT).await;
        let second = tokio::spawn({
            let turns = Arc::clone(&turns);
            async move { turns.wait(counter("a"), MAX_WAIT).await.is_some() }
        });
        tokio::task::yield_now().await;
        drop(first);
        second.abort();
        let _ = second.await;
        assert!(turns.with_queues(|queues| queues.is_empty()));
    }

    #[tokio::test]
    async fn a_turn_that_does_not_come_is_not_waited_for() {
        let turns = Arc::new(Turns::default());
        let first = turns.wait(counter("a"), MAX_WAIT).await;
        assert!(turns.wait(counter("a"), Duration::ZERO).await.is_none());
        drop(first);
        assert!(turns.with_queues(|queues| queues.is_empty()));
    }
}
