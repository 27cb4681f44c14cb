//! Limits: how often a key may call, how often an address may without one, and how often it may fail to authenticate.
//! The only module that uses `governor`; its interface has requests, minutes and seconds. It depends neither on routes
//! nor on responses.

// Of tower_governor only the limiter is used, as `GovernorConfigBuilder` makes it, and not its layer. The layer takes the
// key from the request before the handler runs, but the order of checks is part of the contract: key, rate limit, scope,
// and an operation decides by its policy which limit counts. Its headers are `x-ratelimit-*`, and its waits are rounded
// down to 0 s; the contract has `RateLimit` and waits of at least 1 s. `governor` itself is a dependency for the types of
// that limiter, which tower_governor does not re-export.
mod address;
mod exact;
mod failed_auth;
mod key;
mod token_bucket;
mod waiting;

use std::sync::Arc;
use std::time::Duration;

use http::{HeaderMap, HeaderName, HeaderValue, header};

pub use address::AddressLimit;
pub use exact::ExactLimit;
pub use failed_auth::FailedAuthLimit;
pub use key::KeyLimit;

use crate::settings::Settings;

const RATE_LIMIT: HeaderName = HeaderName::from_static("ratelimit");
const RATE_LIMIT_POLICY: HeaderName = HeaderName::from_static("ratelimit-policy");

/// How often keys and addresses that are no longer active are removed.
const CLEAN_UP_EVERY: Duration = Duration::from_secs(30);

/// How often an address may ask for the readiness, with a burst: many more than a load balancer with several processes
/// does. Separate from other requests without a key, so that those never make a gateway look as if it were down.
const READINESS_PER_MINUTE: u32 = 600;
const READINESS_BURST: u32 = 120;

/// Every limit is counted over a minute.
const WINDOW_SECONDS: u32 = 60;

/// Whether a request is allowed, and the state of the limit that its response reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decision {
    pub allowed: bool,
    /// Requests a minute.
    pub limit: u32,
    /// Requests that are left now.
    pub remaining: u32,
    /// The time until all of them are free again, if none is used.
    pub reset_seconds: u64,
    /// 0 when allowed, at least 1 when refused.
    pub retry_after_seconds: u64,
    /// The name of the limit.
    pub policy: &'static str,
}

impl Decision {
    /// Writes the limit to the headers of a response: `RateLimit-Policy` and `RateLimit`, and `Retry-After` on a refusal.
    pub fn write_headers(&self, headers: &mut HeaderMap) {
        let Self { policy, limit, remaining, reset_seconds, .. } = self;
        let mut insert = |name: HeaderName, value: String| {
            // Names of policies are plain words, so this is always a header.
            if let Ok(value) = HeaderValue::try_from(value) {
                headers.insert(name, value);
            }
        };
        insert(RATE_LIMIT_POLICY, format!("\"{policy}\";q={limit};w={WINDOW_SECONDS}"));
        insert(RATE_LIMIT, format!("\"{policy}\";r={remaining};t={reset_seconds}"));
        if !self.allowed {
            headers.insert(header::RETRY_AFTER, HeaderValue::from(self.retry_after_seconds));
        }
    }
}

/// The limits of one gateway.
pub struct Limits {
    pub key: KeyLimit,
    pub public: AddressLimit,
    pub readiness: AddressLimit,
    pub failed_auth: FailedAuthLimit,
    pub exact: ExactLimit,
}

impl Limits {
    pub fn new(settings: &Settings) -> Self {
        Self {
            key: KeyLimit::new(settings.rate_per_minute, settings.rate_burst),
            public: AddressLimit::new(settings.public_rate_per_minute, settings.public_rate_burst, "public"),
            readiness: AddressLimit::new(READINESS_PER_MINUTE, READINESS_BURST, "readiness"),
            failed_auth: FailedAuthLimit::new(settings.failed_auth_per_minute),
            exact: ExactLimit::default(),
        }
    }

    /// Removes inactive keys and addresses in an endless loop; to be spawned beside the server.
    pub async fn clean_up_periodically(self: Arc<Self>) {
        let mut ticks = tokio::time::interval(CLEAN_UP_EVERY);
        loop {
            ticks.tick().await;
            self.key.clean_up();
            self.public.clean_up();
            self.readiness.clean_up();
            self.failed_auth.clean_up();
        }
    }
}

/// Whole seconds, rounded up.
fn seconds_up(duration: Duration) -> u64 {
    duration.as_secs() + u64::from(duration.subsec_nanos() > 0)
}

/// The time in which one request of a rate becomes free again. This is what governor calls the period.
fn time_for_one(per_minute: u32) -> Duration {
    Duration::from_secs(u64::from(WINDOW_SECONDS)) / per_minute.max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_headers_tell_the_limit() {
        let mut headers = HeaderMap::new();
        let allowed = Decision {
            allowed: true,
            limit: 1200,
            remaining: 199,
            reset_seconds: 1,
            retry_after_seconds: 0,
            policy: "default",
        };
        allowed.write_headers(&mut headers);
        assert_eq!(headers["ratelimit-policy"], "\"default\";q=1200;w=60");
        assert_eq!(headers["ratelimit"], "\"default\";r=199;t=1");
        assert!(!headers.contains_key("retry-after"));
        let refused = Decision { allowed: false, remaining: 0, retry_after_seconds: 7, ..allowed };
        refused.write_headers(&mut headers);
        assert_eq!(headers["retry-after"], "7");
    }

    #[test]
    fn a_part_of_a_second_counts_as_a_whole_one() {
        assert_eq!(seconds_up(Duration::from_millis(1)), 1);
        assert_eq!(seconds_up(Duration::from_secs(2)), 2);
        assert_eq!(time_for_one(1200), Duration::from_millis(50));
    }
}
