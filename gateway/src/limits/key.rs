//! The general limit of a key: so many requests a minute, with a burst. Counted per replica.

use std::sync::Arc;

use governor::clock::{Clock, DefaultClock};
use governor::middleware::StateInformationMiddleware;
use tower_governor::GovernorError;
use tower_governor::governor::{GovernorConfigBuilder, SharedRateLimiter};
use tower_governor::key_extractor::KeyExtractor;

use super::{Decision, seconds_up, time_for_one};
use crate::keys::Caller;

/// Limits by the caller that authentication put into the request's extensions.
#[derive(Clone, Debug)]
struct ByCaller;

impl KeyExtractor for ByCaller {
    type Key = Arc<str>;

    fn extract<T>(&self, request: &http::Request<T>) -> Result<Arc<str>, GovernorError> {
        let caller = request.extensions().get::<Arc<Caller>>().ok_or(GovernorError::UnableToExtractKey)?;
        Ok(Arc::clone(&caller.public_id))
    }
}

/// A bucket of `burst` requests for each key that is filled again at the rate.
pub struct KeyLimit {
    limiter: Option<SharedRateLimiter<Arc<str>, StateInformationMiddleware>>,
    per_minute: u32,
    burst: u32,
    clock: DefaultClock,
}

impl KeyLimit {
    /// `per_minute` 0 switches the limit off.
    pub fn new(per_minute: u32, burst: u32) -> Self {
        let burst = burst.max(1);
        let config = GovernorConfigBuilder::default()
            .period(time_for_one(per_minute))
            .burst_size(burst)
            .key_extractor(ByCaller)
            .use_headers()
            .finish();
        let limiter = config.filter(|_| per_minute > 0).map(|config| Arc::clone(config.limiter()));
        Self { limiter, per_minute, burst, clock: DefaultClock::default() }
    }

    /// Counts a request. `None` when the limit is switched off.
    pub fn check(&self, caller: &Caller) -> Option<Decision> {
        self.check_key(&caller.public_id)
    }

    fn check_key(&self, public_id: &Arc<str>) -> Option<Decision> {
        let limiter = self.limiter.as_ref()?;
        let (allowed, remaining, wait) = match limiter.check_key(public_id) {
            Ok(state) => (true, state.remaining_burst_capacity(), 0),
            Err(until) => (false, 0, seconds_up(until.wait_time_from(self.clock.now())).max(1)),
        };
        let to_fill = time_for_one(self.per_minute) * self.burst.saturating_sub(remaining);
        Some(Decision {
            allowed,
            limit: self.per_minute,
            remaining,
            reset_seconds: seconds_up(to_fill),
            retry_after_seconds: wait,
            policy: "default",
        })
    }

    /// Forgets keys whose bucket is full again.
    pub fn clean_up(&self) {
        if let Some(limiter) = &self.limiter {
            limiter.retain_recent();
            limiter.shrink_to_fit();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_is_allowed_and_no_more() {
        // One a minute: nothing comes back while the test runs.
        let limit = KeyLimit::new(1, 5);
        let (one, other) = (Arc::from("one"), Arc::from("other"));
        for left in (0..5).rev() {
            let decision = limit.check_key(&one).unwrap();
            assert!(decision.allowed);
            assert_eq!((decision.remaining, decision.limit), (left, 1));
        }
        let refused = limit.check_key(&one).unwrap();
        assert!(!refused.allowed && refused.remaining == 0);
        assert!((1..=60).contains(&refused.retry_after_seconds));
        assert_eq!(refused.reset_seconds, 300);
        assert!(limit.check_key(&other).unwrap().allowed, "another key has its own");
    }

    #[test]
    fn the_wait_is_never_zero_seconds() {
        // 50 ms for one request: governor itself would say 0.
        let limit = KeyLimit::new(1200, 1);
        let key = Arc::from("key");
        let refused = (0..100_000).filter_map(|_| limit.check_key(&key)).find(|decision| !decision.allowed);
        assert_eq!(refused.unwrap().retry_after_seconds, 1);
    }

    #[test]
    fn zero_switches_it_off() {
        let limit = KeyLimit::new(0, 1);
        assert!((0..1000).all(|_| limit.check_key(&Arc::from("key")).is_none()));
    }

    #[test]
    fn cleaning_up_keeps_what_was_used() {
        let limit = KeyLimit::new(1, 1);
        let key = Arc::from("key");
        assert!(limit.check_key(&key).unwrap().allowed);
        limit.clean_up();
        assert!(!limit.check_key(&key).unwrap().allowed);
    }
}
