//! The accounts of one worker that are not ready yet: they become due later, or are paused.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use chassis_base::{Account, AccountId};
use chrono::{DateTime, TimeDelta, Utc};
use tokio::time::Instant;

use super::backoff;

/// The first pause of an account whose job failed. Real time, as for polls.
const INITIAL_BACKOFF: TimeDelta = TimeDelta::milliseconds(500);

/// The service's time, which decides what is due, and the real time, which ends pauses after failures.
pub(super) type Now = (DateTime<Utc>, Instant);

/// Why an account is not ready although it is due.
enum Pause {
    /// Its job requested the pause.
    Asked { until: DateTime<Utc> },
    /// Its jobs fail; `failures` counts them in a row.
    Failing { failures: u32, until: Instant },
}

impl Pause {
    fn is_over(&self, (now, real): Now) -> bool {
        match self {
            Self::Asked { until } => *until <= now,
            Self::Failing { until, .. } => *until <= real,
        }
    }
}

#[derive(Default)]
pub(super) struct Schedule {
    waiting: HashMap<AccountId, (DateTime<Utc>, Arc<Account>)>,
    /// The same accounts ordered by time, the earliest first.
    moments: BTreeSet<(DateTime<Utc>, AccountId)>,
    pauses: HashMap<AccountId, Pause>,
}

impl Schedule {
    /// Sets when the account is due; replaces an earlier time.
    pub(super) fn put(&mut self, account: Arc<Account>, at: DateTime<Utc>) {
        let id = account.id;
        self.remove(id);
        self.moments.insert((at, id));
        self.waiting.insert(id, (at, account));
    }

    pub(super) fn remove(&mut self, account: AccountId) {
        if let Some((at, _)) = self.waiting.remove(&account) {
            self.moments.remove(&(at, account));
        }
    }

    /// Whether no account waits.
    pub(super) fn is_empty(&self) -> bool {
        self.moments.is_empty()
    }

    /// Whether an account waits that is due, because it is paused.
    pub(super) fn is_overdue(&self, now: DateTime<Utc>) -> bool {
        self.moments.first().is_some_and(|(at, _)| *at <= now)
    }

    /// Removes and returns the accounts that are due and not paused, the longest due first.
    pub(super) fn take_ready(&mut self, now: Now) -> Vec<Arc<Account>> {
        let due = self.moments.iter().take_while(|(at, _)| *at <= now.0).map(|(_, account)| *account);
        let is_paused =
            |account: &AccountId| self.pauses.get(account).is_some_and(|pause| !pause.is_over(now));
        let ready: Vec<AccountId> = due.filter(|account| !is_paused(account)).collect();
        let mut taken = Vec::with_capacity(ready.len());
        for account in ready {
            if let Some((at, settings)) = self.waiting.remove(&account) {
                self.moments.remove(&(at, account));
                taken.push(settings);
            }
        }
        taken
    }

    /// Ends the pause of an account whose job succeeded.
    pub(super) fn resume(&mut self, account: AccountId) {
        self.pauses.remove(&account);
    }

    /// Pauses the account until then, even if it is due.
    pub(super) fn pause_until(&mut self, account: AccountId, until: DateTime<Utc>) {
        self.pauses.insert(account, Pause::Asked { until });
    }

    /// Pauses the account, for longer with every failure in a row but at most for `most`, and makes it due afterwards.
    pub(super) fn pause_failing(&mut self, account: Arc<Account>, most: TimeDelta, (now, real): Now) {
        let before = match self.pauses.get(&account.id) {
            Some(Pause::Failing { failures, .. }) => *failures,
            _ => 0,
        };
        let failures = before.saturating_add(1);
        let wait = backoff(failures, INITIAL_BACKOFF, most).to_std().unwrap_or_default();
        self.pauses.insert(account.id, Pause::Failing { failures, until: real + wait });
        self.put(account, now);
    }

    /// Drops accounts whose partition another process holds now.
    pub(super) fn retain(&mut self, ours: impl Fn(AccountId) -> bool) {
        self.waiting.retain(|account, _| ours(*account));
        self.moments.retain(|(_, account)| ours(*account));
        self.pauses.retain(|account, _| ours(*account));
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use uuid::Uuid;

    use super::*;

    fn account(number: u128) -> Arc<Account> {
        Arc::new(Account::unknown(AccountId::trust(Uuid::from_u128(number))))
    }

    fn ids(accounts: &[Arc<Account>]) -> Vec<u128> {
        accounts.iter().map(|account| account.id.uuid().as_u128()).collect()
    }

    #[test]
    fn accounts_come_when_they_are_due_and_the_last_word_counts() {
        let (mut schedule, now, real) = (Schedule::default(), DateTime::UNIX_EPOCH, Instant::now());
        let at = |seconds| now + TimeDelta::seconds(seconds);
        for (number, seconds) in [(1, 5), (2, 3), (3, 9), (4, 1)] {
            schedule.put(account(number), at(seconds));
        }
        schedule.put(account(1), at(2));
        schedule.remove(account(4).id);
        assert_eq!(ids(&schedule.take_ready((at(5), real))), [1, 2]);
        assert!(schedule.take_ready((at(5), real)).is_empty(), "each is taken once");
        schedule.retain(|account| account.uuid().as_u128() != 3);
        assert!(schedule.take_ready((at(9), real)).is_empty());
    }

    #[test]
    fn a_pause_that_was_asked_for_holds_whatever_is_due() {
        let (mut schedule, now, real) = (Schedule::default(), DateTime::UNIX_EPOCH, Instant::now());
        schedule.pause_until(account(1).id, now + TimeDelta::hours(1));
        schedule.put(account(1), now);
        assert!(schedule.take_ready((now + TimeDelta::minutes(59), real)).is_empty());
        assert_eq!(ids(&schedule.take_ready((now + TimeDelta::hours(1), real))), [1]);
    }

    #[test]
    fn failures_in_a_row_wait_longer_by_real_time_until_one_goes_well() {
        let (mut schedule, now, mut real) = (Schedule::default(), DateTime::UNIX_EPOCH, Instant::now());
        let mut waits = Vec::new();
        for _ in 0..6 {
            schedule.pause_failing(account(1), TimeDelta::seconds(30), (now, real));
            let later = (now + TimeDelta::days(1), real);
            assert!(schedule.take_ready(later).is_empty(), "the service's clock does not matter");
            let begin = real;
            while schedule.take_ready((now, real)).is_empty() {
                real += Duration::from_millis(50);
            }
            waits.push(real - begin);
        }
        assert!(waits.is_sorted() && waits[0] < waits[5], "{waits:?}");
        schedule.resume(account(1).id);
        schedule.put(account(1), now);
        assert_eq!(ids(&schedule.take_ready((now, real))), [1]);
    }
}
