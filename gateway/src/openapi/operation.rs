//! One operation of the document: its text, parameters, body and answers.

use std::collections::BTreeMap;

use http::Method;
use prost_reflect::{Cardinality, Kind};
use proto::api::{Access, Format};
use proto::policy;
use serde_json::{Value, json};

use super::route::Route;
use super::schemas::{Schemas, Use};
use super::text::flowing;
use super::{example, field, response};

/// The name of the one way to authenticate.
pub(super) const SECURITY_SCHEME: &str = "bearer";

/// What a page sends.
const FORM: &str = "application/x-www-form-urlencoded";

/// The parameters that many operations refer to.
pub(super) fn shared_parameters() -> Value {
    json!({
        "IdempotencyKey": {
            "name": "Idempotency-Key",
            "in": "header",
            "description": "A text of your own, 1 to 255 visible ASCII characters, that makes the request safe to repeat: for 24 hours a repeat with the same key returns the first answer and does nothing again.",
            "schema": {"type": "string", "minLength": 1, "maxLength": 255, "pattern": "^[!-~]+$"},
        },
        "IfMatch": {
            "name": "If-Match",
            "in": "header",
            "description": "Carries the request out only if the record still has this version: the `ETag` of the answer that you read it from. Otherwise nothing is done, and the answer is 412.",
            "schema": {"type": "string"},
            "example": "\"3\"",
        },
        "IfNoneMatch": {
            "name": "If-None-Match",
            "in": "header",
            "description": "The `ETag` of the version that you have: while the record has it, the answer is 304 without a body.",
            "schema": {"type": "string"},
            "example": "\"3\"",
        },
        "DryRun": {
            "name": "Dry-Run",
            "in": "header",
            "description": "`true`: everything is checked and carried out, the answer is the one that would come, and then all of it is undone. `meta.dry_run` of the answer says what would have come of it.",
            "schema": {"type": "string", "enum": ["true", "false"]},
        },
        "RequestId": {
            "name": "X-Request-Id",
            "in": "header",
            "description": "An id of your own for this request, kept when it is 1 to 128 visible ASCII characters; else we make one.",
            "schema": {"type": "string"},
        },
    })
}

pub(super) fn describe(
    route: &Route,
    routes: &[Route],
    schemas: &mut Schemas,
    responses: &mut BTreeMap<String, Value>,
) -> Value {
    let comment = policy::comment(route.rpc.parent_file().file_descriptor_proto(), route.rpc.path());
    let (summary, rest) = comment.split_once('\n').unwrap_or((&comment, ""));
    let mut operation = json!({
        "operationId": lower_camel(route.rpc.name()),
        "summary": summary.trim().trim_end_matches('.'),
        "description": description(route, rest),
        "tags": [route.tag],
        "parameters": parameters(route),
        "responses": response::all(route, routes, schemas, responses),
    });
    if route.policy.access() == Access::Key {
        let scopes: Vec<&str> =
            Some(route.policy.scope.as_str()).filter(|scope| *scope != "any").into_iter().collect();
        operation["security"] = json!([{SECURITY_SCHEME: scopes}]);
        operation["x-required-scope"] = json!(route.policy.scope);
    } else {
        operation["security"] = json!([]);
    }
    if let Some(body) = request_body(route, schemas) {
        operation["requestBody"] = body;
    }
    operation
}

fn description(route: &Route, rest: &str) -> String {
    let mut paragraphs = vec![flowing(rest.trim())];
    match (route.policy.access(), route.policy.scope.as_str()) {
        (Access::Key, "any") => paragraphs.push("Scope: any valid key.".to_owned()),
        (Access::Key, scope) => paragraphs.push(format!("Scope: `{scope}`.")),
        _ if route.is_signed() => {
            let header = &route.policy.signature;
            paragraphs
                .push(format!("No key is needed: the header `{header}` has the signature of the body."));
        }
        _ => paragraphs.push("No key is needed: the path itself is the secret.".to_owned()),
    }
    paragraphs.retain(|paragraph| !paragraph.is_empty());
    paragraphs.join("\n\n")
}

