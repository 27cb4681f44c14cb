//! Look-ups of keys for addresses that have failed too often. A valid key has to be found among whatever else comes from
//! there, so these look-ups are not refused; they share one query at a time, each for all that wait. So however many keys
//! are tried, the database has one small statement to answer, and nobody else's look-up waits behind it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use chassis::{Db, Error};
use tokio::sync::oneshot;

use super::store::{self, KnownKey};

/// Most keys of one query.
const MAX_IDS: usize = 256;

/// What a look-up found; an error is told to everyone who waits as text.
type Found = Result<Option<KnownKey>, String>;

/// Cheap to clone; clones share their query.
#[derive(Clone)]
pub struct SharedLookups {
    db: Db,
    waiting: Arc<Mutex<Waiting>>,
}

#[derive(Default)]
struct Waiting {
    ids: HashMap<String, Vec<oneshot::Sender<Found>>>,
    /// Whether a query is in progress, which takes the next ones after it.
    asking: bool,
}

impl SharedLookups {
    pub fn new(db: Db) -> Self {
        Self { db, waiting: Arc::default() }
    }

    pub async fn find(&self, public_id: &str) -> Result<Option<KnownKey>, Error> {
        let (tell, told) = oneshot::channel();
        let first = {
            let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
            waiting.ids.entry(public_id.to_owned()).or_default().push(tell);
            !std::mem::replace(&mut waiting.asking, true)
        };
        if first {
            // Not in the request: that may be canceled.
            tokio::spawn(self.clone().ask());
        }
        match told.await {
            Ok(found) => found.map_err(Error::Internal),
            Err(_) => Err(Error::Internal("a look-up was given up".to_owned())),
        }
    }

    /// Asks until nobody waits.
    async fn ask(self) {
        loop {
            let waiting = self.next();
            if waiting.is_empty() {
                return;
            }
            let ids: Vec<&str> = waiting.keys().map(String::as_str).collect();
            let found = self.query(&ids).await.map_err(|error| error.to_string());
            let mut known: HashMap<String, KnownKey> = HashMap::new();
            let failed = match found {
                Ok(rows) => {
                    known.extend(rows.into_iter().map(|row| (row.key.public_id.clone(), row)));
                    None
                }
                Err(error) => Some(error),
            };
            for (id, tell) in waiting {
                let found = failed.clone().map_or_else(|| Ok(known.get(&id).cloned()), Err);
                for tell in tell {
                    // Whoever has gone need not be told.
                    let _ = tell.send(found.clone());
                }
            }
        }
    }

    /// Those of the next query; when there are none, there is no query in progress any more.
    fn next(&self) -> HashMap<String, Vec<oneshot::Sender<Found>>> {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.ids.retain(|_, tell| tell.iter().any(|tell| !tell.is_closed()));
        waiting.asking = !waiting.ids.is_empty();
        if waiting.ids.len() <= MAX_IDS {
            return std::mem::take(&mut waiting.ids);
        }
        let ids: Vec<String> = waiting.ids.keys().take(MAX_IDS).cloned().collect();
        ids.into_iter().filter_map(|id| waiting.ids.remove_entry(&id)).collect()
    }

    async fn query(&self, ids: &[&str]) -> Result<Vec<KnownKey>, Error> {
        let mut connection = self.db.read().await?;
        let found = store::list_for_authentication(&mut connection, ids).await?;
        connection.done();
        Ok(found)
    }
}
