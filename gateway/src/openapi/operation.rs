//! One operation of the document: its text, parameters, body and answers.

use std::collections::BTreeMap;

use http::Method;
use prost_reflect::{Cardinality, Kind, MessageDescriptor};
use proto::api::{Access, Format, MethodPolicy};
use proto::policy;
use serde_json::{Map, Value, json};

use super::response::bare_content;
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
        "Prefer": {
            "name": "Prefer",
            "in": "header",
            "description": "`handling=strict`: a field or parameter that the operation does not know is refused (422 `unknown_field`). Otherwise it is ignored, and `meta.ignored` names it.",
            "schema": {"type": "string"},
            "example": "handling=strict",
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
        operation["security"] = security(&route.policy);
        operation["x-required-scope"] = json!(route.policy.scope);
    } else {
        operation["security"] = json!([]);
    }
    if let Some(body) = request_body(route, schemas) {
        operation["requestBody"] = body;
    }
    operation
}

/// The alternatives of scopes that a key may have for the operation.
fn security(policy: &MethodPolicy) -> Value {
    let alternative = |scope: &str| {
        let scopes =
            [scope, policy.and_scope.as_str()].into_iter().filter(|scope| !["", "any"].contains(scope));
        json!({SECURITY_SCHEME: scopes.collect::<Vec<_>>()})
    };
    let others = Some(policy.or_scope.as_str()).filter(|scope| !scope.is_empty());
    [policy.scope.as_str()].into_iter().chain(others).map(alternative).collect()
}

fn description(route: &Route, rest: &str) -> String {
    let mut paragraphs = vec![flowing(rest.trim())];
    match (route.policy.access(), route.policy.scope.as_str()) {
        (Access::Key, "any") => paragraphs.push("Scope: any valid key.".to_owned()),
        (Access::Key, scope) => {
            let joined = |word: &str, scope: &str| match scope {
                "" => String::new(),
                scope => format!("{word} `{scope}`"),
            };
            let or = joined(" or", &route.policy.or_scope);
            let and = joined(", and", &route.policy.and_scope);
            paragraphs.push(format!("Scope: `{scope}`{or}{and}."));
        }
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
            let kind = input.get_field_by_name(name).map(|field| field.kind());
            if let Some(Kind::Enum(kind)) = kind {
                let choices = example::choices(&kind);
                let schema = json!({"type": "string", "enum": choices});
                json!({"name": name, "in": "path", "required": true, "description": text, "schema": schema})
            } else if example::is_id(name) {
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
            // A file may bring its name in the form.
            "required": policy::field(&field).required && !route.is_upload(),
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
    if !route.is_public() {
        parameters.push(json!({"$ref": "#/components/parameters/Prefer"}));
    }
    parameters.push(json!({"$ref": "#/components/parameters/RequestId"}));
    parameters
}

fn request_body(route: &Route, schemas: &mut Schemas) -> Option<Value> {
    if route.is_raw() {
        let sample = route.raw_body().and_then(|field| example::of_policy(&policy::field(&field)));
        let types = route.policy.takes.iter().map(|media_type| {
            let mut content = bare_content(media_type);
            if let Some(sample) = sample.as_ref().filter(|_| !media_type.ends_with("json")) {
                content["example"] = sample.clone();
            }
            (media_type.clone(), content)
        });
        return Some(json!({"required": true, "content": types.collect::<Map<_, _>>()}));
    }
    let message = route.body()?;
    if route.is_upload() {
        return Some(json!({"required": true, "content": {
            "multipart/form-data": {"schema": form_of(&message)},
            "application/octet-stream": {},
        }}));
    }
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

/// The form that a file comes in: what describes it, and the file itself as the last part.
fn form_of(message: &MessageDescriptor) -> Value {
    let mut properties: Map<String, Value> =
        message.fields().map(|field| (field.name().to_owned(), field::query(&field))).collect();
    let file = json!({
        "type": "string",
        "contentMediaType": "application/octet-stream",
        "description": "The content. The last part of the form.",
    });
    properties.insert("file".to_owned(), file);
    json!({"type": "object", "properties": properties, "required": ["file"]})
}

fn lower_camel(name: &str) -> String {
    let mut chars = name.chars();
    chars.next().map(|c| c.to_ascii_lowercase()).into_iter().chain(chars).collect()
}
