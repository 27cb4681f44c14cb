//! The limit of requests without a key. It keeps anyone from trying links, and from keeping a service busy with them.

use std::net::IpAddr;

use tower_governor::key_extractor::PeerIpKeyExtractor;

use super::bucket::Bucket;
use super::{Decision, network};

/// So many requests a minute for each address, with a burst.
pub struct PublicLimit(Bucket<IpAddr>);

impl PublicLimit {
    /// `per_minute` 0 switches the limit off.
    pub fn new(per_minute: u32, burst: u32) -> Self {
        Self(Bucket::new(per_minute, burst, "public", PeerIpKeyExtractor))
    }

    /// Counts a request. `None` when the limit is switched off.
    pub fn check(&self, from: IpAddr) -> Option<Decision> {
        self.0.check(&network(from))
    }

    /// Forgets addresses that may call as often as any.
    pub fn clean_up(&self) {
        self.0.clean_up();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_one_ipv6_network_count_together() {
        let limit = PublicLimit::new(1, 1);
        let allowed = |address: &str| limit.check(address.parse().unwrap()).unwrap().allowed;
        assert!(allowed("2001:db8::1") && allowed("2001:db8:0:1::1") && allowed("192.0.2.1"));
        assert!(!allowed("2001:db8::ffff") && !allowed("::ffff:192.0.2.1"));
    }
}
