//! Wire bytes to JSON.

use chassis_transcode::{RenderError, ResponsePlan};
use proptest::prelude::*;
use prost::Message;
use prost_reflect::{DynamicMessage, MessageDescriptor, Value};

use crate::oracle;
use crate::scramble::{Dice, scramble};
use crate::support::{Use, everything, message, runner, sample};

fn rendered(plan: &ResponsePlan, wire: &[u8]) -> Result<String, RenderError> {
    let mut out = Vec::new();
    plan.render(wire, &mut out)?;
    Ok(String::from_utf8(out).unwrap())
}

fn create_thing() -> (&'static ResponsePlan, MessageDescriptor) {
    let operation = sample().operation("CreateThing");
    (operation.envelope().unwrap(), sample().method(operation).output())
}

/// A response of `CreateThing` whose data is set by a function.
fn with_data(fill: impl FnOnce(&mut DynamicMessage)) -> Vec<u8> {
    let mut response = DynamicMessage::new(create_thing().1);
    let mut data = response.get_field_by_name("data").unwrap().as_message().unwrap().clone();
    fill(&mut data);
    response.set_field_by_name("data", Value::Message(data));
    response.encode_to_vec()
}

#[test]
fn every_public_response_is_written_as_the_oracle_writes_it() {
    for (operation, method) in everything() {
        let Some(plan) = operation.envelope().filter(|plan| plan.has_body()) else { continue };
        let strategy = (message(&method.output(), Use::Response), any::<u64>());
        runner()
            .run(&strategy, |(response, seed)| {
                let expected = oracle::envelope(&response);
                let wire = response.encode_to_vec();
                prop_assert_eq!(rendered(plan, &wire), Ok(expected.clone()));
                serde_json::from_str::<serde::de::IgnoredAny>(&expected).unwrap();

                let scrambled = scramble(&method.output(), &wire, &mut Dice(seed));
                prop_assert_eq!(rendered(plan, &scrambled), Ok(expected.clone()));
                prop_assert_eq!(plan.data_id(&wire), plan.data_id(&scrambled));
                Ok(())
            })
            .unwrap_or_else(|error| panic!("{}: {error}", operation.name));
    }
}

#[test]
fn an_empty_response_shows_every_field() {
    let (plan, _) = create_thing();
    let part = r#"{"name":"","pieces":[],"nothing":{},"color":""}"#;
    let expected = format!(
        r#"{{"data":{{"id":"","flag":false,"maybe_flag":null,"small":0,"big":0,"usmall":0,"ubig":0,"maybe_big":null,"color":"","maybe_color":null,"colors":[],"price":null,"maybe_price":null,"prices":[],"free":{{}},"maybe_free":null,"blob":"","at":"","maybe_at":null,"times":[],"part":{part},"maybe_part":null,"parts":[],"numbers":[],"loose":[],"texts":[],"note":null,"flags":[],"share":"","maybe_share":null}},"meta":{{}}}}"#
    );
    assert_eq!(rendered(plan, b"").as_ref(), Ok(&expected));
    assert_eq!(rendered(plan, &with_data(|_| ())).as_ref(), Ok(&expected));
}

#[test]
fn numbers_and_free_json_are_shown_exactly_as_they_are_stored() {
    let wire = with_data(|data| {
        data.set_field_by_name("price", Value::String("12345678901234567890.123".to_owned()));
        data.set_field_by_name("free", Value::String(r#"{"b":0.10,"a":1e400}"#.to_owned()));
        data.set_field_by_name("big", Value::I64(i64::MIN));
    });
    let json = rendered(create_thing().0, &wire).unwrap();
    for part in [
        r#""price":12345678901234567890.123,"#,
        r#""free":{"b":0.10,"a":1e400},"#,
        r#""big":-9223372036854775808,"#,
    ] {
        assert!(json.contains(part), "{part} in {json}");
    }
}

#[test]
fn a_value_that_would_break_the_json_is_an_error_and_leaves_nothing_behind() {
    let bad = [
        ("price", "1,5"),
        ("price", "01"),
        ("price", "1}"),
        ("price", "NaN"),
        ("free", "{"),
        ("free", "{}}"),
        ("free", "{\"a\":}"),
    ];
    for (field, text) in bad {
        let wire = with_data(|data| data.set_field_by_name(field, Value::String(text.to_owned())));
        let mut out = b"before".to_vec();
        assert!(create_thing().0.render(&wire, &mut out).is_err(), "{field} {text}");
        assert_eq!(out, b"before");
    }
    // data { id: not UTF-8 }, data as a number, data { at { seconds: far away } }
    for wire in [
        &[0x0a, 4, 0xf2, 1, 1, 0xff][..],
        &[0x08, 1],
        &[0x0a, 10, 0x8a, 1, 7, 8, 255, 255, 255, 255, 255, 127],
    ] {
        assert!(rendered(create_thing().0, wire).is_err(), "{wire:?}");
    }
}

#[test]
fn the_id_is_found_for_the_location() {
    let (plan, _) = create_thing();
    assert_eq!(
        plan.data_id(&with_data(|data| data.set_field_by_name("id", Value::String("x".into())))),
        Some("x")
    );
    assert_eq!(plan.data_id(&with_data(|_| ())), None);
    assert_eq!(plan.data_id(b"\xff"), None);
    assert_eq!(sample().operation("ListThings").envelope().unwrap().data_id(b""), None);
}

#[test]
fn a_response_without_a_body_writes_nothing() {
    let plan = sample().operation("DeleteThing").envelope().unwrap();
    assert!(!plan.has_body());
    assert_eq!(rendered(plan, b"").as_deref(), Ok(""));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn a_response_cut_anywhere_never_panics(response in message(&create_thing().1, Use::Response)) {
        let wire = response.encode_to_vec();
        for end in 0..wire.len() {
            let _ = create_thing().0.data_id(&wire[..end]);
            if let Ok(json) = rendered(create_thing().0, &wire[..end]) {
                let decoded = DynamicMessage::decode(create_thing().1, &wire[..end]).unwrap();
                prop_assert_eq!(json, oracle::envelope(&decoded));
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]
    #[test]
    fn any_bytes_are_shown_as_the_oracle_shows_them_or_refused(
        bytes in proptest::collection::vec(any::<u8>(), 0..40),
    ) {
        let mut wire = vec![0x0a, u8::try_from(bytes.len()).unwrap()];
        wire.extend(&bytes);
        for wire in [&bytes, &wire] {
            let _ = create_thing().0.data_id(wire);
            if let (Ok(json), Ok(decoded)) = (rendered(create_thing().0, wire), DynamicMessage::decode(create_thing().1, wire.as_slice())) {
                prop_assert_eq!(json, oracle::envelope(&decoded));
            }
        }
    }
}
