//! What values an endpoint may have, and which events it gets. Pure.

use chassis_base::formats::email;
use chassis_base::update_mask::UpdateMask;
use chrono::TimeDelta;
use proto::api::Fault;
use proto::automation::WebhookEndpointInput;
use proto::{At, Faults, did_you_mean};

use super::attempt::clear_backoff;
use crate::egress;
use crate::event::Event;
use crate::event::rules::{BUILT_IN, canonical, is_event_name};
use crate::webhook::Endpoint;

const FIELDS: [&str; 5] = ["url", "description", "types", "active", "notify_email"];
/// Endpoints of an account.
pub(in crate::webhook) const MAX_ENDPOINTS: i64 = 50;
/// Comes before the name of an event that integrations fire, in the types of an endpoint only.
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
        // What it has shown may be sent back: endpoints of the release before name events of integrations without prefix.
        if !endpoint.types.iter().any(|stored| stored == canonical(kind))
            && let Err(wrong) = check_type(kind)
        {
            faults.add(&at.name("types").index(index), wrong.fault, wrong.detail);
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

struct WrongType {
    fault: Fault,
    detail: String,
}

/// Whether an endpoint may name this event: one that is built in, or `custom.NAME` for one that integrations fire.
fn check_type(kind: &str) -> Result<(), WrongType> {
    let custom = kind.strip_prefix(CUSTOM_PREFIX);
    if kind.is_empty() || !is_event_name(kind) || custom == Some("") {
        let detail =
            "an event must have only the characters a-z 0-9 _ . : -, and one after custom.".to_owned();
        return Err(WrongType { fault: Fault::BadFormat, detail });
    }
    if custom.is_some() || BUILT_IN.contains(&canonical(kind)) {
        return Ok(());
    }
    let meant = did_you_mean(kind, BUILT_IN);
    let detail = format!("there is no event {kind}; one of your own is {CUSTOM_PREFIX}{kind}{meant}");
    Err(WrongType { fault: Fault::NotAllowed, detail })
}

/// Whether an endpoint subscribes to an event. One that an integration fired is named `custom.NAME`; endpoints of the
/// release before may have stored it as `NAME`, which is also how those are named that are built in.
pub(in crate::webhook) fn is_subscribed(types: &[String], event: &Event) -> bool {
    let is_custom = |kind: &String| {
        let named = kind.strip_prefix(CUSTOM_PREFIX).map(canonical);
        named == Some(event.kind.as_str()) && event.sequence.is_none()
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
    fn an_endpoint_names_events_that_are_built_in_and_custom_ones() {
        for fine in
            ["invoice.paid", "quote.fase_changed", "custom.order.shipped", "custom.invoice.paid", "custom.x"]
        {
            assert!(check_type(fine).is_ok(), "{fine}");
        }
        for (wrong, fault, said) in [
            ("invoice.payed", Fault::NotAllowed, "did you mean `invoice.paid`?"),
            ("order.shipped", Fault::NotAllowed, "one of your own is custom.order.shipped"),
            ("customer.created.", Fault::NotAllowed, "did you mean `customer.created`?"),
            ("custom", Fault::NotAllowed, "custom.custom"),
            ("custom.", Fault::BadFormat, "one after custom."),
            ("", Fault::BadFormat, "a-z"),
            ("Invoice.paid", Fault::BadFormat, "a-z"),
        ] {
            let refused = check_type(wrong).err().unwrap();
            assert_eq!(refused.fault, fault, "{wrong}");
            assert!(refused.detail.contains(said), "{wrong}: {}", refused.detail);
        }
    }

    #[test]
    fn an_endpoint_of_before_keeps_its_names_and_gets_no_new_ones() {
        let refused = |types: &[&str]| {
            let types = types.iter().map(ToString::to_string).collect();
            let given = WebhookEndpointInput { types, ..WebhookEndpointInput::default() };
            let mut stored = Endpoint { types: vec!["order.shipped".into()], ..endpoint() };
            let (mask, mut faults) = (["types".to_owned()], Faults::default());
            apply(UpdateMask::Only(&mask), &given, &mut stored, false, &mut faults);
            faults.entries().iter().map(|entry| entry.pointer.clone()).collect::<Vec<_>>()
        };
        assert!(refused(&["order.shipped", "invoice.paid"]).is_empty());
        assert_eq!(refused(&["order.shipped", "order.lost"]), ["/endpoint/types/1"]);
    }

    #[test]
    fn a_custom_name_is_an_event_that_an_integration_fired() {
        let event = |kind: &str, sequence| Event {
            id: Uuid::nil(),
            kind: kind.to_owned(),
            entity_type: String::new(),
            entity_id: String::new(),
            sequence,
            data: "{}".to_owned(),
            occurred_at: DateTime::UNIX_EPOCH,
            depth: 0,
            actor: String::new(),
        };
        let gets =
            |name: &str, kind: &str, sequence| is_subscribed(&[name.to_owned()], &event(kind, sequence));
        assert!(gets("custom.order.shipped", "order.shipped", None));
        assert!(gets("order.shipped", "order.shipped", None), "of the release before");
        assert!(gets("custom.custom.x", "custom.x", None) && gets("custom.x", "custom.x", None));
        assert!(
            gets("custom.invoice.paid", "invoice.paid", None) && gets("invoice.paid", "invoice.paid", None)
        );
        assert!(!gets("custom.invoice.paid", "invoice.paid", Some(1)), "a service told it");
        assert!(gets("custom.quote.fase_changed", "quote.phase_changed", None));
        assert!(!gets("custom.order.lost", "order.shipped", None));
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
