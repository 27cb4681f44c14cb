//! The answers of an operation: its success, and each error status it can have.

use std::collections::BTreeMap;

use http::Method;
use proto::api::Problem;
use proto::policy::ProblemInfo;
use serde_json::{Map, Value, json};

use super::route::Route;
use super::schemas::{Schemas, Use};
use super::text::upper_camel;
use super::{example, field, message, problem};

const REQUEST_ID: &str = "X-Request-Id";
const LIMIT: &str = "RateLimit";
const LIMIT_POLICY: &str = "RateLimit-Policy";
const LOCATION: &str = "Location";
const REPLAY: &str = "X-Idempotent-Replay";
const RETRY_AFTER: &str = "Retry-After";
const CHALLENGE: &str = "WWW-Authenticate";
const ETAG: &str = "ETag";
const DRY_RUN: &str = "Dry-Run";
const APPLIED: &str = "Preference-Applied";

/// The header descriptions that the answers refer to.
pub(super) fn shared_headers() -> Value {
    let text = |description: &str| json!({"description": description, "schema": {"type": "string"}});
    json!({
        REQUEST_ID: text("The id of this request, in our logs too."),
        LIMIT: text("What is left of the limit, and in how many seconds it is full again."),
        LIMIT_POLICY: text("The limit: how many requests in how many seconds."),
        LOCATION: text("The path of the new record, or of the page that an answer leads to."),
        REPLAY: {
            "description": "Present when this is the stored answer to an earlier request with the same `Idempotency-Key`.",
            "schema": {"type": "string", "const": "true"},
        },
        RETRY_AFTER: {
            "description": "After how many seconds to try again.",
            "schema": {"type": "integer", "minimum": 1},
        },
        ETAG: text("The version of the record, in quotes. Send it as `If-Match` with a change, or as `If-None-Match` to read the record only if it has changed."),
        DRY_RUN: {
            "description": "Present when the request was carried out and undone.",
            "schema": {"type": "string", "const": "true"},
        },
        APPLIED: text("Present, with `handling=strict`, when `Prefer` asked for that."),
        CHALLENGE: text("How to authenticate, and which scope is missing."),
    })
}

/// Every answer of an operation by its status. Error answers are shared: those not met before are added to `shared`.
pub(super) fn all(
    route: &Route,
    routes: &[Route],
    schemas: &mut Schemas,
    shared: &mut BTreeMap<String, Value>,
) -> Value {
    let mut answers = Map::new();
    answers.insert(route.policy.success.to_string(), success(route, routes, schemas));
    if route.shows_version && route.verb == Method::GET {
        let headers = header_references(&[REQUEST_ID, LIMIT, LIMIT_POLICY, ETAG]);
        answers.insert("304".to_owned(), json!({"description": "It has the version of `If-None-Match`; there is no body.", "headers": headers}));
    }
    // By the HTTP server itself, before a request exists that could have an id or a problem document.
    if route.verb == Method::GET {
        answers.insert("414".to_owned(), json!({"description": "The address is longer than 65,534 bytes; there is no body. Ask for fewer at a time."}));
    }
    if route.is_rehearsable() && route.policy.success == 204 {
        let undone = undone(schemas);
        let headers = header_references(&[REQUEST_ID, LIMIT, LIMIT_POLICY, DRY_RUN]);
        answers.insert("200".to_owned(), json!({"description": "With `Dry-Run: true`: it would be done. `data` is `null`.", "headers": headers, "content": {"application/json": {"schema": undone}}}));
    }
    for (status, infos) in problem::possible(route) {
        let name = shared_name(&infos);
        answers.insert(status.to_string(), json!({"$ref": format!("#/components/responses/{name}")}));
        shared.entry(name).or_insert_with(|| failure(status, &infos));
    }
    Value::Object(answers)
}

/// The body for what was carried out and undone, and has no body otherwise.
fn undone(schemas: &mut Schemas) -> Value {
    let meta = schemas.shared("EmptyMeta", message::empty_meta);
    schemas.shared("DryRunResponse", || {
        json!({
            "type": "object",
            "properties": {"data": {"type": "null"}, "meta": meta},
            "required": ["data", "meta"],
        })
    })
}

