//! Context tokens that are minted about once a minute and reused in between, one for each holder and service.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use chassis_rpc::token::LIFETIME_SECONDS;
use chrono::{DateTime, TimeDelta, Utc};
use http::HeaderValue;
use moka::Equivalent;
use moka::policy::EvictionPolicy;
use moka::sync::Cache;

/// A token with less time than this is renewed before it is sent: the call must be over before the token expires.
const RENEW_BEFORE_EXPIRY_SECONDS: i64 = 15;
/// As many as the authenticator caches keys, for each of six services.
const MAX_TOKENS: u64 = 300_000;

/// Cheap to clone; clones share their tokens.
///
/// One cache for all holders: a cache within each of 50,000 callers would take more memory than the tokens do.
#[derive(Clone)]
pub struct TokenCache(Cache<TokenKey, CachedToken>);

/// The holder of a token. A key that has changed gets a new holder, so that no token with its former scopes is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TokenHolder(u64);

impl TokenHolder {
    /// Requests without a key.
    pub const PUBLIC: Self = Self(0);

    /// A new holder, different from all earlier ones.
    pub fn next() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        Self(NEXT.fetch_add(1, Ordering::Relaxed))
    }
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct TokenKey {
    holder: TokenHolder,
    service: Box<str>,
}

/// Finds a [`TokenKey`] without copying the name of the service. Its hash is the same, because `str` and `Box<str>` hash
/// alike.
#[derive(Hash)]
struct TokenKeyRef<'a> {
    holder: TokenHolder,
    service: &'a str,
}

impl Equivalent<TokenKey> for TokenKeyRef<'_> {
    fn equivalent(&self, key: &TokenKey) -> bool {
        self.holder == key.holder && self.service == &*key.service
    }
}

#[derive(Clone)]
struct CachedToken {
    header: HeaderValue,
    renew_at: DateTime<Utc>,
}

impl Default for TokenCache {
    fn default() -> Self {
        let lifetime = Duration::from_secs(LIFETIME_SECONDS.unsigned_abs());
        // The cache's own clock only frees memory; `renew_at` decides whether a token is used again.
        let cache = Cache::builder()
            .max_capacity(MAX_TOKENS)
            .eviction_policy(EvictionPolicy::lru())
            .time_to_live(lifetime)
            .build();
        Self(cache)
    }
}

impl TokenCache {
    /// The token for calls to a service, for the metadata entry `chassis_rpc::token::HEADER`. `mint` makes a new one
    /// when the cached token is absent or about to expire. Of concurrent callers one mints, and all get its token.
    pub fn header(
        &self,
        holder: TokenHolder,
        service: &str,
        now: DateTime<Utc>,
        mint: impl FnOnce() -> String,
    ) -> HeaderValue {
        if let Some(cached) = self.0.get(&TokenKeyRef { holder, service })
            && now < cached.renew_at
        {
            return cached.header;
        }
        let minted = || CachedToken {
            // A token is base64url and a dot, which always is a header value. A service would refuse an empty one.
            // Not marked sensitive: HTTP/2 then sends a repeat of it as one byte instead of 300.
            header: HeaderValue::try_from(mint()).unwrap_or_else(|_| HeaderValue::from_static("")),
            renew_at: now + TimeDelta::seconds(LIFETIME_SECONDS - RENEW_BEFORE_EXPIRY_SECONDS),
        };
        let key = TokenKey { holder, service: service.into() };
        self.0.entry(key).or_insert_with_if(minted, |cached| now >= cached.renew_at).into_value().header
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_minted_once_for_each_holder_and_service_until_it_is_renewed() {
        let cache = TokenCache::default();
        let (one, other) = (TokenHolder::next(), TokenHolder::next());
        let start = DateTime::UNIX_EPOCH;
        let token = |holder, service, seconds, minted: &str| {
            let now = start + TimeDelta::seconds(seconds);
            cache.header(holder, service, now, || minted.to_owned()).to_str().unwrap().to_owned()
        };
        assert_eq!(token(one, "billing", 0, "a"), "a");
        assert_eq!(token(one, "billing", 44, "b"), "a", "reused");
        assert_eq!(token(one, "crm", 44, "c"), "c", "another service");
        assert_eq!(token(other, "billing", 44, "d"), "d", "another holder");
        assert_eq!(token(one, "billing", 45, "e"), "e", "renewed");
        assert_eq!(token(one, "billing", 46, "f"), "e");
    }
}
