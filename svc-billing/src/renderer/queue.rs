//! A fair queue for the slots of the pool. Files of final documents come before PDFs that are only viewed, accounts take
//! turns, and no account holds more than half of the slots while another one waits. Pure: knows neither threads nor time.

use std::collections::{HashMap, VecDeque};

use chassis_base::AccountId;

/// How many renders of one priority an account may have waiting.
pub(crate) const MAX_WAITING_PER_ACCOUNT: usize = 16;
/// How many may wait altogether.
pub(crate) const MAX_WAITING: usize = 512;

/// In the order in which they are served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Priority {
    /// A PDF that is stored as a file.
    Final,
    /// A PDF that is only viewed: of a draft, or of a final document in its current state.
    View,
}

/// The queue is full.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Full;

/// The waiting requests of one priority, by account. The account whose turn is next comes first.
struct Lane<T>(VecDeque<(AccountId, VecDeque<T>)>);

impl<T> Lane<T> {
    fn of(&mut self, account: AccountId) -> Option<&mut VecDeque<T>> {
        self.0.iter_mut().find(|(of, _)| *of == account).map(|(_, waiting)| waiting)
    }

    /// Takes the next request of the first account that is allowed. That account goes to the end of the line.
    fn take(&mut self, is_allowed: impl Fn(AccountId) -> bool) -> Option<(AccountId, T)> {
        let index = self.0.iter().position(|(account, _)| is_allowed(*account))?;
        let (account, mut waiting) = self.0.remove(index)?;
        let taken = waiting.pop_front();
        if !waiting.is_empty() {
            self.0.push_back((account, waiting));
        }
        taken.map(|taken| (account, taken))
    }
}

pub(crate) struct Queue<T> {
    slots: usize,
    /// How many slots each account holds.
    held: HashMap<AccountId, usize>,
    /// By priority.
    lanes: [Lane<T>; 2],
}

impl<T> Queue<T> {
    pub(crate) fn new(slots: usize) -> Self {
        let lanes = [Lane(VecDeque::new()), Lane(VecDeque::new())];
        Self { slots: slots.max(1), held: HashMap::new(), lanes }
    }

    pub(crate) fn push(&mut self, account: AccountId, priority: Priority, entry: T) -> Result<(), Full> {
        if self.waiting() >= MAX_WAITING {
            return Err(Full);
        }
        let lane = &mut self.lanes[priority as usize];
        match lane.of(account) {
            Some(waiting) if waiting.len() >= MAX_WAITING_PER_ACCOUNT => return Err(Full),
            Some(waiting) => waiting.push_back(entry),
            None => lane.0.push_back((account, VecDeque::from([entry]))),
        }
        Ok(())
    }

    pub(crate) fn waiting(&self) -> usize {
        self.lanes.iter().flat_map(|lane| &lane.0).map(|(_, waiting)| waiting.len()).sum()
    }

    /// Removes requests that nobody waits for any more.
    pub(crate) fn retain(&mut self, keep: impl Fn(&T) -> bool) {
        for lane in &mut self.lanes {
            for (_, waiting) in &mut lane.0 {
                waiting.retain(&keep);
            }
            lane.0.retain(|(_, waiting)| !waiting.is_empty());
        }
    }

    /// The next to be served, if there is a slot for it; [`Queue::release`] gives the slot back.
    pub(crate) fn next(&mut self) -> Option<(AccountId, T)> {
        if self.held.values().sum::<usize>() >= self.slots {
            return None;
        }
        let (share, held) = (self.slots.div_ceil(2), &self.held);
        let within = |account| held.get(&account).copied().unwrap_or_default() < share;
        let [finals, drafts] = &mut self.lanes;
        let taken = finals.take(within).or_else(|| drafts.take(within));
        // An account above its share gets a slot only when nobody below its share waits.
        let taken = taken.or_else(|| finals.take(|_| true)).or_else(|| drafts.take(|_| true))?;
        *self.held.entry(taken.0).or_default() += 1;
        Some(taken)
    }

