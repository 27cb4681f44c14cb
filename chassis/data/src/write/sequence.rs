//! Numbers of counters that must have no gaps, for calls that write without a transaction.
//!
//! Such a call takes its number with its last statement, which is refused if the number is not the next one. So it knows the
//! number beforehand, and the counter is locked only while that statement runs. Several calls of this process stand in line:
//! each expects the number after that of the call before it, prepares what it writes meanwhile, and writes when that call
//! has committed. If that call fails, those behind it expected wrong numbers. The line is broken up: all of them run again and
//! form a new one, whose first looks which number is next. If they locked the counter in transactions instead, these would take
//! the numbers that the new line expects, which would fail again, and so on for as long as there are several calls. The
//! counter's row is what keeps numbers right, also between processes; the line only saves failures.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use chassis_base::{AccountId, Error};
use tokio::sync::watch;

use super::turn::{Counter, MAX_WAIT};
use crate::db::Db;
use crate::numbering;

/// How many counters are remembered at which nobody stands.
const MAX_REMEMBERED: usize = 10_000;

/// The lines of this process, by counter.
#[derive(Default)]
pub(crate) struct Sequences(Mutex<HashMap<Counter, Line>>);

#[derive(Default)]
struct Line {
    /// The last number that is known to be taken.
    last: Option<i64>,
    /// Whether another process has taken numbers since this one did before.
    is_shared: bool,
    /// The number that the last call in line expects, and whether that call has committed.
    tail: Option<(i64, watch::Receiver<bool>)>,
    /// How often the line was broken up.
    breaks: u64,
}

impl Line {
    /// The next number, if it is known, and the call that has the one before it.
    fn next(&self) -> Option<(i64, Option<watch::Receiver<bool>>)> {
        match &self.tail {
            Some((number, call)) => Some((number + 1, Some(call.clone()))),
            None => self.last.filter(|_| !self.is_shared).map(|last| (last + 1, None)),
        }
    }

    /// Lets the next call look which number is next.
    fn break_up(&mut self) {
        self.breaks += 1;
        self.tail = None;
        self.is_shared = true;
    }

    /// Notes a number that was taken.
    fn note(&mut self, number: i64) {
        self.is_shared = self.last.is_some_and(|last| last + 1 != number);
        self.last = Some(number);
    }
}

impl Sequences {
    fn with_line<T>(&self, counter: &Counter, change: impl FnOnce(&mut Line) -> T) -> T {
        let mut lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(line) = lines.get_mut(counter) {
            return change(line);
        }
        if lines.len() >= MAX_REMEMBERED {
            lines.retain(|_, line| line.tail.is_some());
        }
        change(lines.entry(counter.clone()).or_default())
    }

    /// A transaction that took this number has committed.
    pub(super) fn note(&self, counter: &Counter, number: i64) {
        self.with_line(counter, |line| line.note(number));
    }
}

/// The place of a call in line. It is left when this is dropped.
pub(super) struct Place<'a> {
    db: &'a Db,
    counter: Counter,
    number: i64,
    before: Option<watch::Receiver<bool>>,
    committed: watch::Sender<bool>,
    /// How often the line had been broken up before.
    breaks: u64,
}

impl<'a> Place<'a> {
    pub(super) async fn join(db: &'a Db, account: AccountId, counter: &str) -> Result<Self, Error> {
        let counter = (account, counter.to_owned());
        let known = Self::stand(db, &counter, None);
        if let Some(place) = known {
            return Ok(place);
        }
        let find = async |connection: &mut _| numbering::last(connection, account, &counter.1).await;
        let last = db.read(find).await?;
        Self::stand(db, &counter, Some(last)).ok_or(Error::Raced)
    }

    /// Stands behind the last in line. If there is none, `last` is the last number in the database.
    fn stand(db: &'a Db, counter: &Counter, last: Option<i64>) -> Option<Self> {
        db.sequences.with_line(counter, |line| {
            let last =
                last.filter(|_| line.tail.is_none()).map(|last| last.max(line.last.unwrap_or_default()));
            let in_database = last.map(|last| (last + 1, None));
            let (number, before) = in_database.or_else(|| line.next())?;
            let (committed, ended) = watch::channel(false);
            line.tail = Some((number, ended));
            Some(Self { db, counter: counter.clone(), number, before, committed, breaks: line.breaks })
        })
    }

    pub(super) fn number(&self) -> i64 {
        self.number
    }

    /// Waits until the call before this one has committed. Fails if it has not.
    pub(super) async fn wait(&mut self) -> Result<(), Error> {
        let Some(mut before) = self.before.take() else { return Ok(()) };
        match tokio::time::timeout(MAX_WAIT, before.wait_for(|committed| *committed)).await {
            Ok(Ok(_)) => Ok(()),
            // It has left without a commit, or takes too long.
            Ok(Err(_)) | Err(_) => Err(Error::Raced),
        }
    }

    /// The call has committed with its number.
    pub(super) fn committed(self) {
        self.db.sequences.with_line(&self.counter, |line| line.note(self.number));
        self.committed.send_replace(true);
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        let (has_committed, own) = (*self.committed.borrow(), self.committed.subscribe());
        self.db.sequences.with_line(&self.counter, |line| {
            if line.breaks != self.breaks {
                return;
            }
            if !has_committed {
                line.break_up();
            } else if line.tail.as_ref().is_some_and(|(_, call)| call.same_channel(&own)) {
                line.tail = None;
            }
        });
    }
}
