//! What values an endpoint may have, and which events it gets. Pure.

use chassis_base::formats::email;
use chassis_base::update_mask::UpdateMask;
use chrono::TimeDelta;
use proto::api::Fault;
use proto::automation::WebhookEndpointInput;
use proto::{At, Faults};

use super::attempt::clear_backoff;
use crate::egress;
use crate::event::Event;
use crate::event::rules::{BUILT_IN, canonical, is_event_name};
use crate::webhook::Endpoint;

const FIELDS: [&str; 5] = ["url", "description", "types", "active", "notify_email"];
/// Endpoints of an account.
pub(in crate::webhook) const MAX_ENDPOINTS: i64 = 50;
/// Comes before the name of an event that integrations fire.
const CUSTOM_PREFIX: &str = "custom.";
/// How long the old secret signs beside the new one.
pub(in crate::webhook) const SECRET_OVERLAP: TimeDelta = TimeDelta::hours(24);

/// Gives the endpoint the values of a request. `allow_private` accepts addresses of private networks.
pub(in crate::webhook) fn apply(
    named: UpdateMask<'_>,
    given: &WebhookEndpointInput,
    endpoint: &mut Endpoint,
    allow_private: bool,
    faults: &mut Faults,
) {
    let at = At::ROOT.name("endpoint");
    named.check(|name| FIELDS.contains(&name), "webhook endpoint", faults);
    if named.has("url") {
        match egress::parse_url(&given.url) {
            _ if given.url.is_empty() => faults.add(&at.name("url"), Fault::Required, "url is required"),
            Ok(url) if !allow_private && egress::is_private(&url) => {
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
        clear_backoff(endpoint);
    }
    named.put("url", &given.url, &mut endpoint.url);
    named.put("description", &given.description, &mut endpoint.description);
    let types = given.types.iter().map(|kind| canonical(kind).to_owned()).collect();
    named.put("types", &types, &mut endpoint.types);
    named.put("notify_email", &given.notify_email, &mut endpoint.notify_email);
    if let Some(active) = active.filter(|_| named.has("active")) {
        if active && !endpoint.active {
            // An endpoint that is enabled again has the full time until it is disabled.
            endpoint.failing_since = None;
            endpoint.disabled_reason.clear();
            clear_backoff(endpoint);
        }
        endpoint.active = active;
    }
}

/// The area of a name that looks like a built-in event and is not one: probably a misspelling.
fn misnamed(kind: &str) -> Option<&str> {
    let (area, _) = kind.split_once('.')?;
    let is_built_in = built_in_of(area).any(|name| name == canonical(kind));
    (!is_built_in && built_in_of(area).next().is_some()).then_some(area)
}

fn built_in_of(area: &str) -> impl Iterator<Item = &'static str> {
    BUILT_IN.into_iter().filter(move |name| name.split_once('.').is_some_and(|(first, _)| first == area))
}

/// Whether an endpoint subscribes to an event. An event that an integration fired may also be named `custom.NAME`.
pub(in crate::webhook) fn is_subscribed(types: &[String], event: &Event) -> bool {
    let is_custom = |kind: &String| {
        kind.strip_prefix(CUSTOM_PREFIX) == Some(event.kind.as_str()) && event.sequence.is_none()
    };
    types.is_empty() || types.iter().any(|kind| *kind == event.kind || is_custom(kind))
}

#[cfg(test)]
mod tests {
    use chrono::DateTime;
    use uuid::Uuid;

    use super::*;
    use crate::egress::Secret;
    use crate::webhook::Binding;

    fn endpoint() -> Endpoint {
        Endpoint::new(Uuid::nil(), DateTime::UNIX_EPOCH)
    }

    #[test]
    fn an_endpoint_is_a_public_web_address() {
        let faults = |url: &str, allow_private| {
            let given = WebhookEndpointInput {
                url: url.into(),
                types: vec!["A".into()],
                ..WebhookEndpointInput::default()
            };
            let mut faults = Faults::default();
            apply(UpdateMask::All, &given, &mut endpoint(), allow_private, &mut faults);
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
    fn an_endpoint_reads_what_it_was_created_with_as_far_as_its_key_still_may() {
        let some = |scopes: &[&str]| Some(scopes.iter().map(ToString::to_string).collect::<Vec<_>>());
        let scopes = |created, reported| Binding { key: "k".into(), scopes: created, reported }.scopes();
        assert_eq!(scopes(None, None), None);
        assert_eq!(scopes(some(&["a", "b"]), None), some(&["a", "b"]));
        assert_eq!(scopes(some(&["a", "b"]), some(&["b", "c"])), some(&["b"]));
        assert_eq!(
            scopes(None, some(&["b"])),
            some(&["b"]),
            "created before scopes were stored, with a report since"
        );
        assert_eq!(scopes(some(&["a"]), some(&[])), some(&[]), "revoked");
    }

    #[test]
    fn the_old_secret_signs_beside_the_new_one_for_a_day() {
        let now = chassis_testing::moment();
        let rotated = Endpoint {
            old_secret: Some(Secret::random()),
            old_secret_until: Some(now + SECRET_OVERLAP),
            ..endpoint()
        };
        assert_eq!(rotated.secrets(now).len(), 2);
        assert_eq!(rotated.secrets(now + SECRET_OVERLAP).len(), 1);
    }
}
