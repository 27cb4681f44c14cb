//! What an endpoint may be, and what follows from an attempt. Pure.

use chassis_base::formats::email;
use chassis_base::update_mask::UpdateMask;
use chassis_work::worker::backoff;
use chrono::{DateTime, TimeDelta, Utc};
use proto::api::Fault;
use proto::automation::WebhookEndpointInput;
use proto::{At, Faults};

use super::{Delivery, Endpoint};
use crate::event::rules::{BUILT_IN, canonical};
use crate::outside::{self, Answer, Trouble};
use crate::run::rules::clean;
use crate::trigger::rules::is_event_name;

const FIELDS: [&str; 5] = ["url", "description", "types", "active", "notify_email"];

/// After each failure, how long until the next attempt; the first is made at once.
pub(super) const SCHEDULE: [TimeDelta; 7] = [
    TimeDelta::seconds(5),
    TimeDelta::minutes(5),
    TimeDelta::minutes(30),
    TimeDelta::hours(2),
    TimeDelta::hours(5),
    TimeDelta::hours(10),
    TimeDelta::hours(10),
];
/// An endpoint that has not answered in time is left alone for this long at first, and at most.
const INITIAL_BACKOFF: TimeDelta = TimeDelta::seconds(5);
const MAX_BACKOFF: TimeDelta = TimeDelta::minutes(5);
/// An endpoint that has failed for so long is switched off.
pub(super) const PATIENCE: TimeDelta = TimeDelta::days(5);
/// Endpoints of an account.
pub(super) const MAX_ENDPOINTS: i64 = 50;
/// Before the name of an event that integrations fire.
pub(super) const CUSTOM: &str = "custom.";
/// How long the old secret signs along.
pub(super) const OVERLAP: TimeDelta = TimeDelta::hours(24);

pub(super) const PENDING: &str = "pending";
pub(super) const DELIVERED: &str = "delivered";
pub(super) const FAILED: &str = "failed";

/// Gives the endpoint the values that a request names. `private` lets addresses of private networks pass.
pub(super) fn apply(
    named: UpdateMask<'_>,
    given: &WebhookEndpointInput,
    endpoint: &mut Endpoint,
    private: bool,
    faults: &mut Faults,
) {
    let at = At::ROOT.name("endpoint");
    named.check(|name| FIELDS.contains(&name), "webhook endpoint", faults);
    if named.has("url") {
        match outside::address(&given.url) {
            _ if given.url.is_empty() => faults.add(&at.name("url"), Fault::Required, "url is required"),
            Ok(url) if !private && outside::is_private(&url) => {
                faults.add(&at.name("url"), Fault::BadUrl, "url must not be in a private network");
            }
            Ok(_) => {}
            Err(why) => faults.add(&at.name("url"), Fault::BadUrl, format!("url {why}")),
        }
    }
    for (index, kind) in given.types.iter().enumerate() {
        if kind.is_empty() || !is_event_name(kind) {
            let detail = "an event must have only the characters a-z 0-9 _ . : -";
            faults.add(&at.name("types").index(index), Fault::BadFormat, detail);
        } else if let Some(area) = misnamed(kind) {
            let detail = format!(
                "there is no event {kind}; those about a {area} are {}, and one of your own is custom.NAME",
                built_in_of(area).collect::<Vec<_>>().join(", ")
            );
            faults.add(&at.name("types").index(index), Fault::NotAllowed, detail);
        }
    }
    if !given.notify_email.is_empty() && email::normalise(&given.notify_email).is_none() {
        let detail = "notify_email must be an e-mail address";
        faults.add(&at.name("notify_email"), Fault::BadEmail, detail);
    }
    let active = match named {
        UpdateMask::All => Some(given.active.unwrap_or(true)),
        UpdateMask::Only(_) => given.active,
    };
    if named.has("active") && active.is_none() {
        faults.add(&at.name("active"), Fault::NotNullable, "active must be true or false");
    }
    if named.has("url") && endpoint.url != given.url {
        answered(endpoint);
    }
    named.put("url", &given.url, &mut endpoint.url);
    named.put("description", &given.description, &mut endpoint.description);
    let types = given.types.iter().map(|kind| canonical(kind).to_owned()).collect();
    named.put("types", &types, &mut endpoint.types);
    named.put("notify_email", &given.notify_email, &mut endpoint.notify_email);
    if let Some(active) = active.filter(|_| named.has("active")) {
        if active && !endpoint.active {
            // Whoever switches it on again gives it all its patience.
            endpoint.failing_since = None;
            endpoint.disabled_reason.clear();
            answered(endpoint);
        }
        endpoint.active = active;
    }
}

/// The area of a name that looks like a built-in event and is none.
fn misnamed(kind: &str) -> Option<&str> {
    let (area, _) = kind.split_once('.')?;
    let is_built_in = built_in_of(area).any(|known| known == canonical(kind));
    (!is_built_in && built_in_of(area).next().is_some()).then_some(area)
}

