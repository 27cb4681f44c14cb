//! Who makes a request: an account, through one of its keys.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use chassis_base::{Account, Clock};
use chassis_rpc::token::Tokens;
use chrono::{DateTime, Utc};
use http::HeaderValue;

use super::{Record, TokenCache, TokenHolder};

/// The holder of a valid key.
pub struct Caller {
    pub account: Account,
    /// The part of the key that may be shown and logged.
    pub public_id: Arc<str>,
    pub name: String,
    pub scopes: Vec<String>,
    /// Whether its requests are refused when they have a name that the operation does not know.
    pub strict: bool,
    pub expires_at: Option<DateTime<Utc>>,
    tokens: Tokens,
    clock: Clock,
    token_cache: TokenCache,
    /// Its tokens are cached under this holder. When its key changes, there is a new caller with another holder.
    holder: TokenHolder,
    /// In Unix milliseconds; 0: not since the last use was recorded.
    used_at: AtomicI64,
}

impl Caller {
    pub(super) fn new(
        key: &Record,
        account: Account,
        tokens: Tokens,
        token_cache: TokenCache,
        clock: Clock,
    ) -> Self {
        Self {
            account,
            public_id: key.public_id.as_str().into(),
            name: key.name.clone(),
            scopes: key.scopes.clone(),
            strict: key.strict,
            expires_at: key.expires_at,
            tokens,
            clock,
            token_cache,
            holder: TokenHolder::next(),
            used_at: AtomicI64::new(0),
        }
    }

    /// Whether the key has exactly this scope; `any` is a scope that every key has.
    pub fn has_scope(&self, scope: &str) -> bool {
        scope == "any" || self.scopes.iter().any(|have| have == scope)
    }

    /// The signed context token for calls to a service on behalf of this caller, for the metadata entry
    /// `chassis_rpc::token::HEADER`. Minted about once a minute; otherwise a cheap copy.
    pub fn context_token(&self, service: &str) -> HeaderValue {
        let now = self.clock.now();
        let minter = self.tokens.to(service);
        let mint = || minter.mint(&self.account, &self.public_id, &self.name, &self.scopes, now);
        self.token_cache.header(self.holder, service, now, mint)
    }

    /// The same for a request that automation has caused: what follows from it is at least that deep in the chain.
    pub fn context_token_at(&self, service: &str, depth: u32) -> HeaderValue {
        if depth == 0 {
            return self.context_token(service);
        }
        let minter = self.tokens.to(service).at_depth(depth);
        let now = self.clock.now();
        let token = minter.mint(&self.account, &self.public_id, &self.name, &self.scopes, now);
        HeaderValue::try_from(token).unwrap_or_else(|_| HeaderValue::from_static(""))
    }

    pub(super) fn has_expired(&self, now: DateTime<Utc>) -> bool {
        self.expires_at.is_some_and(|end| end <= now)
    }

    pub(super) fn record_use(&self, now: DateTime<Utc>) {
        self.used_at.store(now.timestamp_millis(), Ordering::Relaxed);
    }

    /// Takes the time of the last use; `None` when there was no use since the last call.
    pub(super) fn take_use(&self) -> Option<DateTime<Utc>> {
        let used_at = self.used_at.swap(0, Ordering::Relaxed);
        DateTime::from_timestamp_millis(used_at).filter(|_| used_at != 0)
    }
}
