//! A context token that is minted about once a minute and copied in between.

use std::sync::Arc;

use arc_swap::ArcSwapOption;
use chassis::token::LIFETIME_SECONDS;
use chrono::{DateTime, TimeDelta, Utc};
use http::HeaderValue;

/// A context token with less time than this is renewed before it is sent: the call must be over before it ends.
const RENEW_WHEN_LEFT_SECONDS: i64 = 15;

#[derive(Default)]
pub struct KeptToken(ArcSwapOption<Minted>);

struct Minted {
    header: HeaderValue,
    renew_at: DateTime<Utc>,
}

impl KeptToken {
    /// The token for the metadata entry `chassis::token::HEADER`; made by `mint` when there is none that lasts.
    pub fn header(&self, now: DateTime<Utc>, mint: impl FnOnce() -> String) -> HeaderValue {
        if let Some(minted) = &*self.0.load()
            && now < minted.renew_at
        {
            return minted.header.clone();
        }
        // A token is base64url and a dot: always a header. An empty one would be refused by the service.
        // Not marked sensitive: within its minute HTTP/2 then sends it as one byte instead of 300.
        let header = HeaderValue::try_from(mint()).unwrap_or_else(|_| HeaderValue::from_static(""));
        let renew_at = now + TimeDelta::seconds(LIFETIME_SECONDS - RENEW_WHEN_LEFT_SECONDS);
        self.0.store(Some(Arc::new(Minted { header: header.clone(), renew_at })));
        header
    }
}
