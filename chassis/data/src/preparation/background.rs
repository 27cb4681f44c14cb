//! Prepares lists after the reads that noticed it, in tasks of the process. A crash loses nothing: the next read notices it
//! again.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use chassis_base::{Account, AccountId};
use chassis_rpc::scope;
use chrono::{DateTime, TimeDelta, Utc};

use super::{Preparation, step};
use crate::db::Db;

/// How many lists a process prepares at the same time.
const MAX_TASKS: usize = 2;
/// How long a list is left alone after there was nothing to do, or something went wrong.
const PAUSE: TimeDelta = TimeDelta::minutes(1);
/// How many lists are remembered. More are forgotten, and then tried sooner than they had to be.
const MAX_REMEMBERED: usize = 10_000;

type Key = (AccountId, String);

/// The lists that this process prepares.
#[derive(Default)]
pub(crate) struct Preparing(Mutex<State>);

#[derive(Default)]
struct State {
    running: Vec<Key>,
    paused_until: HashMap<Key, DateTime<Utc>>,
}

impl Preparing {
    fn with<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Whether the list may be prepared now. Then it is running.
    fn start(&self, key: &Key, now: DateTime<Utc>) -> bool {
        self.with(|state| {
            let is_paused = state.paused_until.get(key).is_some_and(|until| now < *until);
            let may_start = !is_paused && state.running.len() < MAX_TASKS && !state.running.contains(key);
            if may_start {
                state.running.push(key.clone());
            }
            may_start
        })
    }

    fn end(&self, key: Key, paused_until: Option<DateTime<Utc>>) {
        self.with(|state| {
            state.running.retain(|running| *running != key);
            if state.paused_until.len() >= MAX_REMEMBERED {
                state.paused_until.clear();
            }
            match paused_until {
                Some(until) => state.paused_until.insert(key, until),
                None => state.paused_until.remove(&key),
            };
        });
    }
}

impl Db {
    /// Prepares these lists after a while.
    pub(crate) fn prepare_soon(&self, noticed: Vec<Preparation>) {
        for preparation in noticed {
            let key = (preparation.account, preparation.list.clone());
            if !self.preparing.start(&key, self.clock.now()) {
                continue;
            }
            let db = self.clone();
            tokio::spawn(async move {
                let work = db.prepare(&preparation);
                let has_changed = scope::background(preparation.account, work).await;
                let paused_until = (!has_changed).then(|| db.clock.now() + PAUSE);
                db.preparing.end(key, paused_until);
            });
        }
    }

    /// Whether there was something to do.
    async fn prepare(&self, preparation: &Preparation) -> bool {
        let account = Account::unknown(preparation.account);
        let mut has_changed = false;
        loop {
            let step = Box::pin(self.record(&account, preparation, step::run)).await;
            match step {
                Ok(step::Done { has_changed: changed, is_last }) => {
                    has_changed |= changed;
                    if is_last {
                        return has_changed;
                    }
                }
                Err(error) => {
                    tracing::warn!(%error, list = preparation.list, "list not prepared; its pages stay right, but slow");
                    return false;
                }
            }
        }
    }
}
