//! From the text a caller sends to the [`Caller`] it stands for. What was read from the database is trusted for a few
//! seconds, so that a request usually costs two hashes and no query, and a revoked key ends within 5 s everywhere.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use arc_swap::ArcSwapOption;
use chassis::token::Tokens;
use chassis::{Account, Db};
use chrono::{DateTime, TimeDelta, Utc};
use subtle::ConstantTimeEq;

use super::caller::Caller;
use super::format::PresentedKey;
use super::lookups::SharedLookups;
use super::store::{self, KnownKey};

/// How long what was read of a key is trusted. Together with the time a look-up takes, less than 5 s.
const TRUSTED_FOR: TimeDelta = TimeDelta::seconds(3);
/// From this age on it is read again in the background, so that a busy key never waits for the database.
const READ_AHEAD_AFTER: TimeDelta = TimeDelta::seconds(2);
/// A key that was not read for so long is forgotten.
const FORGET_AFTER: TimeDelta = TimeDelta::minutes(5);
/// Most keys that are remembered; beyond them the memory starts anew.
const MAX_REMEMBERED: usize = 50_000;
/// How often uses are written down.
const NOTE_USES_EVERY: Duration = Duration::from_mins(1);

#[derive(Debug, thiserror::Error)]
pub enum AuthError {
    /// Not a key, unknown, revoked or expired; which of these is nobody's business.
    #[error("the key is not valid")]
    Refused,
    /// It could not be found out.
    #[error("keys cannot be looked up")]
    Unavailable(#[from] chassis::Error),
}

/// Cheap to clone; clones share what they remember.
#[derive(Clone)]
pub struct Authenticator(Arc<Shared>);

struct Shared {
    db: Db,
    tokens: Tokens,
    /// For addresses that have failed too often.
    lookups: SharedLookups,
    remembered: RwLock<HashMap<Box<str>, Arc<Entry>>>,
}

/// How a key is looked up that is not remembered.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Lookup {
    Own,
    Shared,
}

/// What is remembered of one public id.
#[derive(Default)]
struct Entry {
    known: ArcSwapOption<Known>,
    /// Held by the one look-up in flight.
    reading: tokio::sync::Mutex<()>,
}

struct Known {
    row: KnownKey,
    caller: Arc<Caller>,
    /// When the look-up began.
    read_at: DateTime<Utc>,
}

impl Known {
    fn age(&self, now: DateTime<Utc>) -> TimeDelta {
        now - self.read_at
    }

    fn accept(&self, presented: &PresentedKey<'_>, now: DateTime<Utc>) -> Result<Arc<Caller>, AuthError> {
        let same = self.row.secret_hash.ct_eq(&presented.secret_hash());
        if !bool::from(same) || self.row.key.revoked_at.is_some() || self.caller.has_expired(now) {
            return Err(AuthError::Refused);
        }
        self.caller.note_use(now);
        Ok(Arc::clone(&self.caller))
    }
}

impl Authenticator {
    pub fn new(db: Db, tokens: Tokens) -> Self {
        let lookups = SharedLookups::new(db.clone());
        Self(Arc::new(Shared { db, tokens, lookups, remembered: RwLock::default() }))
    }

    /// The caller behind the key, which is the text after `Bearer `.
    pub async fn authenticate(&self, presented: &str) -> Result<Arc<Caller>, AuthError> {
        self.identify(presented, Lookup::Own).await
    }

    /// The same for an address that has failed too often: its look-ups share one query at a time.
    pub async fn authenticate_limited(&self, presented: &str) -> Result<Arc<Caller>, AuthError> {
        self.identify(presented, Lookup::Shared).await
    }

    async fn identify(&self, presented: &str, lookup: Lookup) -> Result<Arc<Caller>, AuthError> {
        let presented = PresentedKey::parse(presented).ok_or(AuthError::Refused)?;
        let now = self.0.db.clock().now();
        let remembered = self.find(presented.public_id);
        if let Some(entry) = &remembered
            && let Some(known) = &*entry.known.load()
            && known.age(now) < TRUSTED_FOR
        {
            if known.age(now) >= READ_AHEAD_AFTER {
                self.read_ahead(entry, presented.public_id);
            }
            return known.accept(&presented, now);
        }
        let entry = remembered.unwrap_or_else(|| self.remember(presented.public_id, now));
        self.read(&entry, presented.public_id, now, (TRUSTED_FOR, lookup)).await?;
        match &*entry.known.load() {
            Some(known) => known.accept(&presented, now),
            None => Err(AuthError::Refused),
        }
    }

    fn find(&self, public_id: &str) -> Option<Arc<Entry>> {
        self.0.remembered.read().unwrap_or_else(PoisonError::into_inner).get(public_id).cloned()
    }

    fn remember(&self, public_id: &str, now: DateTime<Utc>) -> Arc<Entry> {
        let mut remembered = self.0.remembered.write().unwrap_or_else(PoisonError::into_inner);
        if remembered.len() >= MAX_REMEMBERED {
            remembered.retain(|_, entry| !entry.is_idle(now));
        }
        if remembered.len() >= MAX_REMEMBERED {
            remembered.clear();
        }
        Arc::clone(remembered.entry(public_id.into()).or_default())
    }

