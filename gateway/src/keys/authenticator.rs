//! From the key that a request carries to the [`Caller`] it stands for. What was read from the database is trusted for a
//! few seconds, so that a request usually costs two hashes and no query, and a revoked key ends within 5 s everywhere.

use std::sync::Arc;
use std::time::Duration;

use chassis_base::Error;
use chassis_data::Db;
use chassis_rpc::token::Tokens;
use chrono::{DateTime, TimeDelta, Utc};
use moka::Entry;
use moka::future::Cache;
use moka::ops::compute::{CompResult, Op};
use moka::policy::EvictionPolicy;
use subtle::ConstantTimeEq;

use super::caller::Caller;
use super::format::PresentedKey;
use super::lookup_batch::LookupBatch;
use super::store::{self, KeyUse};
use super::{KeyWithAccount, TokenCache};

/// How long a cached key is trusted. Together with the duration of a look-up this is less than 5 s.
const MAX_AGE: TimeDelta = TimeDelta::seconds(3);
/// From this age on a key is read again in the background, so that a busy key never waits for the database.
const REFRESH_AFTER: TimeDelta = TimeDelta::seconds(2);
/// How long a key stays in the cache after it was last read. What is older than [`MAX_AGE`] is not trusted, but keeps
/// the caller and its tokens when the next read finds the key unchanged.
const KEEP_FOR: Duration = Duration::from_mins(5);
/// Beyond this number the least recently used keys leave the cache.
const MAX_KEYS: u64 = 50_000;
/// How often the last uses of keys are written to the database.
const RECORD_USES_EVERY: Duration = Duration::from_mins(1);

#[derive(Debug, thiserror::Error)]
pub enum AuthError {
    /// Not a key, unknown, revoked or expired. The response does not reveal which of these it is.
    #[error("the key is not valid")]
    Refused,
    /// The database did not answer.
    #[error("keys cannot be looked up")]
    Unavailable(#[from] Error),
}

/// Cheap to clone; clones share their cache.
#[derive(Clone)]
pub struct Authenticator(Arc<Shared>);

struct Shared {
    db: Db,
    tokens: Tokens,
    /// The context tokens of all callers.
    token_cache: TokenCache,
    /// The look-ups for addresses that have failed too often.
    batch: LookupBatch,
    /// The keys by public id. Only keys that exist, so that a new key works immediately, even if it was tried before.
    cache: Cache<String, Arc<CachedKey>>,
}

/// How a key that is not in the cache is looked up.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Lookup {
    /// In a query of its own.
    Single,
    /// Together with others; see [`LookupBatch`].
    Batched,
}

struct CachedKey {
    row: KeyWithAccount,
    caller: Arc<Caller>,
    /// When the look-up began.
    read_at: DateTime<Utc>,
}

impl CachedKey {
    fn age(&self, now: DateTime<Utc>) -> TimeDelta {
        now - self.read_at
    }

    fn accept(&self, presented: &PresentedKey<'_>, now: DateTime<Utc>) -> Result<Arc<Caller>, AuthError> {
        let same = self.row.secret_hash.ct_eq(&presented.secret_hash());
        if !bool::from(same) || self.row.key.revoked_at.is_some() || self.caller.has_expired(now) {
            return Err(AuthError::Refused);
        }
        self.caller.record_use(now);
        Ok(Arc::clone(&self.caller))
    }
}

impl Authenticator {
    pub fn new(db: Db, tokens: Tokens) -> Self {
        let batch = LookupBatch::new(db.clone());
        // Least recently used, and not moka's default: that would refuse to admit a new key while others are popular, and
        // each of its requests would cost a query.
        let cache = Cache::builder()
            .max_capacity(MAX_KEYS)
            .eviction_policy(EvictionPolicy::lru())
            .time_to_live(KEEP_FOR)
            .build();
        Self(Arc::new(Shared { db, tokens, token_cache: TokenCache::default(), batch, cache }))
    }

    /// The caller behind the key, which is the text after `Bearer `.
    pub async fn authenticate(&self, presented: &str) -> Result<Arc<Caller>, AuthError> {
        self.identify(presented, Lookup::Single).await
    }

    /// The same for an address that has failed too often: its look-ups share one query at a time.
    pub async fn authenticate_limited(&self, presented: &str) -> Result<Arc<Caller>, AuthError> {
        self.identify(presented, Lookup::Batched).await
    }

    async fn identify(&self, presented: &str, lookup: Lookup) -> Result<Arc<Caller>, AuthError> {
        let presented = PresentedKey::parse(presented).ok_or(AuthError::Refused)?;
        let now = self.0.db.clock().now();
        if let Some(cached) = self.0.cache.get(presented.public_id).await
            && cached.age(now) < MAX_AGE
        {
            if cached.age(now) >= REFRESH_AFTER {
                self.refresh_in_background(presented.public_id);
            }
            return cached.accept(&presented, now);
        }
        let read = self.read(presented.public_id, now, lookup).await?;
        read.ok_or(AuthError::Refused)?.accept(&presented, now)
    }

