//! Permits to use a connection. A pool has one permit for each connection, and no single user can take them all: an
//! account whose writes wait for a lock leaves permits for other accounts, background work leaves permits for
//! requests, and writes leave permits for reads. Waiting callers are served in order, those whose account holds the
//! fewest permits first. A full queue refuses new callers immediately.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use chassis_base::AccountId;
use chassis_rpc::scope;
use tokio::sync::oneshot;

/// How many callers may wait for each permit of the pool.
const MAX_WAITING: usize = 64;
/// The same for the callers of one account.
const MAX_WAITING_PER_ACCOUNT: usize = 32;

/// What a connection is taken for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Purpose {
    /// `None` for work of the process itself.
    pub account: Option<AccountId>,
    pub background: bool,
    pub writes: bool,
}

impl Purpose {
    /// A read on behalf of the current task.
    pub(crate) fn present() -> Self {
        scope::current_task().map_or_else(Self::default, |task| Self {
            account: Some(task.account),
            background: task.background,
            writes: false,
        })
    }
}

#[derive(Clone)]
pub(super) struct Permits(Arc<Shared>);

struct Shared {
    limits: Limits,
    state: Mutex<State>,
}

/// The most permits that may be held at the same time.
struct Limits {
    all: usize,
    writing: usize,
    background: usize,
    account: usize,
    account_writing: usize,
}

#[derive(Default)]
struct State {
    held: usize,
    writing: usize,
    background: usize,
    accounts: HashMap<AccountId, Share>,
    waiting: VecDeque<Waiter>,
    next_ticket: u64,
    closed: bool,
}

/// The permits and waiting callers of one account; removed when there are none.
#[derive(Clone, Copy, Default)]
struct Share {
    held: usize,
    writing: usize,
    waiting: usize,
}

struct Waiter {
    ticket: u64,
    purpose: Purpose,
    turn: oneshot::Sender<Permit>,
}

/// The right to use one connection, until it is dropped.
pub(super) struct Permit {
    permits: Permits,
    purpose: Purpose,
}

/// Why a permit was refused.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Refused {
    /// The queue is full.
    Full,
    Closed,
}

impl Permits {
    pub(super) fn new(size: usize) -> Self {
        // Even a small pool keeps one permit free, unless it has only one.
        let (half, most) = (size.div_ceil(2), (size * 3).div_ceil(4).min(size.saturating_sub(1)).max(1));
        let limits =
            Limits { all: size, writing: most, background: half, account: most, account_writing: half };
        Self(Arc::new(Shared { limits, state: Mutex::default() }))
    }

    /// Waits for a permit. A caller that is cancelled leaves the queue.
    pub(super) async fn take(&self, purpose: Purpose) -> Result<Permit, Refused> {
        let mut waiting = {
            let mut state = self.lock();
            if state.closed {
                return Err(Refused::Closed);
            }
            // A freed permit goes to a waiting caller if any may have it, so nobody in the queue is passed over here.
            if state.allows(&self.0.limits, purpose) {
                state.count(purpose);
                return Ok(self.permit(purpose));
            }
            let account = purpose.account.map_or(0, |account| state.share(account).waiting);
            let all = self.0.limits.all;
            if state.waiting.len() >= all * MAX_WAITING || account >= all * MAX_WAITING_PER_ACCOUNT {
                return Err(Refused::Full);
            }
            let (turn, granted) = oneshot::channel();
            Waiting { permits: self.clone(), ticket: state.queue(purpose, turn), granted }
        };
        // On cancellation here, `Waiting` leaves the queue, and a permit that was already sent returns itself.
        (&mut waiting.granted).await.map_err(|_| Refused::Closed)
    }

    pub(super) fn is_closed(&self) -> bool {
        self.lock().closed
    }

    /// Refuses all waiting and future callers.
    pub(super) fn close(&self) {
        let mut state = self.lock();
        state.closed = true;
        let waiting = std::mem::take(&mut state.waiting);
        drop(state);
        drop(waiting);
    }

