//! Context tokens that are minted about once a minute and copied in between: one for each service that is called.

use arc_swap::ArcSwap;
use chassis::token::LIFETIME_SECONDS;
use chrono::{DateTime, TimeDelta, Utc};
use http::HeaderValue;

/// A context token with less time than this is renewed before it is sent: the call must be over before it ends.
const RENEW_WHEN_LEFT_SECONDS: i64 = 15;

/// A handful, so that looking through them is quicker than a map.
#[derive(Default)]
pub struct KeptTokens(ArcSwap<Vec<Minted>>);

#[derive(Clone)]
struct Minted {
    service: Box<str>,
    header: HeaderValue,
    renew_at: DateTime<Utc>,
}

impl KeptTokens {
    /// The token for calls to a service, for the metadata entry `chassis::token::HEADER`; made by `mint` when there is
    /// none that lasts.
    pub fn header(&self, service: &str, now: DateTime<Utc>, mint: impl FnOnce() -> String) -> HeaderValue {
        let kept = self.0.load();
        if let Some(minted) = kept.iter().find(|minted| &*minted.service == service && now < minted.renew_at)
        {
            return minted.header.clone();
        }
        // A token is base64url and a dot: always a header. An empty one would be refused by the service.
        // Not marked sensitive: within its minute HTTP/2 then sends it as one byte instead of 300.
        let header = HeaderValue::try_from(mint()).unwrap_or_else(|_| HeaderValue::from_static(""));
        let renew_at = now + TimeDelta::seconds(LIFETIME_SECONDS - RENEW_WHEN_LEFT_SECONDS);
        let mut renewed: Vec<Minted> =
            kept.iter().filter(|minted| &*minted.service != service).cloned().collect();
        renewed.push(Minted { service: service.into(), header: header.clone(), renew_at });
        // Of two that renew at once one is forgotten, and minted again when it is next asked for.
        self.0.store(renewed.into());
        header
    }
}
