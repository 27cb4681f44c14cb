//! A token bucket: a number of requests a minute for each key, with a burst. Counted per replica.

use std::hash::Hash;
use std::sync::Arc;

use governor::clock::{Clock, DefaultClock};
use governor::middleware::StateInformationMiddleware;
use tower_governor::governor::{GovernorConfigBuilder, SharedRateLimiter};
use tower_governor::key_extractor::KeyExtractor;

use super::{Decision, seconds_up, time_for_one};

/// Each key has a bucket of `burst` requests, which is refilled at the rate.
pub(super) struct TokenBucket<K: Hash + Eq + Clone> {
    limiter: Option<SharedRateLimiter<K, StateInformationMiddleware>>,
    per_minute: u32,
    burst: u32,
    policy: &'static str,
    clock: DefaultClock,
}

impl<K: Hash + Eq + Clone> TokenBucket<K> {
    /// `per_minute` 0 switches the limit off. `policy` is the name that callers see.
    pub(super) fn new<E>(per_minute: u32, burst: u32, policy: &'static str, by: E) -> Self
    where
        E: KeyExtractor<Key = K>,
    {
        let burst = burst.max(1);
        let config = GovernorConfigBuilder::default()
            .period(time_for_one(per_minute))
            .burst_size(burst)
            .key_extractor(by)
            .use_headers()
            .finish();
        let limiter = config.filter(|_| per_minute > 0).map(|config| Arc::clone(config.limiter()));
        Self { limiter, per_minute, burst, policy, clock: DefaultClock::default() }
    }

    /// Counts a request. `None` when the limit is switched off.
    pub(super) fn check(&self, key: &K) -> Option<Decision> {
        let limiter = self.limiter.as_ref()?;
        let (allowed, remaining, wait) = match limiter.check_key(key) {
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
            policy: self.policy,
        })
    }

    /// Removes keys whose bucket is full again.
    pub(super) fn clean_up(&self) {
        if let Some(limiter) = &self.limiter {
            limiter.retain_recent();
            limiter.shrink_to_fit();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv4Addr};

    use tower_governor::key_extractor::PeerIpKeyExtractor;

    use super::*;

    fn bucket(per_minute: u32, burst: u32) -> TokenBucket<IpAddr> {
        TokenBucket::new(per_minute, burst, "test", PeerIpKeyExtractor)
    }

    fn address(last: u8) -> IpAddr {
        Ipv4Addr::new(192, 0, 2, last).into()
    }

    #[test]
    fn a_burst_is_allowed_and_no_more() {
        // One a minute: the bucket is not refilled while the test runs.
        let limit = bucket(1, 5);
        let (one, other) = (address(1), address(2));
        for left in (0..5).rev() {
            let decision = limit.check(&one).unwrap();
            assert!(decision.allowed);
            assert_eq!((decision.remaining, decision.limit), (left, 1));
        }
        let refused = limit.check(&one).unwrap();
        assert!(!refused.allowed && refused.remaining == 0);
        assert!((1..=60).contains(&refused.retry_after_seconds));
        assert_eq!(refused.reset_seconds, 300);
        assert!(limit.check(&other).unwrap().allowed, "another key has its own");
    }

    #[test]
    fn the_wait_is_never_zero_seconds() {
        // 50 ms for one request: governor itself would say 0.
        let limit = bucket(1200, 1);
        let key = address(1);
        let refused = (0..100_000).filter_map(|_| limit.check(&key)).find(|decision| !decision.allowed);
        assert_eq!(refused.unwrap().retry_after_seconds, 1);
    }

    #[test]
    fn zero_switches_it_off() {
        let limit = bucket(0, 1);
        assert!((0..1000).all(|_| limit.check(&address(1)).is_none()));
    }

    #[test]
    fn cleaning_up_keeps_what_was_used() {
        let limit = bucket(1, 1);
        let key = address(1);
        assert!(limit.check(&key).unwrap().allowed);
        limit.clean_up();
        assert!(!limit.check(&key).unwrap().allowed);
    }
}
