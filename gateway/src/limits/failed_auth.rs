//! How often an address may fail to authenticate before it has to wait; a valid key is accepted even then. Counted per
//! replica. It protects the database: an unknown key costs a look-up each time.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use chassis_service::connections::network;
use governor::middleware::StateInformationMiddleware;
use tower_governor::governor::{GovernorConfigBuilder, SharedRateLimiter};

use super::waiting::Waiting;
use super::{Decision, seconds_up, time_for_one};

/// Limits the failures a minute of each address. An address without failures left is blocked until the next is free.
pub struct FailedAuthLimit {
    failures: Option<SharedRateLimiter<IpAddr, StateInformationMiddleware>>,
    per_minute: u32,
    /// The addresses that have no failures left, and until when. Kept beside the limiter, because a query of the
    /// limiter counts as a failure.
    blocked: Waiting<IpAddr, Instant>,
}

impl FailedAuthLimit {
    /// `per_minute` 0 switches the limit off.
    pub fn new(per_minute: u32) -> Self {
        let config = GovernorConfigBuilder::default()
            .period(time_for_one(per_minute))
            .burst_size(per_minute)
            .use_headers()
            .finish();
        let failures = config.map(|config| Arc::clone(config.limiter()));
        Self { failures, per_minute, blocked: Waiting::default() }
    }

    /// The refusal for an address that has failed too often; `None` when it may try. Counts nothing.
    pub fn blocked(&self, address: IpAddr) -> Option<Decision> {
        let now = Instant::now();
        let wait = self.blocked.until(&network(address), now)? - now;
        Some(Decision {
            allowed: false,
            limit: self.per_minute,
            remaining: 0,
            reset_seconds: seconds_up(time_for_one(self.per_minute) * self.per_minute),
            retry_after_seconds: seconds_up(wait).max(1),
            policy: "failed-authentication",
        })
    }

    pub fn is_blocked(&self, address: IpAddr) -> bool {
        self.blocked(address).is_some()
    }

    pub fn record_failure(&self, address: IpAddr) {
        let Some(failures) = &self.failures else { return };
        let address = network(address);
        let left = failures.check_key(&address).map_or(0, |state| state.remaining_burst_capacity());
        if left == 0 {
            let now = Instant::now();
            self.blocked.add(address, now + block_time(self.per_minute), now);
        }
    }

    /// Removes addresses whose failures are all free again.
    pub fn clean_up(&self) {
        if let Some(failures) = &self.failures {
            failures.retain_recent();
            failures.shrink_to_fit();
        }
    }
}

/// The time until the next failure of an address becomes free.
fn block_time(per_minute: u32) -> Duration {
    time_for_one(per_minute).max(Duration::from_millis(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_blocked_when_its_failures_are_used_up() {
        let limit = FailedAuthLimit::new(3);
        let (bad, good) = ("192.0.2.1".parse().unwrap(), "192.0.2.2".parse().unwrap());
        for _ in 0..2 {
            limit.record_failure(bad);
            assert!(!limit.is_blocked(bad));
        }
        limit.record_failure(bad);
        let refused = limit.blocked(bad).unwrap();
        assert!((1..=20).contains(&refused.retry_after_seconds));
        assert!(!limit.is_blocked(good));
        limit.clean_up();
        assert!(limit.is_blocked(bad), "cleaning up frees nobody");
    }

    #[test]
    fn addresses_of_one_ipv6_network_count_together() {
        let limit = FailedAuthLimit::new(1);
        limit.record_failure("2001:db8::1".parse().unwrap());
        assert!(limit.is_blocked("2001:db8::ffff".parse().unwrap()));
        assert!(!limit.is_blocked("2001:db8:0:1::1".parse().unwrap()));
        limit.record_failure("::ffff:192.0.2.9".parse().unwrap());
        assert!(limit.is_blocked("192.0.2.9".parse().unwrap()));
    }

    #[test]
    fn zero_switches_it_off() {
        let limit = FailedAuthLimit::new(0);
        let address = "192.0.2.1".parse().unwrap();
        (0..1000).for_each(|_| limit.record_failure(address));
        assert!(!limit.is_blocked(address));
    }
}
