//! Names of a request that nobody knows.

use chassis_transcode::contract::Answer;
use chassis_transcode::{Bound, Handling, Location, RequestPlan};
use prost::Message;
use proto::api::Fault;
use proto::api::carried_faults::Entry;
use serde_json::json;

use crate::support::{Use, everything, message, runner, sample};

fn plan(operation: &str) -> &'static RequestPlan {
    &sample().operation(operation).request
}

fn bind(operation: &str, query: &str, body: &str, handling: Handling) -> Bound {
    let body = Some(body.as_bytes()).filter(|body| !body.is_empty());
    plan(operation).bind_with(&[("id", "7")], Some(query), body, handling).unwrap()
}

/// What is told of a request, as JSON.
fn ignored(operation: &str, query: &str, body: &str) -> serde_json::Value {
    let bound = bind(operation, query, body, Handling::Lenient);
    assert!(bound.faults.is_empty(), "{:?}", bound.faults);
    if bound.ignored.is_empty() {
        return json!([]);
    }
    let mut list = Vec::new();
    bound.ignored.write(&mut list);
    serde_json::from_slice(&list).unwrap()
}

/// Where the unknown names are, with what is said about them.
fn refused(operation: &str, query: &str, body: &str) -> Vec<(Location, String)> {
    let bound = bind(operation, query, body, Handling::Strict);
    let entries = bound.faults.entries().iter().filter(|entry| entry.code() == Fault::UnknownField);
    entries.map(|entry| (plan(operation).locate(&bound, &entry.pointer), entry.detail.clone())).collect()
}

fn pointer(text: &str) -> Location {
    Location::Pointer(text.to_owned())
}

#[test]
fn names_are_told_in_their_order_at_every_depth_and_parameters_last() {
    let body = r#"{
        "txt": 1,
        "parts": [{"name": "a"}, {"pieces": [{"cuont": 1, "count": 1}], "a/b": null}],
        "flag": true,
        "part": {"nothing": {"x": {"y": 1}}, "nam": "b"},
        "": 0
    }"#;
    let expected = [
        "/txt",
        "/parts/1/pieces/0/cuont",
        "/parts/1/a~1b",
        "/part/nothing/x",
        "/part/nam",
        "/",
        "?smal",
        "?input",
    ];
    assert_eq!(ignored("CreateThing", "smal=1&input=2&=3&smal=4", body), json!(expected));
}

