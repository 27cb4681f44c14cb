//! What the OpenAPI document says about answers without an envelope, public operations and percentages.

use serde_json::{Value, json};

use crate::pages::contract;

fn document() -> Value {
    gateway::openapi::document(&contract())
}

#[test]
fn an_answer_as_it_is_is_described_by_its_media_type() {
    let document = document();
    let export = &document["paths"]["/v1/things/{id}/export"]["get"];
    assert_eq!(
        export["responses"]["200"]["content"],
        json!({"application/xml": {"schema": {"type": "string"}}})
    );
    assert_eq!(export["security"], json!([{"bearer": []}]));
    assert!(export["responses"]["401"].is_object());
    assert!(document["components"]["schemas"].get("HttpBody").is_none());
}

#[test]
fn a_public_operation_needs_no_key_and_takes_forms() {
    let document = document();
    let answer = &document["paths"]["/pages/{token}/answer"]["post"];
    assert_eq!((&answer["security"], &answer["tags"]), (&json!([]), &json!(["Pages"])));
    let content = answer["requestBody"]["content"].as_object().unwrap();
    assert_eq!(content["application/json"], content["application/x-www-form-urlencoded"]);
    assert_eq!(answer["requestBody"]["required"], json!(false));
    assert_eq!(answer["responses"]["403"]["$ref"], "#/components/responses/CrossSite");
    assert!(answer["responses"].get("401").is_none());
    let parameters = answer["parameters"].to_string();
    assert!(parameters.contains("token") && !parameters.contains("IdempotencyKey"));
    assert_eq!(
        document["paths"]["/pages/{token}"]["get"]["responses"]["200"]["content"]["text/html"]["schema"]["type"],
        "string"
    );
    let table = gateway::openapi::route_table(&gateway::openapi::routes(&contract()));
    assert!(
        table.contains("GET\t/pages/{token}\tpublic\t200\tadmin.sample.v1.PageService/ShowPage\n"),
        "{table}"
    );
}

#[test]
fn a_signed_operation_shows_its_header_and_takes_any_body() {
    let document = document();
    let hear = &document["paths"]["/pages/signed"]["post"];
    assert_eq!(hear["security"], json!([]));
    assert_eq!(hear["requestBody"], json!({"required": true, "content": {"*/*": {}}}));
    let parameters = hear["parameters"].as_array().unwrap();
    let header = parameters.iter().find(|parameter| parameter["name"] == "X-Sample-Signature").unwrap();
    assert_eq!((&header["in"], &header["required"]), (&json!("header"), &json!(true)));
    assert!(hear["description"].as_str().unwrap().contains("X-Sample-Signature"));
    assert_eq!(hear["responses"]["403"]["$ref"], "#/components/responses/CrossSiteOrBadSignature");
    for (status, possible) in [("413", true), ("415", false), ("422", true), ("401", false), ("404", false)] {
        assert_eq!(hear["responses"][status].is_object(), possible, "{status}");
    }
    assert!(document["components"]["schemas"].get("SignedBody").is_none());
}

#[test]
fn a_percentage_is_sent_either_way_and_shown_as_text() {
    let document = document();
    let schemas = &document["components"]["schemas"];
    assert_eq!(schemas["ThingInput"]["properties"]["share"]["type"], json!(["string", "number", "null"]));
    assert_eq!(schemas["ThingInput"]["properties"]["share"]["maximum"], 100);
    assert_eq!(schemas["Thing"]["properties"]["share"]["type"], "string");
    assert_eq!(schemas["Thing"]["properties"]["maybe_share"]["type"], json!(["string", "null"]));
}