    fn permit(&self, purpose: Purpose) -> Permit {
        Permit { permits: self.clone(), purpose }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Hands free permits to waiting callers.
    fn grant(&self) {
        loop {
            let mut state = self.lock();
            let Some(waiter) = state.next(&self.0.limits) else { return };
            state.count(waiter.purpose);
            drop(state);
            // If the caller has just left, the permit is dropped here and returns itself; that takes the lock again.
            let _ = waiter.turn.send(self.permit(waiter.purpose));
        }
    }
}

impl State {
    fn share(&self, account: AccountId) -> Share {
        self.accounts.get(&account).copied().unwrap_or_default()
    }

    fn allows(&self, limits: &Limits, purpose: Purpose) -> bool {
        let share = purpose.account.map(|account| self.share(account)).unwrap_or_default();
        self.held < limits.all
            && share.held < limits.account
            && (!purpose.writes || (self.writing < limits.writing && share.writing < limits.account_writing))
            && (!purpose.background || self.background < limits.background)
    }

    fn count(&mut self, purpose: Purpose) {
        self.held += 1;
        self.writing += usize::from(purpose.writes);
        self.background += usize::from(purpose.background);
        if let Some(account) = purpose.account {
            let share = self.accounts.entry(account).or_default();
            share.held += 1;
            share.writing += usize::from(purpose.writes);
        }
    }

    fn give_back(&mut self, purpose: Purpose) {
        self.held -= 1;
        self.writing -= usize::from(purpose.writes);
        self.background -= usize::from(purpose.background);
        self.change(purpose, |share| {
            share.held -= 1;
            share.writing -= usize::from(purpose.writes);
        });
    }

    fn change(&mut self, purpose: Purpose, change: impl FnOnce(&mut Share)) {
        let Some(account) = purpose.account else { return };
        let Some(share) = self.accounts.get_mut(&account) else { return };
        change(share);
        if share.held == 0 && share.waiting == 0 {
            self.accounts.remove(&account);
        }
    }

    fn queue(&mut self, purpose: Purpose, turn: oneshot::Sender<Permit>) -> u64 {
        let ticket = self.next_ticket;
        self.next_ticket += 1;
        if let Some(account) = purpose.account {
            self.accounts.entry(account).or_default().waiting += 1;
        }
        self.waiting.push_back(Waiter { ticket, purpose, turn });
        ticket
    }

    /// Removes the next caller from the queue: of those allowed, the first whose account holds the fewest permits.
    fn next(&mut self, limits: &Limits) -> Option<Waiter> {
        if self.held >= limits.all || self.waiting.is_empty() {
            return None;
        }
        let allowed =
            self.waiting.iter().enumerate().filter(|(_, waiter)| self.allows(limits, waiter.purpose));
        let held = |purpose: Purpose| purpose.account.map_or(0, |account| self.share(account).held);
        let (index, _) = allowed.min_by_key(|(_, waiter)| held(waiter.purpose))?;
        self.remove(index)
    }