fn parameters(route: &Route) -> Vec<Value> {
    let input = route.rpc.input();
    let mut parameters: Vec<Value> = route
        .path_variables()
        .into_iter()
        .map(|name| {
            let text = input.get_field_by_name(name).map(|field| field::text(&field)).unwrap_or_default();
            let text = match (text.is_empty(), route.is_public()) {
                (false, _) => text,
                (true, false) => "The id of the record.".to_owned(),
                (true, true) => "The part of the address that cannot be guessed.".to_owned(),
            };
            if example::is_id(name) {
                let schema = json!({"type": "string", "format": "uuid"});
                json!({"name": name, "in": "path", "required": true, "description": text, "schema": schema, "example": example::EXAMPLE_ID})
            } else {
                let schema = json!({"type": "string", "minLength": 1});
                json!({"name": name, "in": "path", "required": true, "description": text, "schema": schema})
            }
        })
        .collect();
    for field in route.query() {
        let mut parameter = json!({
            "name": field.name(),
            "in": "query",
            "required": policy::field(&field).required,
            "schema": field::query(&field),
        });
        let mut text = field::text(&field);
        if field.cardinality() == Cardinality::Repeated {
            text.push_str(" Several: repeat the parameter, or separate them by commas.");
        }
        if !text.is_empty() {
            parameter["description"] = json!(text.trim());
        }
        parameters.push(parameter);
    }
    if route.is_signed() {
        parameters.push(json!({
            "name": route.policy.signature,
            "in": "header",
            "required": true,
            "description": "The signature of the exact bytes of the body.",
            "schema": {"type": "string", "minLength": 1, "maxLength": 1024},
        }));
    }
    if route.is_repeatable() {
        parameters.push(json!({"$ref": "#/components/parameters/IdempotencyKey"}));
    }
    if route.is_rehearsable() {
        parameters.push(json!({"$ref": "#/components/parameters/DryRun"}));
    }
    if route.takes_version {
        parameters.push(json!({"$ref": "#/components/parameters/IfMatch"}));
    }
    if route.shows_version && route.verb == Method::GET {
        parameters.push(json!({"$ref": "#/components/parameters/IfNoneMatch"}));
    }
    parameters.push(json!({"$ref": "#/components/parameters/RequestId"}));
    parameters
}

fn request_body(route: &Route, schemas: &mut Schemas) -> Option<Value> {
    let message = route.body()?;
    if route.is_signed() {
        return Some(json!({"required": true, "content": {"*/*": {}}}));
    }
    let usage = match (route.is_partial(), route.policy.needs_a_field) {
        (true, true) => Use::NonEmptyPatch,
        (true, false) => Use::Patch,
        _ => Use::Create,
    };
    let schema = schemas.refer(&message, usage);
    let sample = example::request(&message);
    let json_limits: Vec<String> = message
        .fields()
        .filter(|field| matches!(field.kind(), Kind::String))
        .map(|field| (field.name().to_owned(), policy::field(&field)))
        .filter(|(_, policy)| policy.format() == Format::Json && policy.max_length > 0)
        .map(|(name, policy)| format!("`{name}` has at most {} bytes of JSON.", policy.max_length))
        .collect();
    let content = json!({"schema": schema, "example": sample});
    let mut body = json!({"required": !route.is_public(), "content": {"application/json": content}});
    if route.is_public() && route.verb == "POST" {
        body["content"][FORM] = content;
    }
    if !json_limits.is_empty() {
        body["description"] = json!(json_limits.join(" "));
    }
    Some(body)
}

fn lower_camel(name: &str) -> String {
    let mut chars = name.chars();
    chars.next().map(|c| c.to_ascii_lowercase()).into_iter().chain(chars).collect()
}