fn built_in_of(area: &str) -> impl Iterator<Item = &'static str> {
    BUILT_IN.into_iter().filter(move |known| known.split_once('.').is_some_and(|(first, _)| first == area))
}

/// What an attempt came to: the HTTP status, if there was one, and why it failed, if it did.
pub(super) fn judge(sent: Result<Answer, Trouble>) -> (Option<i32>, Option<String>) {
    match sent {
        Ok(answer) if answer.is_success() => (Some(answer.status.into()), None),
        Ok(answer) => (Some(answer.status.into()), Some(format!("the answer was {}", answer.status))),
        Err(trouble) => (None, Some(clean(&trouble.into_text()))),
    }
}

/// Notes an attempt in a delivery.
pub(super) fn note(
    delivery: &mut Delivery,
    (status, error): &(Option<i32>, Option<String>),
    now: DateTime<Utc>,
) {
    delivery.attempts += 1;
    delivery.response_status = *status;
    delivery.error = error.clone().unwrap_or_default();
    let made = usize::try_from(delivery.attempts).unwrap_or(usize::MAX);
    match (error, SCHEDULE.get(made.saturating_sub(1))) {
        (None, _) => {
            DELIVERED.clone_into(&mut delivery.status);
            delivery.next_at = None;
            delivery.delivered_at = Some(now);
        }
        (Some(_), Some(wait)) => delivery.next_at = Some(now + *wait),
        (Some(_), None) => give_up(delivery),
    }
}

pub(super) fn give_up(delivery: &mut Delivery) {
    FAILED.clone_into(&mut delivery.status);
    delivery.next_at = None;
}

/// Whether one more failure switches the endpoint off.
pub(super) fn is_out_of_patience(endpoint: &Endpoint, now: DateTime<Utc>) -> bool {
    endpoint.active && endpoint.failing_since.is_some_and(|since| now - since >= PATIENCE)
}

/// Nothing is held against the endpoint any more.
pub(super) fn answered(endpoint: &mut Endpoint) {
    (endpoint.unanswered, endpoint.retry_at) = (0, None);
}

/// How an attempt went for its endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answered {
    WithSuccess,
    WithFailure,
    /// Not in time, or only after a while that others would have waited too.
    Late,
}

/// Notes in the endpoint how an attempt went that was made from `begun` to `now`; tells whether it has to be switched off.
pub(super) fn follow(
    endpoint: &mut Endpoint,
    answer: Answered,
    (begun, now): (DateTime<Utc>, DateTime<Utc>),
) -> bool {
    if answer == Answered::Late {
        // Those that were under way together are one.
        if endpoint.retry_at.is_none_or(|at| at <= begun) {
            endpoint.unanswered = endpoint.unanswered.saturating_add(1);
            let wait = backoff(endpoint.unanswered.unsigned_abs(), INITIAL_BACKOFF, MAX_BACKOFF);
            endpoint.retry_at = Some(now + wait);
        }
    } else {
        answered(endpoint);
    }
    if answer == Answered::WithSuccess {
        endpoint.failing_since = None;
        return false;
    }
    endpoint.failing_since.get_or_insert(now);
    let off = is_out_of_patience(endpoint, now);
    if off {
        endpoint.active = false;
        "Every delivery has failed for 5 days.".clone_into(&mut endpoint.disabled_reason);
    }
    off
}

#[cfg(test)]
mod tests {
    use super::super::Binding;
    use super::Answered::{Late, WithFailure, WithSuccess};
    use super::*;
    use crate::outside::Secret;
    use uuid::Uuid;

    fn delivery() -> Delivery {
        Delivery {
            id: Uuid::nil(),
            endpoint_id: Uuid::nil(),
            event_id: None,
            kind: "a.b".into(),
            payload: "{}".into(),
            status: PENDING.into(),
            attempts: 0,
            response_status: None,
            error: String::new(),
            next_at: None,
            created_at: DateTime::UNIX_EPOCH,
            delivered_at: None,
        }
    }

    fn endpoint() -> Endpoint {
        Endpoint {
            id: Uuid::nil(),
            url: "https://example.com".into(),
            description: String::new(),
            types: Vec::new(),
            active: true,
            notify_email: String::new(),
            secret: Secret::random(),
            old_secret: None,
            old_secret_until: None,
            failing_since: None,
            unanswered: 0,
            retry_at: None,
            disabled_reason: String::new(),
            binding: Binding::default(),
            created_at: DateTime::UNIX_EPOCH,
            updated_at: DateTime::UNIX_EPOCH,
        }
    }

    #[test]
    fn eight_attempts_are_made_over_a_day_and_a_bit() {
        let (mut delivery, mut now) = (delivery(), DateTime::UNIX_EPOCH);
        let failure = (Some(500), Some("no".to_owned()));
        let mut waits = Vec::new();
        loop {
            note(&mut delivery, &failure, now);
            let Some(next) = delivery.next_at else { break };
            waits.push((next - now).num_seconds());
            now = next;
        }
        assert_eq!(waits, [5, 300, 1800, 7200, 18_000, 36_000, 36_000]);
        assert_eq!((delivery.attempts, delivery.status.as_str()), (8, FAILED));
    }

