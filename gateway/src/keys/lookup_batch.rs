//! Look-ups of keys for addresses that have failed too often. They are not refused, because such an address may also
//! send a valid key. Instead one query at a time answers all look-ups that wait: however many keys are tried, the
//! database runs one small statement, and look-ups of other addresses do not wait behind it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use chassis_base::Error;
use chassis_data::Db;
use tokio::sync::oneshot;

use super::{KeyWithAccount, store};

/// Most keys of one query.
const MAX_IDS: usize = 256;

/// The result of a look-up. An error is a text, because it is cloned for every waiter.
type Found = Result<Option<KeyWithAccount>, String>;

/// The waiters, by public id.
type Waiters = HashMap<String, Vec<oneshot::Sender<Found>>>;

/// Cheap to clone; clones share their query.
#[derive(Clone)]
pub(super) struct LookupBatch {
    db: Db,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    waiters: Waiters,
    /// Whether a task runs queries. Look-ups that arrive meanwhile are part of its next query.
    running: bool,
}

impl LookupBatch {
    pub(super) fn new(db: Db) -> Self {
        Self { db, state: Arc::default() }
    }

    pub(super) async fn find(&self, public_id: &str) -> Result<Option<KeyWithAccount>, Error> {
        let (sender, receiver) = oneshot::channel();
        let was_running = {
            let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
            state.waiters.entry(public_id.to_owned()).or_default().push(sender);
            std::mem::replace(&mut state.running, true)
        };
        if !was_running {
            // In a task of its own: this request may be canceled, and others wait for the same query.
            tokio::spawn(self.clone().run());
        }
        match receiver.await {
            Ok(found) => found.map_err(Error::Internal),
            Err(_) => Err(Error::Internal("a look-up of a key was aborted".to_owned())),
        }
    }

    /// Runs queries until nobody waits.
    async fn run(self) {
        loop {
            let waiters = self.next();
            if waiters.is_empty() {
                return;
            }
            let ids: Vec<&str> = waiters.keys().map(String::as_str).collect();
            let found = self.query(&ids).await.map_err(|error| error.to_string());
            for (id, senders) in waiters {
                let found = match &found {
                    Ok(rows) => Ok(rows.get(&id).cloned()),
                    Err(error) => Err(error.clone()),
                };
                for sender in senders {
                    // An error means that the request was canceled.
                    let _ = sender.send(found.clone());
                }
            }
        }
    }

    /// The waiters of the next query. Without any, the task ends: `running` is reset under the same lock
    /// under which the next waiter reads it.
    fn next(&self) -> Waiters {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.waiters.retain(|_, senders| senders.iter().any(|sender| !sender.is_closed()));
        state.running = !state.waiters.is_empty();
        if state.waiters.len() <= MAX_IDS {
            return std::mem::take(&mut state.waiters);
        }
        let ids: Vec<String> = state.waiters.keys().take(MAX_IDS).cloned().collect();
        ids.into_iter().filter_map(|id| state.waiters.remove_entry(&id)).collect()
    }

    /// The keys that exist, by public id.
    async fn query(&self, ids: &[&str]) -> Result<HashMap<String, KeyWithAccount>, Error> {
        let found = self
            .db
            .read(async |connection| Ok::<_, Error>(store::list_with_accounts(connection, ids).await?))
            .await?;
        Ok(found.into_iter().map(|row| (row.key.public_id.clone(), row)).collect())
    }
}
