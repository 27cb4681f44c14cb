//! Writes of webhooks: endpoints with the scopes of their keys, deliveries, and the secrets of the account.

pub(super) mod deliveries;
pub(super) mod endpoints;
pub(super) mod secrets;

use crate::error::Error;

pub(crate) use deliveries::{purge, queue};
pub(crate) use endpoints::show;
pub(crate) use secrets::signing_secrets;

pub(super) const NOT_FOUND: Error = Error::NotFound("webhook endpoint");
