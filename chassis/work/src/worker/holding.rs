//! The partitions that one worker holds. The [`keeper`](super::keeper) changes them; the worker marks those in which it
//! has jobs. Both happen under one lock, so that no partition is given back while a job begins in it.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use chrono::{DateTime, Utc};

/// The leases of one worker: their fences by partition.
pub(super) type Leases = BTreeMap<u16, i64>;

/// How the leases of a worker have changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Change {
    /// Some are new. A partition that was lost and leased again has another fence, and is new.
    pub has_new: bool,
    pub has_lost: bool,
}

#[derive(Default)]
pub(super) struct Holding(Mutex<State>);

#[derive(Default)]
struct State {
    leases: Leases,
    /// At least until then no other process can take one of them.
    until: DateTime<Utc>,
    /// How many jobs are queued or running in each partition.
    jobs: BTreeMap<u16, usize>,
}

impl Holding {
    pub(super) fn leases(&self) -> Leases {
        self.lock().leases.clone()
    }

    pub(super) fn replace(&self, leases: Leases, until: DateTime<Utc>) -> Change {
        let mut state = self.lock();
        let lacks = |leases: &Leases, (partition, fence): (&u16, &i64)| leases.get(partition) != Some(fence);
        let has_new = leases.iter().any(|lease| lacks(&state.leases, lease));
        let has_lost = state.leases.iter().any(|lease| lacks(&leases, lease));
        (state.leases, state.until) = (leases, until);
        Change { has_new, has_lost }
    }

    /// Removes up to `count` partitions without jobs, so that no job begins in them anymore.
    pub(super) fn remove_idle(&self, count: usize) -> Vec<u16> {
        let mut state = self.lock();
        let idle = state.leases.keys().filter(|partition| !state.jobs.contains_key(*partition));
        let idle: Vec<u16> = idle.copied().take(count).collect();
        state.leases.retain(|partition, _| !idle.contains(partition));
        idle
    }

    /// Adds a job, unless the partition is not held.
    pub(super) fn add_job(&self, partition: u16) -> bool {
        let mut state = self.lock();
        let is_held = state.leases.contains_key(&partition);
        if is_held {
            *state.jobs.entry(partition).or_default() += 1;
        }
        is_held
    }

    pub(super) fn remove_job(&self, partition: u16) {
        let mut state = self.lock();
        let left = state.jobs.get(&partition).map_or(0, |jobs| jobs.saturating_sub(1));
        if left == 0 {
            state.jobs.remove(&partition);
        } else {
            state.jobs.insert(partition, left);
        }
    }

    pub(super) fn fence(&self, partition: u16) -> Option<i64> {
        self.lock().leases.get(&partition).copied()
    }

    /// Whether the leases have not expired.
    pub(super) fn is_current(&self, now: DateTime<Utc>) -> bool {
        now < self.lock().until
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_partition_with_a_job_is_not_given_back() {
        let holding = Holding::default();
        holding.replace([(1, 1), (2, 1), (3, 1)].into(), DateTime::UNIX_EPOCH);
        assert!(holding.add_job(1) && holding.add_job(1) && !holding.add_job(9));
        assert_eq!(holding.remove_idle(3), [2, 3]);
        assert!(!holding.add_job(2), "no job begins in what was given back");
        holding.remove_job(1);
        assert_eq!(holding.remove_idle(3), [0; 0]);
        holding.remove_job(1);
        assert_eq!(holding.remove_idle(3), [1]);
    }

    #[test]
    fn a_lease_with_another_fence_is_lost_and_new() {
        let holding = Holding::default();
        let change = |fences: &[(u16, i64)]| {
            let leases = fences.iter().copied().collect();
            let Change { has_new, has_lost } = holding.replace(leases, DateTime::UNIX_EPOCH);
            (has_new, has_lost)
        };
        assert_eq!(change(&[(1, 1), (2, 1)]), (true, false));
        assert_eq!(change(&[(1, 1), (2, 1)]), (false, false));
        assert_eq!(change(&[(1, 1), (2, 2)]), (true, true));
        assert_eq!(change(&[(1, 1)]), (false, true));
    }
}