    fn remove(&mut self, index: usize) -> Option<Waiter> {
        let waiter = self.waiting.remove(index)?;
        self.change(waiter.purpose, |share| share.waiting -= 1);
        Some(waiter)
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.permits.lock().give_back(self.purpose);
        self.permits.grant();
    }
}

/// A place in the queue, which is given up on drop.
struct Waiting {
    permits: Permits,
    ticket: u64,
    granted: oneshot::Receiver<Permit>,
}

impl Drop for Waiting {
    fn drop(&mut self) {
        let mut state = self.permits.lock();
        // The queue is sorted by ticket.
        if let Ok(index) = state.waiting.binary_search_by_key(&self.ticket, |waiter| waiter.ticket) {
            state.remove(index);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;

    use futures::FutureExt;
    use uuid::Uuid;

    use super::*;

    fn of(account: u128, writes: bool) -> Purpose {
        let account = Some(AccountId::trust(Uuid::from_u128(account)));
        Purpose { account, background: false, writes }
    }

    fn now(permits: &Permits, purpose: Purpose) -> Option<Permit> {
        permits.take(purpose).now_or_never().map(Result::unwrap)
    }

    #[test]
    fn an_account_leaves_places_to_the_others_and_its_writes_leave_some_to_its_reads() {
        let permits = Permits::new(8);
        let writes: Vec<Permit> = std::iter::from_fn(|| now(&permits, of(1, true))).collect();
        assert_eq!(writes.len(), 4);
        let reads: Vec<Permit> = std::iter::from_fn(|| now(&permits, of(1, false))).collect();
        assert_eq!(reads.len(), 2);
        let others: Vec<Permit> = std::iter::from_fn(|| now(&permits, of(2, true))).collect();
        assert_eq!(others.len(), 2);
        drop((writes, reads, others));
        assert!(permits.lock().accounts.is_empty());
    }

    #[test]
    fn writes_leave_places_to_reads_and_background_work_leaves_half() {
        let permits = Permits::new(8);
        let writes: Vec<Permit> = (1..).map_while(|account| now(&permits, of(account, true))).collect();
        assert_eq!(writes.len(), 6);
        assert!(now(&permits, of(99, false)).is_some());
        drop(writes);
        let background = |account| Purpose { background: true, ..of(account, false) };
        let working: Vec<Permit> = (1..).map_while(|account| now(&permits, background(account))).collect();
        assert_eq!(working.len(), 4);
    }

    #[test]
    fn a_small_pool_leaves_one_place_to_others_and_to_reads() {
        for size in 2..=4 {
            let permits = Permits::new(size);
            let writes: Vec<Permit> = (1..).map_while(|account| now(&permits, of(account, true))).collect();
            assert_eq!(writes.len(), size - 1);
            assert!(now(&permits, of(99, false)).is_some());
            drop(writes);
            let _one: Vec<Permit> = std::iter::from_fn(|| now(&permits, of(1, false))).collect();
            assert!(now(&permits, of(2, true)).is_some());
        }
    }

    #[test]
    fn a_pool_of_any_size_serves_everyone() {
        for size in 1..=9 {
            let permits = Permits::new(size);
            for purpose in [of(1, false), of(1, true), Purpose { background: true, ..of(1, true) }] {
                assert!(now(&permits, purpose).is_some(), "{size} {purpose:?}");
            }
        }
    }

    #[test]
    fn whoever_holds_the_least_is_next_and_whoever_leaves_is_no_longer_waited_for() {
        let permits = Permits::new(3);
        let (first, second) = (now(&permits, of(1, false)).unwrap(), now(&permits, of(1, false)).unwrap());
        let third = now(&permits, of(4, false)).unwrap();
        let mut same = pin!(permits.take(of(1, false)));
        let mut gone = Box::pin(permits.take(of(2, false)));
        let mut other = pin!(permits.take(of(3, false)));
        for waiting in [same.as_mut().now_or_never(), gone.as_mut().now_or_never()] {
            assert!(waiting.is_none());
        }
        assert!(other.as_mut().now_or_never().is_none());
        drop(gone);
        drop(first);
        assert!(same.as_mut().now_or_never().is_none());
        let other = other.now_or_never().unwrap().unwrap();
        drop((second, third, other));
        assert!(same.now_or_never().is_some());
        assert_eq!(permits.lock().held, 0);
    }

    #[test]
    fn a_place_that_was_granted_to_one_who_left_is_free_again() {
        let permits = Permits::new(1);
        let held = now(&permits, of(1, false)).unwrap();
        let mut waiting = Box::pin(permits.take(of(2, false)));
        assert!(waiting.as_mut().now_or_never().is_none());
        drop(held);
        drop(waiting);
        assert!(now(&permits, of(3, false)).is_some());
    }

    #[test]
    fn a_full_queue_refuses_at_once_and_first_the_account_that_fills_it() {
        let permits = Permits::new(1);
        let _held = now(&permits, of(1, true)).unwrap();
        let wait = |account| {
            let mut waiting = Box::pin(permits.take(of(account, true)));
            (waiting.as_mut().now_or_never(), waiting)
        };
        let waiting: Vec<_> = (0..MAX_WAITING_PER_ACCOUNT).map(|_| wait(1).1).collect();
        assert_eq!(wait(1).0.unwrap().err(), Some(Refused::Full));
        assert!(wait(2).0.is_none());
        let others: Vec<_> = (MAX_WAITING_PER_ACCOUNT..MAX_WAITING).map(|_| wait(2).1).collect();
        assert_eq!(wait(3).0.unwrap().err(), Some(Refused::Full), "all together");
        drop((waiting, others));
        assert!(wait(1).0.is_none());
    }
}
