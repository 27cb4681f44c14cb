//! Path, query and body to wire bytes.

use std::fmt::Write;

use chassis_transcode::Location;
use chassis_transcode::contract::Operation;
use proptest::prelude::*;
use prost::Message;
use prost_reflect::{DynamicMessage, FieldDescriptor, Kind, MethodDescriptor, ReflectMessage, Value};
use proto::api::{Fault, SignedBody};

use crate::oracle;
use crate::support::{Use, everything, message, runner, sample};

const MASK: &str = "google.protobuf.FieldMask";
const SIGNED: &str = "admin.api.v1.SignedBody";

/// What an integrator sends, and the message that must come of it.
struct Sent {
    path: Vec<(String, String)>,
    query: String,
    body: Option<Vec<u8>>,
    expected: Vec<u8>,
}

fn is_mask(field: &FieldDescriptor) -> bool {
    matches!(field.kind(), Kind::Message(inner) if inner.full_name() == MASK)
}

fn escaped(text: &str) -> String {
    text.bytes().fold(String::new(), |mut escaped, byte| {
        write!(escaped, "%{byte:02x}").unwrap();
        escaped
    })
}

/// Takes a random request message apart by the rule of its method.
fn sent(operation: &Operation, method: &MethodDescriptor, request: &DynamicMessage) -> Sent {
    let rule = proto::policy::http_rule(method).unwrap();
    let mut expected = request.clone();
    let mut sent = Sent { path: Vec::new(), query: String::new(), body: None, expected: Vec::new() };
    let mut whole = DynamicMessage::new(method.input());
    for field in method.input().fields() {
        let value = request.get_field(&field).into_owned();
        if operation.path.contains(&format!("{{{}}}", field.name())) {
            let text =
                if request.has_field(&field) { oracle::parameter(&field, &value) } else { String::new() };
            sent.path.push((field.name().to_owned(), escaped(&text)));
        } else if is_mask(&field) {
            // Set when the body is known.
        } else if rule.body == "*" {
            if request.has_field(&field) {
                whole.set_field(&field, value);
            }
            sent.body = Some(oracle::sent(&whole).into());
        } else if field.name() == rule.body && operation.request.takes_raw_body() {
            let bytes = value.as_str().map(|text| text.as_bytes().to_vec());
            sent.body = Some(bytes.or(value.as_bytes().map(|bytes| bytes.to_vec())).unwrap());
        } else if operation.request.upload() == Some(field.number()) {
            // The content follows the message.
            expected.clear_field(&field);
        } else if field.name() == rule.body {
            let body = value.as_message().unwrap();
            // A signed body arrives with its signature; any other is JSON.
            let signed = body.descriptor().full_name() == SIGNED;
            sent.body = Some(if signed { body.encode_to_vec() } else { oracle::sent(body).into() });
            let paths = body.fields().map(|(field, _)| Value::String(field.name().to_owned())).collect();
            if let Some(mask) = method.input().fields().find(is_mask) {
                let mut fields = expected.get_field(&mask).as_message().unwrap().clone();
                fields.set_field_by_name("paths", Value::List(paths));
                expected.set_field(&mask, Value::Message(fields));
            }
            expected.set_field(&field, value);
        } else if request.has_field(&field) {
            let text = oracle::parameter(&field, &value);
            write!(sent.query, "{0}=&unknown=1&{0}={1}&", field.name(), escaped(&text)).unwrap();
            match &value {
                Value::String(text) if text.is_empty() => expected.clear_field(&field),
                Value::List(items) => {
                    // A comma separates, and an empty entry is none.
                    let texts = items.iter().filter_map(|item| item.as_str());
                    let parts: Vec<Value> = texts
                        .flat_map(|t| t.split(','))
                        .filter(|t| !t.is_empty())
                        .map(|t| Value::String(t.into()))
                        .collect();
                    if matches!(field.kind(), Kind::String) {
                        expected.set_field(&field, Value::List(parts));
                    }
                }
                _ => {}
            }
        }
    }
    if let Some(mask) = method.input().fields().find(is_mask).filter(|_| rule.body == "*") {
        let paths = whole.fields().map(|(field, _)| Value::String(field.name().to_owned())).collect();
        let mut fields = expected.get_field(&mask).as_message().unwrap().clone();
        fields.set_field_by_name("paths", Value::List(paths));
        expected.set_field(&mask, Value::Message(fields));
    }
    sent.expected = expected.encode_to_vec();
    sent
}

