//! One operation of the document: its text, parameters, body and answers.

use std::borrow::Cow;
use std::collections::BTreeMap;

use chassis_transcode::EXPAND;
use http::Method;
use prost_reflect::{Cardinality, Kind, MessageDescriptor};
use proto::api::{Access, Format, MethodPolicy};
use proto::policy;
use serde_json::{Map, Value, json};

use super::response::bare_content;
use super::route::Route;
use super::schemas::{Schemas, Use};
use super::text::{flowing, upper_camel};
use super::{example, field, response};

/// The name of the one way to authenticate.
pub(super) const SECURITY_SCHEME: &str = "bearer";

const EXPORT_TEXT: &str = "All of the list at once, as a file, however long it is: with the same filters and in the same order, and as the records were at the moment when it began. CSV, unless `Accept` asks for JSON: then each line is a JSON object. If the connection ends before the file does, the file is not whole: read it again. A few exports can run at a time, and one more waits for a moment; with 503, repeat the request after `Retry-After`.";
const TABLE_TEXT: &str = "With `Accept: text/csv` or `application/x-ndjson` the page comes as a table: a line for each record. The header `X-Meta` then has what `meta` would say.";

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
            "schema": {"type": "boolean"},
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
        "operationId": operation_id(route),
        "summary": summary_of(route, summary),
        "description": description(route, rest),
        "tags": [route.tag],
        "parameters": parameters(route, schemas),
        "responses": response::all(route, routes, schemas, responses),
    });
    if route.policy.access() == Access::Key {
        operation["security"] = json!([{SECURITY_SCHEME: []}]);
        operation["x-required-scope"] = json!(route.policy.scope);
        operation["x-required-scopes"] = scopes(&route.policy);
    } else {
        operation["security"] = json!([]);
    }
    if let Some(body) = request_body(route, schemas) {
        operation["requestBody"] = body;
    }
    operation
}

/// The alternatives of scopes that a key may have for the operation, each of scopes that it needs together. They are not
/// in `security`: linters know scopes of OAuth only.
fn scopes(policy: &MethodPolicy) -> Value {
    let alternative = |scope: &str| {
        let scopes =
            [scope, policy.and_scope.as_str()].into_iter().filter(|scope| !["", "any"].contains(scope));
        json!(scopes.collect::<Vec<_>>())
    };
    let others = Some(policy.or_scope.as_str()).filter(|scope| !scope.is_empty());
    [policy.scope.as_str()].into_iter().chain(others).map(alternative).collect()
}

fn description(route: &Route, rest: &str) -> String {
    let mut paragraphs = vec![flowing(rest.trim())];
    if route.is_export() {
        paragraphs.push(EXPORT_TEXT.to_owned());
    } else if route.is_list() {
        paragraphs.push(TABLE_TEXT.to_owned());
    }
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

fn parameters(route: &Route, schemas: &mut Schemas) -> Vec<Value> {
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
                let schema = schemas.refer_choice(&kind, false);
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
            "schema": field::query(&field, schemas),
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
    parameters.extend(expansion(route, schemas));
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

/// The parameter that asks for the records that the answer refers to.
fn expansion(route: &Route, schemas: &mut Schemas) -> Option<Value> {
    let first = route.expansions.first()?;
    let names: Vec<String> = route.expansions.iter().map(|name| format!("`{name}`")).collect();
    let text = format!(
        "Records that the answer refers to, shown as their own GET shows them, under `expanded` of each record: {}. Several: separate them by commas. The key needs the scope to read them.",
        names.join(", ")
    );
    // The operations on one kind of record can show the same, and so have one schema.
    let words: Vec<String> = route.expansions.iter().map(|name| upper_camel(name)).collect();
    let name = format!("Expand{}", words.join("Or"));
    let choice = schemas.shared(&name, || json!({"type": "string", "enum": route.expansions}));
    Some(json!({
        "name": EXPAND, "in": "query", "required": false, "description": text,
        "schema": {"type": "array", "items": choice},
        "style": "form", "explode": false, "example": [first],
    }))
}

fn request_body(route: &Route, schemas: &mut Schemas) -> Option<Value> {
    if route.is_raw() {
        let sample = route.raw_body().and_then(|field| example::of_policy(&policy::field(&field)));
        let types = route.policy.takes.iter().map(|media_type| {
            let mut content = bare_content(media_type, schemas);
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
            "multipart/form-data": {"schema": form_of(&message, schemas)},
            "application/octet-stream": bare_content("application/octet-stream", schemas),
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
    let in_path = route.path_variables().into_iter().map(str::to_owned).collect();
    let hidden = if message == route.rpc.input() { in_path } else { Vec::new() };
    let sample = example::request(&message, &hidden);
    let schema = schemas.refer_without(&message, usage, hidden);
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

/// The form that a file comes in. What describes the file may be in it too, but only before the file; clients that are
/// generated send parts in any order, so that these are shown as parameters of the query only.
fn form_of(message: &MessageDescriptor, schemas: &mut Schemas) -> Value {
    let stem = message.name().trim_end_matches("Input");
    schemas.shared(&format!("{stem}Form"), || {
        let file = json!({
            "type": "string",
            "format": "binary",
            "contentMediaType": "application/octet-stream",
            "description": "The content. What the query can say of it may come as parts of the form instead, before this one.",
        });
        json!({"type": "object", "properties": {"file": file}, "required": ["file"]})
    })
}

fn operation_id(route: &Route) -> String {
    let name = route.rpc.name();
    let name = match name.strip_prefix("List").filter(|_| route.is_export()) {
        Some(list) => Cow::Owned(format!("Export{list}")),
        None => Cow::Borrowed(name),
    };
    lower_camel(&name)
}

fn summary_of(route: &Route, summary: &str) -> String {
    let summary = summary.trim().trim_end_matches('.');
    match summary.strip_prefix("List ").filter(|_| route.is_export()) {
        Some(list) => format!("Export {list}"),
        None if route.is_export() => format!("Export: {summary}"),
        None => summary.to_owned(),
    }
}

fn lower_camel(name: &str) -> String {
    let mut chars = name.chars();
    chars.next().map(|c| c.to_ascii_lowercase()).into_iter().chain(chars).collect()
}
