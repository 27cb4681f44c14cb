//! The rules of webhooks: for the values of endpoints, and for what follows an attempt.

mod attempt;
mod endpoint;

pub(super) use attempt::{
    DeliveryResult, EndpointOutcome, clear_backoff, fail, is_about_to_be_disabled, record_attempt,
    record_outcome,
};
pub(super) use endpoint::{MAX_ENDPOINTS, SECRET_OVERLAP, apply, is_subscribed};
