//! The limits of requests without a key. They stop anyone from guessing links, and from keeping a service busy.

use std::net::IpAddr;

use chassis_service::connections::network;
use tower_governor::key_extractor::PeerIpKeyExtractor;

use super::Decision;
use super::token_bucket::TokenBucket;

/// Limits the requests a minute of each address, with a burst.
pub struct AddressLimit(TokenBucket<IpAddr>);

impl AddressLimit {
    /// `per_minute` 0 switches the limit off. `policy` is the name that callers see.
    pub fn new(per_minute: u32, burst: u32, policy: &'static str) -> Self {
        Self(TokenBucket::new(per_minute, burst, policy, PeerIpKeyExtractor))
    }

    /// Counts a request. `None` when the limit is switched off.
    pub fn check(&self, from: IpAddr) -> Option<Decision> {
        self.0.check(&network(from))
    }

    /// Removes addresses that have their full burst again.
    pub fn clean_up(&self) {
        self.0.clean_up();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_one_ipv6_network_count_together() {
        let limit = AddressLimit::new(1, 1, "test");
        let allowed = |address: &str| limit.check(address.parse().unwrap()).unwrap().allowed;
        assert!(allowed("2001:db8::1") && allowed("2001:db8:0:1::1") && allowed("192.0.2.1"));
        assert!(!allowed("2001:db8::ffff") && !allowed("::ffff:192.0.2.1"));
    }
}
