//! What follows an attempt of a delivery, for the delivery and for its endpoint. Pure, but for the random part of a backoff.

use chassis_work::worker::backoff;
use chrono::{DateTime, TimeDelta, Utc};

use crate::egress::{HttpResponse, SendError};
use crate::text::storable;
use crate::webhook::{Delivery, DeliveryStatus, Endpoint};

/// The delays before the second and further attempts; the first is made without one.
const RETRY_DELAYS: [TimeDelta; 7] = [
    TimeDelta::seconds(5),
    TimeDelta::minutes(5),
    TimeDelta::minutes(30),
    TimeDelta::hours(2),
    TimeDelta::hours(5),
    TimeDelta::hours(10),
    TimeDelta::hours(10),
];
/// The backoff of an endpoint that has not responded in time.
const INITIAL_BACKOFF: TimeDelta = TimeDelta::seconds(5);
const MAX_BACKOFF: TimeDelta = TimeDelta::minutes(5);
/// An endpoint that has failed for this long is disabled.
const DISABLE_AFTER: TimeDelta = TimeDelta::days(5);

/// The result of an attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::webhook) struct DeliveryResult {
    /// `None` when there was no response.
    pub response_status: Option<i32>,
    /// `None` when the attempt succeeded.
    pub error: Option<String>,
}

impl From<Result<HttpResponse, SendError>> for DeliveryResult {
    fn from(sent: Result<HttpResponse, SendError>) -> Self {
        match sent {
            Ok(response) => {
                let error = format!("the response was {}", response.status);
                Self {
                    response_status: Some(response.status.into()),
                    error: (!response.is_success()).then_some(error),
                }
            }
            Err(error) => Self { response_status: None, error: Some(storable(&error.into_text())) },
        }
    }
}

/// Records an attempt in its delivery: it is delivered, has another attempt, or has failed.
pub(in crate::webhook) fn record_attempt(
    delivery: &mut Delivery,
    result: &DeliveryResult,
    now: DateTime<Utc>,
) {
    delivery.attempts += 1;
    delivery.updated_at = now;
    delivery.response_status = result.response_status;
    delivery.error = result.error.clone().unwrap_or_default();
    let made = usize::try_from(delivery.attempts).unwrap_or(usize::MAX);
    match (&result.error, RETRY_DELAYS.get(made.saturating_sub(1))) {
        (None, _) => {
            delivery.status = DeliveryStatus::Delivered;
            delivery.next_at = None;
            delivery.delivered_at = Some(now);
        }
        (Some(_), Some(delay)) => delivery.next_at = Some(now + *delay),
        (Some(_), None) => fail(delivery),
    }
}

/// Ends a delivery without success.
pub(in crate::webhook) fn fail(delivery: &mut Delivery) {
    delivery.status = DeliveryStatus::Failed;
    delivery.next_at = None;
}

/// Whether one more failure disables the endpoint.
pub(in crate::webhook) fn is_about_to_be_disabled(endpoint: &Endpoint, now: DateTime<Utc>) -> bool {
    endpoint.active && endpoint.failing_since.is_some_and(|since| now - since >= DISABLE_AFTER)
}

/// Ends the backoff of an endpoint.
pub(in crate::webhook) fn clear_backoff(endpoint: &mut Endpoint) {
    endpoint.unanswered = 0;
    endpoint.retry_at = None;
}

/// What an attempt says about its endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::webhook) enum EndpointOutcome {
    Success,
    /// A response that refuses the delivery, or a failure without a delay.
    Failure,
    /// No response in time, or a failure that took long: further deliveries would be delayed as much.
    Late,
}