#[test]
fn every_public_request_becomes_the_bytes_that_the_oracle_writes() {
    for (operation, method) in everything() {
        let without_mask = message_without_mask(&method);
        runner()
            .run(&without_mask, |request| {
                let sent = sent(operation, &method, &request);
                let path: Vec<(&str, &str)> =
                    sent.path.iter().map(|(n, v)| (n.as_str(), v.as_str())).collect();
                let bound = operation.request.bind(&path, Some(&sent.query), sent.body.as_deref()).unwrap();
                // What is made at random may have a U+0000 inside free JSON, or nothing in an update that needs a field.
                let faults = bound.faults.entries();
                let expected =
                    faults.iter().all(|e| e.detail.contains("U+0000") || e.code() == Fault::NoField);
                prop_assert!(expected, "{:?} of {:?}", bound.faults, sent.body);
                prop_assert_eq!(
                    DynamicMessage::decode(method.input(), bound.message.as_slice()).unwrap(),
                    DynamicMessage::decode(method.input(), sent.expected.as_slice()).unwrap()
                );
                prop_assert_eq!(bound.message, sent.expected);
                Ok(())
            })
            .unwrap_or_else(|error| panic!("{}: {error}", operation.name));
    }
}

#[test]
fn a_signed_body_is_passed_on_byte_by_byte() {
    let operation = sample().operation("HearSigned");
    assert_eq!(operation.signature.as_ref().unwrap(), "x-sample-signature");
    assert!(operation.request.takes_body() && operation.request.takes_signed_body());
    for data in [&b""[..], b"{\"a\": 1", b"\xff\x00\x0a", b"id=1&a=%zz"] {
        let signed = SignedBody { signature: "s".to_owned(), data: data.to_vec().into() };
        let bound = operation.request.bind(&[], Some("note=n"), Some(&signed.encode_to_vec())).unwrap();
        assert!(bound.faults.is_empty());
        let input = sample().method(operation).input();
        let request = DynamicMessage::decode(input, bound.message.as_slice()).unwrap();
        assert_eq!(request.get_field_by_name("note").unwrap().as_str(), Some("n"));
        let event = request.get_field_by_name("event").unwrap().as_message().unwrap().clone();
        assert_eq!(event.get_field_by_name("signature").unwrap().as_str(), Some("s"));
        assert_eq!(event.get_field_by_name("data").unwrap().as_bytes().unwrap(), data);
    }
}

fn message_without_mask(method: &MethodDescriptor) -> BoxedStrategy<DynamicMessage> {
    let input = method.input();
    message(&input, Use::Request)
        .prop_map(move |mut request| {
            if let Some(mask) = input.fields().find(is_mask) {
                request.clear_field(&mask);
            }
            request
        })
        .boxed()
}

/// Any JSON, with the names of the contract more often than others.
fn any_json() -> impl Strategy<Value = serde_json::Value> {
    let names = "thing|flag|small|big|ubig|color|colors|price|free|at|times|part|parts|pieces|count|amount|name|numbers|texts|note|text|[a-z/~]{0,3}";
    let leaf = prop_oneof![
        Just(serde_json::Value::Null),
        any::<bool>().prop_map(Into::into),
        any::<i64>().prop_map(Into::into),
        any::<f64>().prop_map(Into::into),
        prop_oneof!["red|dark_blue|1.5|2026-01-01T00:00:00Z|", any::<String>()].prop_map(Into::into),
    ];
    leaf.prop_recursive(4, 48, 6, move |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Into::into),
            proptest::collection::vec((names, inner), 0..6)
                .prop_map(|entries| serde_json::Value::Object(entries.into_iter().collect())),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]
    #[test]
    fn any_json_becomes_a_message_and_faults_that_point_into_it(json in any_json()) {
        for name in ["CreateThing", "UpdateThing", "CreatePart"] {
            let operation = sample().operation(name);
            let body = json.to_string();
            let bound = operation.request.bind(&[("id", "1")], None, Some(body.as_bytes())).unwrap();
            let input = sample().method(operation).input();
            let decoded = DynamicMessage::decode(input, bound.message.as_slice()).unwrap();
            prop_assert_eq!(decoded.encode_to_vec(), bound.message.clone());
            for fault in bound.faults.entries() {
                let Location::Pointer(pointer) = operation.request.locate(&bound, &fault.pointer) else {
                    panic!("{fault:?}");
                };
                prop_assert!(json.pointer(&pointer).is_some(), "{} of {:?} in {}", pointer, fault, body);
            }
        }
    }

    #[test]
    fn any_bytes_are_a_request_or_malformed(
        body in proptest::collection::vec(any::<u8>(), 0..40),
        query: String,
        segment: String,
    ) {
        for (operation, _) in everything() {
            let _ = operation.request.bind(&[("id", &segment)], Some(&query), Some(&body));
        }
    }
}
