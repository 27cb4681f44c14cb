//! Numbers of counters that may have gaps, where they come from for a call that needs one.
//!
//! A counter that a transaction advances is locked until that transaction ends: those of an account run one after the other,
//! and each pays for its own commit. So while several calls want numbers of a counter, they get them before they write, and
//! one short statement takes numbers for all that wait. A call that is alone takes its number together with what it writes,
//! which leaves no gap if it fails. Its last statement can do that, because the call knows beforehand which number it will get:
//! the one after the last that this process has seen, or after the last in the database where other processes take numbers
//! too. Should it be wrong, the statement fails, and the call takes its number in a transaction.

use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, PoisonError};

use chassis_base::{AccountId, Error};

use super::turn::{Counter, MAX_WAIT};
use crate::db::Db;
use crate::numbering;

/// How many counters are remembered that nobody wants a number of.
const MAX_REMEMBERED: usize = 10_000;

/// The calls of this process that want numbers, by counter.
#[derive(Default)]
pub(crate) struct Numbers(Mutex<HashMap<Counter, Demand>>);

impl Numbers {
    /// A transaction that took this number has committed.
    pub(super) fn note(&self, counter: &Counter, number: i64) {
        let mut demands = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(demand) = demands.get_mut(counter) {
            demand.note(number);
        }
    }
}

#[derive(Default)]
struct Demand {
    /// Those that are under way, with or without a number.
    calls: usize,
    /// Those that wait for a number.
    waiting: usize,
    /// Numbers that were taken for those that wait.
    taken: VecDeque<i64>,
    /// The last number that is known to be taken.
    last: Option<i64>,
    /// Whether another process has taken numbers since this one did before.
    is_shared: bool,
}

/// The number of a call.
pub(super) enum Number {
    /// It is taken.
    Taken(i64),
    /// It is probably this one, but not taken yet.
    Expected(i64),
}

impl Demand {
    /// Notes the number that is taken next.
    fn note(&mut self, next: i64) {
        self.is_shared = self.last.is_some_and(|last| last + 1 != next);
        self.last = Some(next);
    }
}

/// A call that wants a number. Others see that it is under way until this is dropped.
pub(super) struct NumberRequest<'a> {
    db: &'a Db,
    counter: Counter,
    waits: bool,
    /// The number that it expects to have when it commits.
    expected: Option<i64>,
}

impl<'a> NumberRequest<'a> {
    pub(super) fn new(db: &'a Db, account: AccountId, counter: &str) -> Self {
        let request = Self { db, counter: (account, counter.to_owned()), waits: false, expected: None };
        request.with_demand(|demand| demand.calls += 1);
        request
    }

    pub(super) async fn number(&mut self) -> Result<Number, Error> {
        let is_alone = self.with_demand(|demand| demand.calls == 1);
        if is_alone {
            let number = self.expect().await?;
            return Ok(Number::Expected(number));
        }
        self.waits = true;
        self.with_demand(|demand| demand.waiting += 1);
        // Not the turn of transactions, which wait for it with a connection: this waits for a connection in its turn.
        let (account, counter) = self.counter.clone();
        let _turn = self.db.turns.wait((account, format!("{counter}/ahead")), MAX_WAIT).await;
        if let Some(number) = self.pick() {
            return Ok(Number::Taken(number));
        }
        let wanted = self.with_demand(|demand| i64::try_from(demand.waiting).unwrap_or(1));
        let advance =
            async |connection: &mut _| numbering::advance(connection, account, &counter, wanted).await;
        let last = self.db.autocommit(advance).await?;
        let own = self.with_demand(|demand| {
            let first = last - wanted + 1;
            demand.note(first);
            demand.last = Some(last);
            demand.waiting -= 1;
            demand.taken.extend(first + 1..=last);
            first
        });
        self.waits = false;
        Ok(Number::Taken(own))
    }

    /// The number after the last one, which is taken with the commit.
    async fn expect(&mut self) -> Result<i64, Error> {
        let known = self.with_demand(|demand| demand.last.filter(|_| !demand.is_shared));
        let last = if let Some(last) = known {
            last
        } else {
            let (account, counter) = &self.counter;
            let find = async |connection: &mut _| numbering::last(connection, *account, counter).await;
            self.db.read(find).await?
        };
        self.with_demand(|demand| demand.note(last + 1));
        self.expected = Some(last + 1);
        Ok(last + 1)
    }

    /// The call expects to keep this number, which it has taken in a transaction.
    pub(super) fn took(&mut self, number: i64) {
        self.with_demand(|demand| demand.note(number));
        self.expected = Some(number);
    }

    /// The call has committed with the number that it expected.
    pub(super) fn committed(mut self) {
        self.expected = None;
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
        if demands.len() >= MAX_REMEMBERED {
            demands.retain(|_, demand| demand.calls > 0);
        }
        change(demands.entry(self.counter.clone()).or_default())
    }
}

impl Drop for NumberRequest<'_> {
    fn drop(&mut self) {
        let mut demands = self.db.numbers.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(demand) = demands.get_mut(&self.counter) {
            demand.calls -= 1;
            demand.waiting -= usize::from(self.waits);
            if let Some(number) = self.expected
                && demand.last == Some(number)
            {
                demand.last = Some(number - 1);
            }
            if demand.calls == 0 {
                // Numbers that were taken for calls that gave up are lost.
                demand.taken.clear();
            }
        }
    }
}