#[test]
fn what_the_answer_shows_can_be_sent_back() {
    let shown =
        r#"{"id": "7", "blob": "", "loose": [1], "flags": [], "maybe_at": null, "part": {"name": "a"}}"#;
    assert_eq!(ignored("CreateThing", "", shown), json!([]));
    assert_eq!(ignored("CreateThing", "", &format!(r#"{{"thing": {shown}}}"#)), json!([]));
    let inside = r#"{"note": "n", "maybe_part": {"name": "a", "pieces": [{"size": 1}], "colour": ""}}"#;
    let expected = json!(["/maybe_part/pieces/0/size", "/maybe_part/colour"]);
    assert_eq!(ignored("CreateThing", "", inside), expected);
    assert_eq!(ignored("UpdateThing", "", inside), expected);
}

#[test]
fn a_parameter_is_known_by_the_request_only() {
    assert_eq!(ignored("ListThings", "page=2&flag=1&share=5", ""), json!(["?share"]));
    assert_eq!(ignored("GetThing", "id=7&expnad", ""), json!(["?id", "?expnad"]));
}

#[test]
fn free_values_have_no_unknown_names() {
    assert_eq!(ignored("CreateThing", "", r#"{"free": {"a": {"b": 1}, "note": {"c": 2}}}"#), json!([]));
    assert_eq!(ignored("CreateThing", "", r#"{"maybe_free": {"a": 1}, "at": null}"#), json!([]));
}

#[test]
fn a_wrapper_is_looked_into_once() {
    let body = r#"{"thing": {"note": "n", "txt": 1, "thing": {"text": "a"}}, "text": "b", "meta": {}}"#;
    assert_eq!(ignored("CreateThing", "", body), json!(["/thing/txt", "/thing/thing", "/meta"]));
    assert_eq!(ignored("CreateThing", "", r#"{"thing": null}"#), json!([]));
}

#[test]
fn what_the_path_says_may_be_said_again() {
    let body = r#"{"id": "8", "name": "a", "pieces": [{"count": 1, "id": "9"}]}"#;
    assert_eq!(ignored("CreatePart", "", body), json!(["/pieces/0/id"]));
}

#[test]
fn a_body_that_is_not_expected_has_only_unknown_names() {
    assert_eq!(ignored("DeleteThing", "", r#"{"reason": "old", "id": "7"}"#), json!(["/reason", "/id"]));
    for nothing in ["{}", "[1]", "reason=old", "{\"reason\"", &"[".repeat(100)] {
        assert_eq!(ignored("DeleteThing", "", nothing), json!([]), "{nothing}");
    }
}

#[test]
fn few_names_are_told_and_the_number_of_the_others() {
    let names =
        |count: usize| (0..count).map(|index| format!("\"x{index}\":0")).collect::<Vec<_>>().join(",");
    let told = |count| ignored("CreateThing", "", &format!("{{{}}}", names(count)));
    assert_eq!(told(20).as_array().unwrap().len(), 20);
    let many = told(123);
    assert_eq!(many.as_array().unwrap().len(), 21);
    assert_eq!((&many[0], &many[19], &many[20]), (&json!("/x0"), &json!("/x19"), &json!("and 103 more")));
    assert_eq!(refused("CreateThing", "", &format!("{{{}}}", names(123))).len(), 20);
    let long = ignored("CreateThing", &"q".repeat(5000), &format!("{{\"{}\": 1}}", "é".repeat(5000)));
    for name in long.as_array().unwrap() {
        assert_eq!(name.as_str().unwrap().chars().count(), 100);
    }
}

#[test]
fn strict_handling_refuses_each_name_at_its_place_with_the_nearest_that_is_known_there() {
    let body =
        r#"{"thing": {"nots": "n"}, "parts": [{"peices": [{"qty": 1, "cnt": 1}]}], "txt": "", "id": "7"}"#;
    let expected = [
        (pointer("/thing/nots"), "nots is not a field of this operation; did you mean `note`?".to_owned()),
        (
            pointer("/parts/0/peices"),
            "peices is not a field of this operation; did you mean `pieces`?".to_owned(),
        ),
        (pointer("/txt"), "txt is not a field of this operation; did you mean `text`?".to_owned()),
        (
            Location::Parameter("colour".to_owned()),
            "colour is not a parameter of this operation; did you mean `color`?".to_owned(),
        ),
        (Location::Parameter("zzz".to_owned()), "zzz is not a parameter of this operation".to_owned()),
    ];
    // Parameters of a create: there are none that one could have meant.
    let of_body = refused("CreateThing", "", body);
    assert_eq!(of_body, expected[..3]);
    assert_eq!(refused("ListThings", "colour=red&zzz=1", ""), expected[3..]);
    let detail = &refused("CreateThing", "notes=1", "{}")[0].1;
    assert_eq!(detail, "notes is not a parameter of this operation");
}

#[test]
fn unknown_names_are_refused_beside_all_other_faults() {
    let bound = bind("UpdateThing", "x=1", r#"{"small": "5", "smal": 5}"#, Handling::Strict);
    let codes: Vec<Fault> = bound.faults.entries().iter().map(Entry::code).collect();
    assert_eq!(codes, [Fault::NotAnInteger, Fault::UnknownField, Fault::UnknownField]);
}

#[test]
fn nothing_is_looked_for_where_nobody_asks() {
    let unchecked = plan("CreateThing").bind(&[], Some("x=1"), Some(br#"{"y": 1}"#)).unwrap();
    assert!(unchecked.ignored.is_empty() && unchecked.faults.is_empty());
    let signed = plan("HearSigned");
    let bound = signed.bind_with(&[], None, Some(b"{\"y\": 1}"), Handling::Strict).unwrap();
    assert!(bound.ignored.is_empty() && bound.faults.is_empty());
}

#[test]
fn every_record_of_the_contract_can_be_sent_back_as_it_is_shown() {
    for (operation, method) in everything() {
        let Answer::Envelope(plan) = &operation.response else { continue };
        if !operation.request.takes_body() || operation.request.takes_signed_body() || operation.is_public() {
            continue;
        }
        let case = |response: prost_reflect::DynamicMessage| {
            let mut envelope = Vec::new();
            plan.render(&response.encode_to_vec(), &mut envelope).unwrap();
            let envelope: serde_json::Value = serde_json::from_slice(&envelope).unwrap_or_default();
            let body = envelope["data"].to_string();
            let body = Some(body.as_bytes());
            let bound = operation.request.bind_with(&[], None, body, Handling::Lenient);
            if let Ok(bound) = bound {
                assert!(bound.ignored.is_empty(), "{}: {:?}", operation.name, bound.ignored);
            }
            Ok(())
        };
        let mut few = runner();
        few.run(&message(&method.output(), Use::Response), case).unwrap();
    }
}