    /// Reads the key unless another request has done so less than [`MAX_AGE`] before `now`. The cache runs one of these
    /// at a time for each key: requests that come together wait for one query. When a query fails, or its request is
    /// canceled, the next request that waits makes another.
    async fn read(
        &self,
        public_id: &str,
        now: DateTime<Utc>,
        lookup: Lookup,
    ) -> Result<Option<Arc<CachedKey>>, Error> {
        let read = self.0.cache.entry_by_ref(public_id).and_try_compute_with(|entry| async move {
            let before = entry.map(Entry::into_value);
            if before.as_ref().is_some_and(|cached| cached.age(now) < MAX_AGE) {
                return Ok(Op::Nop);
            }
            self.look_up(public_id, before, lookup).await
        });
        Ok(match read.await? {
            CompResult::Inserted(entry) | CompResult::ReplacedWith(entry) | CompResult::Unchanged(entry) => {
                Some(entry.into_value())
            }
            CompResult::Removed(_) | CompResult::StillNone(_) => None,
        })
    }

    /// Reads the key again in a task: the request that noticed its age does not wait.
    fn refresh_in_background(&self, public_id: &str) {
        let (this, public_id) = (self.clone(), public_id.to_owned());
        tokio::spawn(async move {
            if let Err(error) = this.refresh(&public_id).await {
                // Requests use the cached key until it is too old, and then report the error themselves.
                tracing::warn!(%error, "refreshing a key failed");
            }
        });
    }

    /// Reads the key unless that is being done, or was done less than [`REFRESH_AFTER`] ago.
    async fn refresh(&self, public_id: &str) -> Result<(), Error> {
        let now = self.0.db.clock().now();
        let entry = self.0.cache.entry_by_ref(public_id);
        let refreshed = entry.and_try_compute_if_nobody_else(|entry| async move {
            let before = entry.map(Entry::into_value);
            if before.as_ref().is_some_and(|cached| cached.age(now) < REFRESH_AFTER) {
                return Ok(Op::Nop);
            }
            self.look_up(public_id, before, Lookup::Single).await
        });
        refreshed.await.map(|_| ())
    }

    /// The change of the cache's entry after a look-up.
    async fn look_up(
        &self,
        public_id: &str,
        before: Option<Arc<CachedKey>>,
        lookup: Lookup,
    ) -> Result<Op<Arc<CachedKey>>, Error> {
        // Taken before the query, because the answer may be as old as that. Not the time of the request, which may have
        // waited for another look-up of the key.
        let read_at = self.0.db.clock().now();
        let Some(row) = self.query(public_id, lookup).await? else { return Ok(Op::Remove) };
        // An unchanged key keeps its caller, and with it the minted tokens.
        let unchanged = before.filter(|cached| cached.row == row).map(|cached| Arc::clone(&cached.caller));
        let caller = match unchanged {
            Some(caller) => caller,
            None => Arc::new(self.caller(&row)?),
        };
        Ok(Op::Put(Arc::new(CachedKey { row, caller, read_at })))
    }

    async fn query(&self, public_id: &str, lookup: Lookup) -> Result<Option<KeyWithAccount>, Error> {
        if lookup == Lookup::Batched {
            return self.0.batch.find(public_id).await;
        }
        let found = self
            .0
            .db
            .read(async |connection| Ok::<_, Error>(store::find_with_account(connection, public_id).await?))
            .await?;
        Ok(found)
    }

    fn caller(&self, row: &KeyWithAccount) -> Result<Caller, Error> {
        let Shared { db, tokens, token_cache, .. } = &*self.0;
        Ok(Caller::new(&row.key, row.account()?, tokens.clone(), token_cache.clone(), db.clock().clone()))
    }

    /// Writes to the database when keys were last used, for the keys that were used since the previous write.
    pub async fn record_uses(&self) -> Result<(), Error> {
        let callers: Vec<Arc<Caller>> =
            self.0.cache.iter().map(|(_, cached)| Arc::clone(&cached.caller)).collect();
        let uses: Vec<KeyUse<'_>> = callers
            .iter()
            .filter_map(|caller| {
                let used_at = caller.take_use()?;
                Some(KeyUse { account_id: caller.account.id, public_id: &caller.public_id, used_at })
            })
            .collect();
        if uses.is_empty() {
            return Ok(());
        }
        // A failure loses the uses of a minute; the next use of a key records a later time anyway.
        self.0.db.autocommit(async |connection| Ok(store::record_uses(connection, &uses).await?)).await
    }

    /// Records uses in an endless loop; to be spawned beside the server.
    pub async fn record_uses_periodically(self) {
        let mut ticks = tokio::time::interval(RECORD_USES_EVERY);
        loop {
            ticks.tick().await;
            if let Err(error) = self.record_uses().await {
                tracing::warn!(%error, "recording the last uses of keys failed");
            }
        }
    }
}