    #[test]
    fn success_ends_it() {
        let mut delivery = delivery();
        note(&mut delivery, &(Some(204), None), DateTime::UNIX_EPOCH);
        assert_eq!((delivery.status.as_str(), delivery.next_at), (DELIVERED, None));
    }

    #[test]
    fn an_endpoint_is_switched_off_after_five_days_without_any_success() {
        let (mut endpoint, start) = (endpoint(), DateTime::UNIX_EPOCH);
        let at = |now| (now, now);
        assert!(!follow(&mut endpoint, WithFailure, at(start)));
        assert!(!follow(&mut endpoint, WithFailure, at(start + PATIENCE - TimeDelta::seconds(1))));
        assert!(!follow(&mut endpoint, WithSuccess, at(start + PATIENCE)), "one success is enough");
        assert!(!follow(&mut endpoint, WithFailure, at(start + PATIENCE)));
        assert!(follow(&mut endpoint, WithFailure, at(start + PATIENCE + PATIENCE)));
        assert!(!endpoint.active && !endpoint.disabled_reason.is_empty());
        assert!(!follow(&mut endpoint, WithFailure, at(start + PATIENCE * 3)), "told once");
    }

    #[test]
    fn an_endpoint_that_answers_late_is_left_alone_for_longer_and_longer_until_it_answers() {
        let (mut endpoint, now) = (endpoint(), DateTime::UNIX_EPOCH);
        let mut waits = Vec::new();
        for _ in 0..10 {
            endpoint.retry_at = None;
            follow(&mut endpoint, Late, (now, now));
            waits.push((endpoint.retry_at.unwrap() - now).num_milliseconds());
            let before = (endpoint.unanswered, endpoint.retry_at);
            follow(&mut endpoint, Late, (now, now));
            assert_eq!((endpoint.unanswered, endpoint.retry_at), before, "two under way together are one");
        }
        assert!((2500..=5000).contains(&waits[0]), "{waits:?}");
        assert!(waits.iter().skip(7).all(|wait| (150_000..=300_000).contains(wait)), "{waits:?}");
        follow(&mut endpoint, WithFailure, (now, now));
        assert_eq!((endpoint.retry_at, endpoint.unanswered), (None, 0), "a refusal is an answer");
        assert!(endpoint.failing_since.is_some());
    }

    #[test]
    fn an_endpoint_is_a_public_web_address() {
        let faults = |url: &str, private| {
            let given = WebhookEndpointInput {
                url: url.into(),
                types: vec!["A".into()],
                ..WebhookEndpointInput::default()
            };
            let mut faults = Faults::default();
            apply(UpdateMask::All, &given, &mut endpoint(), private, &mut faults);
            faults.entries().iter().map(|entry| (entry.pointer.clone(), entry.code())).collect::<Vec<_>>()
        };
        let kind = ("/endpoint/types/0".to_owned(), Fault::BadFormat);
        assert_eq!(faults("https://example.com", false), std::slice::from_ref(&kind));
        assert_eq!(faults("http://127.0.0.1:1", true), std::slice::from_ref(&kind));
        assert_eq!(
            faults("http://127.0.0.1:1", false),
            [("/endpoint/url".to_owned(), Fault::BadUrl), kind.clone()]
        );
        assert_eq!(faults("", false), [("/endpoint/url".to_owned(), Fault::Required), kind]);
    }

    #[test]
    fn a_name_that_is_almost_a_built_in_event_is_refused() {
        assert_eq!(misnamed("invoice.payed"), Some("invoice"));
        for fine in ["invoice.paid", "quote.fase_changed", "order.shipped", "custom.invoice", "paid"] {
            assert_eq!(misnamed(fine), None, "{fine}");
        }
    }

    #[test]
    fn an_endpoint_reads_what_it_was_made_with_as_far_as_its_key_has_that() {
        let some = |scopes: &[&str]| Some(scopes.iter().map(ToString::to_string).collect::<Vec<_>>());
        let scopes = |made, told| Binding { key: "k".into(), scopes: made, told }.scopes();
        assert_eq!(scopes(None, None), None);
        assert_eq!(scopes(some(&["a", "b"]), None), some(&["a", "b"]));
        assert_eq!(scopes(some(&["a", "b"]), some(&["b", "c"])), some(&["b"]));
        assert_eq!(scopes(None, some(&["b"])), some(&["b"]), "one of before, whose key is known since");
        assert_eq!(scopes(some(&["a"]), some(&[])), some(&[]), "revoked");
    }

    #[test]
    fn the_old_secret_signs_along_for_a_day() {
        let now = chassis_testing::moment();
        let rotated = Endpoint {
            old_secret: Some(Secret::random()),
            old_secret_until: Some(now + OVERLAP),
            ..endpoint()
        };
        assert_eq!(rotated.secrets(now).len(), 2);
        assert_eq!(rotated.secrets(now + OVERLAP).len(), 1);
    }
}