fn success(route: &Route, routes: &[Route], schemas: &mut Schemas) -> Value {
    let mut names = vec![REQUEST_ID, LIMIT, LIMIT_POLICY];
    let leads_on = route.policy.success == 303;
    if leads_on || route.policy.success == 201 && has_own_path(route, routes) {
        names.push(LOCATION);
    }
    if route.is_repeatable() {
        names.push(REPLAY);
    }
    if route.shows_version {
        names.push(ETAG);
    }
    if route.is_rehearsable() {
        names.push(DRY_RUN);
    }
    if !route.is_public() {
        names.push(APPLIED);
    }
    let description = match route.policy.success {
        201 => "Created.",
        204 => "Done; there is no body.",
        303 => "Done; `Location` is the page that shows what became of it. There is no body.",
        _ => "Success.",
    };
    let mut answer = json!({"description": description, "headers": header_references(&names)});
    if leads_on {
        return answer;
    }
    if route.is_export() {
        answer["content"] = table();
    } else if route.has_http_body() {
        answer["content"] =
            json!({route.policy.media_type.as_str(): bare_content(&route.policy.media_type, schemas)});
    } else if route.policy.success != 204 {
        let sample = example::envelope(&route.rpc.output());
        let schema = schemas.refer(&route.rpc.output(), Use::Envelope);
        // A list can come as a table too, which its text says. As a second kind of answer it would make every client take
        // the list for an object or a text.
        answer["content"] = json!({"application/json": {"schema": schema, "example": sample}});
    }
    answer
}

/// An export. That it can be lines of JSON as well is said in its text: clients know one kind of body, and this is the one
/// that comes when they ask for nothing else.
fn table() -> Value {
    json!({
        "text/csv": {"schema": {"type": "string", "description": "A line with the names of the columns, then one for each record (RFC 4180, UTF-8). A field within an object has both names, `meta.version`; a list is its JSON. A text that a spreadsheet would take for a formula has an apostrophe in front."}},
    })
}

/// A body without an envelope: what programs get of it. JSON Schema has no type for bytes, but generators of
/// clients know `binary`. Whoever parses YAML finds an object, all others have its text.
pub(super) fn bare_content(media_type: &str, schemas: &mut Schemas) -> Value {
    match media_type {
        json if json.ends_with("json") => json!({"schema": field::free_json(schemas)}),
        yaml if yaml.ends_with("yaml") => {
            json!({"schema": {"anyOf": [{"type": "string"}, field::free_json(schemas)]}})
        }
        text if text.starts_with("text/") || text.ends_with("xml") => json!({"schema": {"type": "string"}}),
        _ => json!({"schema": {"type": "string", "format": "binary"}}),
    }
}

fn has_own_path(route: &Route, routes: &[Route]) -> bool {
    let path = if route.policy.location.is_empty() { &route.path } else { &route.policy.location };
    let own = format!("{path}/{{id}}");
    routes.iter().any(|other| other.verb == "GET" && other.path == own)
}

/// `ExternalIdTakenOrIdempotencyInProgress`.
fn shared_name(infos: &[&ProblemInfo]) -> String {
    let names: Vec<String> = infos.iter().map(|info| upper_camel(info.code)).collect();
    names.join("Or")
}

fn failure(status: u16, infos: &[&ProblemInfo]) -> Value {
    let lines: Vec<String> = infos
        .iter()
        .map(|info| format!("[`{code}`](/problems/{code}): {}.", info.title, code = info.code))
        .collect();
    let codes: Vec<&str> = infos.iter().map(|info| info.code).collect();
    let examples: Map<String, Value> = infos
        .iter()
        .map(|info| (info.code.to_owned(), json!({"value": problem::example_body(info)})))
        .collect();
    let mut names = vec![REQUEST_ID];
    match status {
        401 | 403 if infos.iter().all(|info| info.problem != Problem::CrossSite) => names.push(CHALLENGE),
        429 => names.extend([RETRY_AFTER, LIMIT, LIMIT_POLICY]),
        503 | 504 => names.push(RETRY_AFTER),
        _ if infos.iter().any(|info| info.problem == Problem::IdempotencyInProgress) => {
            names.push(RETRY_AFTER);
        }
        _ => {}
    }
    json!({
        "description": lines.join("\n\n"),
        "headers": header_references(&names),
        "content": {"application/problem+json": {
            "schema": {
                "allOf": [{"$ref": "#/components/schemas/Problem"}],
                "properties": {"code": {"type": "string", "enum": codes}, "status": {"type": "integer", "const": status}},
            },
            "examples": examples,
        }},
    })
}

fn header_references(names: &[&str]) -> Map<String, Value> {
    names
        .iter()
        .map(|name| ((*name).to_owned(), json!({"$ref": format!("#/components/headers/{name}")})))
        .collect()
}