    pub(crate) fn release(&mut self, account: AccountId) {
        if let Some(held) = self.held.get_mut(&account) {
            *held -= 1;
            if *held == 0 {
                self.held.remove(&account);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use uuid::Uuid;

    use super::*;

    fn account(number: u128) -> AccountId {
        AccountId::trust(Uuid::from_u128(number))
    }

    #[test]
    fn the_final_of_another_account_is_next_however_many_drafts_wait() {
        let mut queue = Queue::new(2);
        let (greedy, other) = (account(1), account(2));
        for draft in 0..MAX_WAITING_PER_ACCOUNT {
            queue.push(greedy, Priority::View, draft).unwrap();
        }
        assert_eq!(queue.push(greedy, Priority::View, 99), Err(Full));
        assert_eq!((queue.next(), queue.next()), (Some((greedy, 0)), Some((greedy, 1))), "nobody else waits");
        assert_eq!(queue.next(), None, "there are two slots");
        queue.push(other, Priority::Final, 100).unwrap();
        queue.push(greedy, Priority::Final, 101).unwrap();
        queue.release(greedy);
        assert_eq!(queue.next(), Some((other, 100)));
        queue.release(other);
        assert_eq!(queue.next(), Some((greedy, 101)), "finals come before drafts");
    }

    #[test]
    fn a_single_final_waits_for_one_turn_of_an_account_with_hundreds() {
        let mut queue = Queue::new(2);
        let (busy, other) = (account(1), account(2));
        let accepted = (0..300).filter(|entry| queue.push(busy, Priority::Final, *entry).is_ok()).count();
        assert_eq!((accepted, queue.waiting()), (MAX_WAITING_PER_ACCOUNT, MAX_WAITING_PER_ACCOUNT));
        assert!(queue.next().is_some() && queue.next().is_some(), "it has both slots");
        queue.push(other, Priority::Final, 1_000).unwrap();
        queue.release(busy);
        assert_eq!(queue.next(), Some((other, 1_000)));
        assert_eq!(queue.next(), None);
    }

    #[test]
    fn accounts_take_turns() {
        let mut queue = Queue::new(1);
        for entry in 0..3 {
            queue.push(account(1), Priority::View, entry).unwrap();
        }
        queue.push(account(2), Priority::View, 10).unwrap();
        let mut order = Vec::new();
        while let Some((of, entry)) = queue.next() {
            order.push(entry);
            queue.release(of);
        }
        assert_eq!(order, [0, 10, 1, 2]);
    }

    #[test]
    fn those_that_nobody_waits_for_make_room() {
        let mut queue = Queue::new(1);
        for entry in 0..MAX_WAITING_PER_ACCOUNT {
            queue.push(account(1), Priority::View, entry).unwrap();
        }
        queue.retain(|entry| *entry == 3);
        queue.push(account(1), Priority::View, 50).unwrap();
        assert_eq!(queue.next(), Some((account(1), 3)));
    }

    #[test]
    fn all_accounts_together_wait_no_longer_than_the_queue_is() {
        let mut queue = Queue::new(1);
        let many = (0..).take(MAX_WAITING / MAX_WAITING_PER_ACCOUNT).map(account);
        for waiting in many.flat_map(|account| [account; MAX_WAITING_PER_ACCOUNT]) {
            queue.push(waiting, Priority::View, 0).unwrap();
        }
        let late = account(1_000);
        assert_eq!(queue.push(late, Priority::Final, 1), Err(Full));
        assert!(queue.next().is_some());
        queue.push(late, Priority::Final, 1).unwrap();
    }

    #[derive(Clone, Debug)]
    enum Step {
        Push(u128, bool),
        Next,
        Release(usize),
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            3 => (0..4_u128, any::<bool>()).prop_map(|(of, is_final)| Step::Push(of, is_final)),
            2 => Just(Step::Next),
            2 => (0..8_usize).prop_map(Step::Release),
        ]
    }

    proptest! {
        #[test]
        fn shares_priorities_and_bounds_hold_in_any_order(
            slots in 1..6_usize,
            steps in proptest::collection::vec(step(), 1..200),
        ) {
            let mut queue = Queue::new(slots);
            let mut waiting: Vec<(AccountId, bool, usize)> = Vec::new();
            let mut running: Vec<AccountId> = Vec::new();
            for (number, step) in steps.into_iter().enumerate() {
                match step {
                    Step::Push(of, is_final) => {
                        let of = account(of);
                        let priority = if is_final { Priority::Final } else { Priority::View };
                        let alike = waiting.iter().filter(|entry| (entry.0, entry.1) == (of, is_final)).count();
                        let pushed = queue.push(of, priority, number);
                        prop_assert_eq!(pushed.is_ok(), alike < MAX_WAITING_PER_ACCOUNT);
                        if pushed.is_ok() {
                            waiting.push((of, is_final, number));
                        }
                    }
                    Step::Next => {
                        let held = |of: AccountId| running.iter().filter(|other| **other == of).count();
                        let share = slots.div_ceil(2);
                        let Some((of, entry)) = queue.next() else {
                            prop_assert!(running.len() == slots || waiting.is_empty());
                            continue;
                        };
                        prop_assert!(running.len() < slots);
                        let place = waiting.iter().position(|known| known.2 == entry).unwrap();
                        let taken = waiting.remove(place);
                        prop_assert_eq!(taken.0, of);
                        let earlier = |known: &(AccountId, bool, usize)| (known.0, known.1) == (of, taken.1) && known.2 < entry;
                        prop_assert!(!waiting.iter().any(earlier), "first come, first served within an account");
                        let below = |known: &&(AccountId, bool, usize)| held(known.0) < share;
                        if held(of) >= share {
                            prop_assert!(!waiting.iter().any(|known| below(&known)), "another one waits below its share");
                        } else if !taken.1 {
                            prop_assert!(!waiting.iter().filter(below).any(|known| known.1), "a final waits");
                        }
                        running.push(of);
                    }
                    Step::Release(place) if place < running.len() => queue.release(running.remove(place)),
                    Step::Release(_) => {}
                }
            }
        }
    }
}