    /// An unknown key is not remembered at all, so that a new one works at once.
    fn forget(&self, public_id: &str, entry: &Arc<Entry>) {
        let mut remembered = self.0.remembered.write().unwrap_or_else(PoisonError::into_inner);
        if remembered.get(public_id).is_some_and(|have| Arc::ptr_eq(have, entry)) {
            remembered.remove(public_id);
        }
    }

    /// Reads the key unless that was done less than `enough` ago. Others that want the same wait for this one look-up.
    async fn read(
        &self,
        entry: &Arc<Entry>,
        public_id: &str,
        now: DateTime<Utc>,
        (enough, lookup): (TimeDelta, Lookup),
    ) -> Result<(), chassis::Error> {
        let _reading = entry.reading.lock().await;
        let before = entry.known.load_full();
        if before.as_ref().is_some_and(|known| known.age(now) < enough) {
            return Ok(());
        }
        // Taken before the query, because that is the moment the answer is true of. Not the time the caller came with:
        // it may have waited here.
        let read_at = self.0.db.clock().now();
        if let Some(row) = self.look_up(public_id, lookup).await? {
            // An unchanged key keeps its caller, and with it the minted token.
            let same = before.filter(|known| known.row == row).map(|known| Arc::clone(&known.caller));
            let caller = same.map_or_else(|| self.caller(&row).map(Arc::new), Ok)?;
            entry.known.store(Some(Arc::new(Known { row, caller, read_at })));
        } else {
            entry.known.store(None);
            self.forget(public_id, entry);
        }
        Ok(())
    }

    async fn look_up(&self, public_id: &str, lookup: Lookup) -> Result<Option<KnownKey>, chassis::Error> {
        if lookup == Lookup::Shared {
            return self.0.lookups.find(public_id).await;
        }
        let mut connection = self.0.db.read().await?;
        let found = store::find_for_authentication(&mut connection, public_id).await?;
        connection.done();
        Ok(found)
    }

    fn read_ahead(&self, entry: &Arc<Entry>, public_id: &str) {
        if entry.reading.try_lock().is_err() {
            return;
        }
        let (this, entry, public_id) = (self.clone(), Arc::clone(entry), Box::<str>::from(public_id));
        tokio::spawn(async move {
            let now = this.0.db.clock().now();
            if let Err(error) = this.read(&entry, &public_id, now, (READ_AHEAD_AFTER, Lookup::Own)).await {
                tracing::warn!(%error, "a key could not be read ahead of time");
            }
        });
    }

    fn caller(&self, row: &KnownKey) -> Result<Caller, chassis::Error> {
        let unusable =
            |_| chassis::Error::Internal(format!("the time zone of account {}", row.key.account_id));
        let account = Account {
            id: row.key.account_id,
            timezone: row.timezone.parse().map_err(unusable)?,
            country: row.country.clone(),
            currency: row.currency.clone(),
        };
        Ok(Caller::new(&row.key, account, self.0.tokens.clone(), self.0.db.clock().clone()))
    }

    /// Writes down when keys were used since the last time, and forgets keys that are no longer used.
    pub async fn note_uses(&self) -> Result<(), chassis::Error> {
        let now = self.0.db.clock().now();
        let callers: Vec<Arc<Caller>> = {
            let remembered = self.0.remembered.read().unwrap_or_else(PoisonError::into_inner);
            remembered
                .values()
                .filter_map(|entry| Some(Arc::clone(&entry.known.load().as_ref()?.caller)))
                .collect()
        };
        let uses: Vec<_> = callers
            .iter()
            .filter_map(|caller| Some((caller.account.id, &*caller.public_id, caller.take_use()?)))
            .collect();
        if !uses.is_empty() {
            let mut connection = self.0.db.read().await?;
            // A failure loses the note of a minute; the next use makes a new one.
            store::note_uses(&mut connection, &uses).await?;
        }
        let mut remembered = self.0.remembered.write().unwrap_or_else(PoisonError::into_inner);
        remembered.retain(|_, entry| !entry.is_idle(now));
        Ok(())
    }

    /// Notes uses for ever; to be spawned beside the server.
    pub async fn keep_noting_uses(self) {
        let mut ticks = tokio::time::interval(NOTE_USES_EVERY);
        loop {
            ticks.tick().await;
            if let Err(error) = self.note_uses().await {
                tracing::warn!(%error, "the last use of keys could not be written down");
            }
        }
    }
}

impl Entry {
    fn is_idle(&self, now: DateTime<Utc>) -> bool {
        // One without a key is being read for the first time, or was dropped while it was.
        self.known.load().as_ref().is_some_and(|known| known.age(now) > FORGET_AFTER)
            || (self.known.load().is_none() && self.reading.try_lock().is_ok())
    }
}
