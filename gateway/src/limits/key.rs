//! The general limit of a key.

use std::sync::Arc;

use tower_governor::GovernorError;
use tower_governor::key_extractor::KeyExtractor;

use super::Decision;
use super::token_bucket::TokenBucket;
use crate::keys::Caller;

/// Gives the limiter the type of its keys. Nothing calls it: the layer that would is not used; see `mod.rs`.
#[derive(Clone, Debug)]
struct ByCaller;

impl KeyExtractor for ByCaller {
    type Key = Arc<str>;

    fn extract<T>(&self, request: &http::Request<T>) -> Result<Arc<str>, GovernorError> {
        let caller = request.extensions().get::<Arc<Caller>>().ok_or(GovernorError::UnableToExtractKey)?;
        Ok(Arc::clone(&caller.public_id))
    }
}

/// Limits the requests a minute of each key, with a burst.
pub struct KeyLimit(TokenBucket<Arc<str>>);

impl KeyLimit {
    /// `per_minute` 0 switches the limit off.
    pub fn new(per_minute: u32, burst: u32) -> Self {
        Self(TokenBucket::new(per_minute, burst, "default", ByCaller))
    }

    /// Counts a request. `None` when the limit is switched off.
    pub fn check(&self, caller: &Caller) -> Option<Decision> {
        self.0.check(&caller.public_id)
    }

    /// Removes keys that have their full burst again.
    pub fn clean_up(&self) {
        self.0.clean_up();
    }
}
