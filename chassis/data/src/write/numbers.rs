//! Numbers that are taken before the transaction that uses them, from counters that may have gaps.
//!
//! A counter that a transaction advances is locked until that transaction ends: those of an account run one after the other,
//! and each pays for its own commit. So while several calls want numbers of a counter, they get them before they begin, and
//! one short statement takes numbers for all that wait. A call that is alone takes its number within its transaction, which
//! costs no round trip of its own and leaves no gap if it fails.

use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, PoisonError};

use chassis_base::{AccountId, Error};

use super::turn::{Counter, MAX_WAIT};
use crate::db::Db;
use crate::numbering;

/// The calls of this process that want numbers, by counter.
#[derive(Default)]
pub(crate) struct Numbers(Mutex<HashMap<Counter, Demand>>);

#[derive(Default)]
struct Demand {
    /// Those that are under way, with or without a number.
    calls: usize,
    /// Those that wait for a number.
    waiting: usize,
    /// Numbers that were taken for those that wait.
    taken: VecDeque<i64>,
}

/// A call that wants a number. Others see that it is under way until this is dropped.
pub(super) struct Applicant<'a> {
    db: &'a Db,
    counter: Counter,
    waits: bool,
}

impl<'a> Applicant<'a> {
    pub(super) fn new(db: &'a Db, account: AccountId, counter: &str) -> Self {
        let applicant = Self { db, counter: (account, counter.to_owned()), waits: false };
        applicant.with_demand(|demand| demand.calls += 1);
        applicant
    }

    /// A number, or `None` if the call is alone and takes it within its transaction.
    pub(super) async fn number(&mut self) -> Result<Option<i64>, Error> {
        self.waits = self.with_demand(|demand| {
            let is_alone = demand.calls == 1;
            demand.waiting += usize::from(!is_alone);
            !is_alone
        });
        if !self.waits {
            return Ok(None);
        }
        // Not the turn of transactions, which wait for it with a connection: this waits for a connection in its turn.
        let (account, counter) = self.counter.clone();
        let _turn = self.db.turns.wait((account, format!("{counter}/ahead")), MAX_WAIT).await;
        if let Some(number) = self.pick() {
            return Ok(Some(number));
        }
        let wanted = self.with_demand(|demand| i64::try_from(demand.waiting).unwrap_or(1));
        let advance =
            async |connection: &mut _| numbering::advance(connection, account, &counter, wanted).await;
        let last = self.db.autocommit(advance).await?;
        self.with_demand(|demand| demand.taken.extend(last - wanted + 1..=last));
        Ok(self.pick())
    }

    fn pick(&mut self) -> Option<i64> {
        let picked = self.with_demand(|demand| {
            let picked = demand.taken.pop_front();
            demand.waiting -= usize::from(picked.is_some());
            picked
        });
        self.waits = picked.is_none();
        picked
    }

    fn with_demand<T>(&self, change: impl FnOnce(&mut Demand) -> T) -> T {
        let mut demands = self.db.numbers.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(demand) = demands.get_mut(&self.counter) {
            return change(demand);
        }
        change(demands.entry(self.counter.clone()).or_default())
    }
}

impl Drop for Applicant<'_> {
    fn drop(&mut self) {
        let mut demands = self.db.numbers.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(demand) = demands.get_mut(&self.counter) {
            demand.calls -= 1;
            demand.waiting -= usize::from(self.waits);
            if demand.calls == 0 {
                // Numbers that were taken for calls that gave up are lost.
                demands.remove(&self.counter);
            }
        }
    }
}