/// Records in the endpoint the outcome of an attempt that lasted from `started_at` to `now`; tells whether this disables
/// the endpoint.
pub(in crate::webhook) fn record_outcome(
    endpoint: &mut Endpoint,
    outcome: EndpointOutcome,
    started_at: DateTime<Utc>,
    now: DateTime<Utc>,
) -> bool {
    if outcome == EndpointOutcome::Late {
        // Attempts that were in progress together count once, or the backoff would grow with the concurrency.
        if endpoint.retry_at.is_none_or(|at| at <= started_at) {
            endpoint.unanswered = endpoint.unanswered.saturating_add(1);
            let delay = backoff(endpoint.unanswered.unsigned_abs(), INITIAL_BACKOFF, MAX_BACKOFF);
            endpoint.retry_at = Some(now + delay);
        }
    } else {
        clear_backoff(endpoint);
    }
    if outcome == EndpointOutcome::Success {
        endpoint.failing_since = None;
        return false;
    }
    endpoint.failing_since.get_or_insert(now);
    let is_disabled = is_about_to_be_disabled(endpoint, now);
    if is_disabled {
        endpoint.active = false;
        "Every delivery has failed for 5 days.".clone_into(&mut endpoint.disabled_reason);
    }
    is_disabled
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use uuid::Uuid;

    use super::EndpointOutcome::{Failure, Late, Success};
    use super::*;
    use crate::webhook::Content;

    fn delivery() -> Delivery {
        let content = Content { event_id: None, kind: "a.b", payload: json!({}).to_string() };
        Delivery::new(Uuid::nil(), Uuid::nil(), content, DateTime::UNIX_EPOCH)
    }

    fn endpoint() -> Endpoint {
        Endpoint::new(Uuid::nil(), DateTime::UNIX_EPOCH)
    }

    #[test]
    fn eight_attempts_are_made_over_a_day_and_a_bit() {
        let (mut delivery, mut now) = (delivery(), DateTime::UNIX_EPOCH);
        let failure = DeliveryResult { response_status: Some(500), error: Some("no".to_owned()) };
        let mut delays = Vec::new();
        for _ in 0..20 {
            record_attempt(&mut delivery, &failure, now);
            let Some(next) = delivery.next_at else { break };
            delays.push((next - now).num_seconds());
            now = next;
        }
        assert_eq!(delays, [5, 300, 1800, 7200, 18_000, 36_000, 36_000]);
        assert_eq!((delivery.attempts, delivery.status), (8, DeliveryStatus::Failed));
    }

    #[test]
    fn a_success_ends_a_delivery() {
        let mut delivery = delivery();
        let success = DeliveryResult { response_status: Some(204), error: None };
        let now = DateTime::UNIX_EPOCH + TimeDelta::hours(1);
        record_attempt(&mut delivery, &success, now);
        assert_eq!((delivery.status, delivery.next_at), (DeliveryStatus::Delivered, None));
        assert_eq!((delivery.delivered_at, delivery.updated_at), (Some(now), now));
    }

    #[test]
    fn an_endpoint_is_disabled_after_five_days_without_a_success() {
        let (mut endpoint, start) = (endpoint(), DateTime::UNIX_EPOCH);
        let mut record = |outcome, now| record_outcome(&mut endpoint, outcome, now, now);
        assert!(!record(Failure, start));
        assert!(!record(Failure, start + DISABLE_AFTER - TimeDelta::seconds(1)));
        assert!(!record(Success, start + DISABLE_AFTER), "one success is enough");
        assert!(!record(Failure, start + DISABLE_AFTER));
        assert!(record(Failure, start + DISABLE_AFTER + DISABLE_AFTER));
        assert!(!record(Failure, start + DISABLE_AFTER * 3), "reported once");
        assert!(!endpoint.active && !endpoint.disabled_reason.is_empty());
    }

    #[test]
    fn the_backoff_of_a_late_endpoint_grows_until_it_responds() {
        let (mut endpoint, now) = (endpoint(), DateTime::UNIX_EPOCH);
        let mut delays = Vec::new();
        for _ in 0..10 {
            endpoint.retry_at = None;
            record_outcome(&mut endpoint, Late, now, now);
            delays.push((endpoint.retry_at.unwrap() - now).num_milliseconds());
            let before = (endpoint.unanswered, endpoint.retry_at);
            record_outcome(&mut endpoint, Late, now, now);
            assert_eq!(
                (endpoint.unanswered, endpoint.retry_at),
                before,
                "two in progress together count once"
            );
        }
        assert!((2500..=5000).contains(&delays[0]), "{delays:?}");
        assert!(delays.iter().skip(7).all(|delay| (150_000..=300_000).contains(delay)), "{delays:?}");
        record_outcome(&mut endpoint, Failure, now, now);
        assert_eq!((endpoint.retry_at, endpoint.unanswered), (None, 0), "a refusal is a response");
        assert!(endpoint.failing_since.is_some());
    }
}
