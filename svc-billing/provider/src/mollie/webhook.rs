//! Signed webhooks: checks the signature and extracts the id of the payment to fetch, and nothing else.
//!
//! Mollie has two kinds of webhook. The classic one is a form with an `id`, posted to the `webhookUrl` of each
//! payment. It is never signed and is not read here: the URL identifies the payment. The newer one is JSON, posted to
//! one URL for all payments, and signed.

use hmac::{Hmac, KeyInit, Mac};
use serde_json::Value;
use sha2::Sha256;

use super::wire::is_id;
use crate::{Fault, Webhook};

/// The id of the payment that the message is about; `None` if it is about something else. A message without a valid
/// signature is forged. Without a secret no message can be checked, and all are refused.
pub(super) fn verify(message: &Webhook<'_>, secrets: &[String]) -> Result<Option<String>, Fault> {
    if secrets.is_empty() {
        let detail = "signed messages cannot be checked here; set MOLLIE_WEBHOOK_SECRETS".to_owned();
        return Err(Fault::Refused { detail, field: None });
    }
    if !message.signature.is_some_and(|signature| is_signed(message.body, signature, secrets)) {
        return Err(Fault::Forged);
    }
    let body = message.body.trim_ascii();
    let is_event = body.first() == Some(&b'{');
    let id = if is_event { id_of_event(body) } else { id_of_form(body) };
    Ok(id.filter(|id| is_id(id, "tr_")))
}

/// `sha256=<hex>`, or the hex alone; while Mollie rotates secrets there may be several, comma-separated.
fn is_signed(body: &[u8], signatures: &str, secrets: &[String]) -> bool {
    signatures.split(',').map(str::trim).any(|signature| {
        let digits = signature.strip_prefix("sha256=").unwrap_or(signature);
        let tag = hex(digits);
        // Every secret is tried with a comparison in constant time.
        tag.is_some_and(|tag| secrets.iter().any(|secret| verifies(secret.as_bytes(), body, &tag)))
    })
}

fn verifies(secret: &[u8], body: &[u8], tag: &[u8]) -> bool {
    let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(secret) else { return false };
    mac.update(body);
    mac.verify_slice(tag).is_ok()
}

fn hex(digits: &str) -> Option<Vec<u8>> {
    let values: Option<Vec<u8>> =
        digits.chars().map(|digit| digit.to_digit(16).and_then(|value| u8::try_from(value).ok())).collect();
    let (pairs, rest) = values.as_deref()?.as_chunks::<2>();
    rest.is_empty().then(|| pairs.iter().map(|[high, low]| (high << 4) | low).collect())
}

/// An id has no characters that a form would encode.
fn id_of_form(body: &[u8]) -> Option<String> {
    let fields = std::str::from_utf8(body).ok()?.split('&');
    let mut pairs = fields.filter_map(|field| field.split_once('='));
    pairs.find(|(name, _)| *name == "id").map(|(_, id)| id.to_owned())
}

/// An event names its payment in `entityId`; a snapshot is the payment itself.
fn id_of_event(body: &[u8]) -> Option<String> {
    let event: Value = serde_json::from_slice(body).ok()?;
    let id = event.get("entityId").or_else(|| event.get("id"))?;
    id.as_str().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const FORM: &[u8] = b"id=tr_5B8cwPMGnU6qLbRvo7qEZo";
    const EVENT: &[u8] = br#"{"resource":"event","id":"event_1","type":"payment.paid","entityId":"tr_1"}"#;

    fn signature(secret: &str, body: &[u8]) -> String {
        let mut mac = Hmac::<Sha256>::new_from_slice(secret.as_bytes()).unwrap();
        mac.update(body);
        let tag = mac.finalize().into_bytes();
        tag.iter().fold(String::new(), |text, byte| format!("{text}{byte:02x}"))
    }

    fn check(body: &[u8], signature: Option<&str>, secrets: &[&str]) -> Result<Option<String>, Fault> {
        let secrets: Vec<String> = secrets.iter().map(|&secret| secret.to_owned()).collect();
        verify(&Webhook { signature, body }, &secrets)
    }

    /// The payment that a correctly signed message names.
    fn payment_in(body: &[u8]) -> Option<String> {
        check(body, Some(&signature("new", body)), &["new"]).unwrap()
    }

    #[test]
    fn a_form_names_its_payment() {
        assert_eq!(payment_in(FORM), Some("tr_5B8cwPMGnU6qLbRvo7qEZo".to_owned()));
        assert_eq!(payment_in(b"a=b&id=tr_1\r\n"), Some("tr_1".to_owned()));
    }

    #[test]
    fn an_event_and_a_snapshot_name_their_payment() {
        assert_eq!(payment_in(EVENT), Some("tr_1".to_owned()));
        assert_eq!(payment_in(br#" {"resource":"payment","id":"tr_2"}"#), Some("tr_2".to_owned()));
    }

    #[test]
    fn a_message_that_names_no_payment_is_about_none() {
        for body in [
            &b""[..],
            b"id=",
            b"id=ord_1",
            b"id=tr_",
            b"id=tr_../customers",
            b"id=tr_1%2F..",
            b"\xff\xfe",
            b"{",
            b"{}",
            br#"{"entityId":7}"#,
            br#"{"entityId":"pl_1","id":"tr_1"}"#,
        ] {
            assert_eq!(payment_in(body), None, "{body:?}");
        }
    }

    #[test]
    fn every_current_secret_is_accepted_with_and_without_prefix() {
        for secret in ["new", "old"] {
            let bare = signature(secret, EVENT);
            let several = format!("sha256={}, sha256={bare}", signature("other", EVENT));
            for header in [format!("sha256={bare}"), bare.to_uppercase(), bare, several] {
                assert!(check(EVENT, Some(&header), &["new", "old"]).is_ok(), "{header}");
            }
        }
    }

    #[test]
    fn a_forged_signature_is_refused_on_either_kind() {
        let foreign = signature("foreign", EVENT);
        let other_body = signature("new", b"{}");
        let cut = &signature("new", EVENT)[..62];
        for header in [&foreign, &other_body, cut, "", "sha256=", "sha256=zz", "sha256=é", "abc"] {
            assert_eq!(check(EVENT, Some(header), &["new"]), Err(Fault::Forged), "{header}");
            assert_eq!(check(FORM, Some(header), &["new"]), Err(Fault::Forged), "{header}");
        }
    }

    #[test]
    fn a_message_without_a_signature_is_refused() {
        for body in [FORM, EVENT, b""] {
            assert_eq!(check(body, None, &["new"]), Err(Fault::Forged), "{body:?}");
        }
    }

    #[test]
    fn without_secrets_all_messages_are_refused_with_the_setting_to_change() {
        for signature in [None, Some("sha256=00"), Some(signature("", EVENT).as_str())] {
            let refused = check(EVENT, signature, &[]).unwrap_err();
            assert!(refused.to_string().contains("MOLLIE_WEBHOOK_SECRETS"), "{refused}");
        }
    }

    proptest! {
        #[test]
        fn no_message_causes_a_panic(
            body in prop::collection::vec(any::<u8>(), 0..200),
            signature in prop::option::of(".{0,80}"),
        ) {
            let _ = check(&body, signature.as_deref(), &["secret"]);
        }
    }
}
