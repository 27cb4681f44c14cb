//! Errors in the document: the shape of a problem, its example, and which problems an operation can answer with.

use std::collections::BTreeMap;

use prost_reflect::DescriptorPool;
use proto::api::{Fault, Problem};
use proto::policy::{self, ProblemInfo};
use serde::Serialize;
use serde_json::{Value, json};

use super::route::Route;

const EXAMPLE_REQUEST_ID: &str = "019a8c5e-9b02-7f6e-8d31-5c7a90b4e2d1";

/// An error body, in the order in which it reads best.
#[derive(Debug, Serialize)]
pub struct Body {
    r#type: String,
    title: String,
    status: u16,
    code: String,
    detail: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    errors: Option<[FaultExample; 1]>,
    data: Value,
    meta: Value,
}

#[derive(Debug, Serialize)]
struct FaultExample {
    pointer: &'static str,
    code: String,
    detail: &'static str,
}

/// What the answer with this problem may look like.
pub fn example_body(info: &ProblemInfo) -> Body {
    let is_validation = info.problem == Problem::Validation;
    let first = info.explanation.split("\n\n").next().unwrap_or_default();
    let detail = if is_validation { "1 field is not valid." } else { first };
    let fault = FaultExample {
        pointer: "/email",
        code: Fault::BadEmail.code(),
        detail: "email must be an e-mail address",
    };
    let data = match info.explanation {
        text if text.contains("`data.id`") => json!({"id": super::example::EXAMPLE_ID}),
        text if text.contains("`data.version`") => json!({"version": "4"}),
        _ => json!({}),
    };
    Body {
        r#type: format!("/problems/{}", info.code),
        title: info.title.to_owned(),
        status: info.status,
        code: info.code.to_owned(),
        detail: detail.replace('`', "").split_whitespace().collect::<Vec<_>>().join(" "),
        errors: is_validation.then_some([fault]),
        data,
        meta: json!({"request_id": EXAMPLE_REQUEST_ID}),
    }
}

/// The problems that an operation can answer with, by status.
pub(super) fn possible(route: &Route) -> BTreeMap<u16, Vec<&'static ProblemInfo>> {
    let mut problems = vec![
        Problem::Malformed,
        Problem::RateLimited,
        Problem::Internal,
        Problem::Unavailable,
        Problem::Timeout,
    ];
    if !route.is_public() {
        problems.push(Problem::Unauthenticated);
        if route.policy.scope != "any" {
            problems.push(Problem::InsufficientScope);
        }
    }
    if !route.path_variables().is_empty() {
        problems.push(Problem::NotFound);
    }
    // Records that the answer refers to may need another scope, and be long together.
    if !route.expansions.is_empty() {
        problems.extend([Problem::InsufficientScope, Problem::TooLarge]);
    }
    // A signed body is taken as it is: only its size can be wrong.
    let reads_body = route.has_body() && !route.is_signed() && !route.is_upload();
    if route.has_body() {
        problems.push(Problem::TooLarge);
    }
    if reads_body {
        problems.push(Problem::UnsupportedMediaType);
    }
    // A write has headers besides, such as Dry-Run, and a key may ask that no name is ignored.
    if !route.verb.is_safe() || !route.query().is_empty() || !route.is_public() {
        problems.push(Problem::Validation);
    }
    if route.is_repeatable() {
        problems.extend([Problem::IdempotencyInProgress, Problem::IdempotencyKeyReused]);
    }
    if !route.verb.is_safe() && !route.is_rehearsable() {
        problems.push(Problem::CannotRehearse);
    }
    if route.takes_version {
        problems.push(Problem::ChangedMeanwhile);
    }
    if route.is_public() && !route.verb.is_safe() {
        problems.push(Problem::CrossSite);
    }
    problems.extend(route.policy.problems());
    problems.sort_unstable();
    problems.dedup();
    let mut by_status: BTreeMap<u16, Vec<&ProblemInfo>> = BTreeMap::new();
    for problem in problems {
        let info = problem.info();
        by_status.entry(info.status).or_default().push(info);
    }
    by_status
}

/// The shape of every error body.
pub(super) fn schema() -> Value {
    let codes: Vec<&str> = policy::problems().iter().map(|info| info.code).collect();
    json!({
        "type": "object",
        "description": "An error (RFC 9457). It has `data` and `meta` like every other answer.",
        "required": ["type", "title", "status", "code", "detail", "data", "meta"],
        "properties": {
            "type": {"type": "string", "format": "uri-reference", "description": "The page that explains the code."},
            "title": {"type": "string", "description": "The same for every error with this code."},
            "status": {"type": "integer", "minimum": 400, "maximum": 599},
            "code": {
                "type": "string",
                "description": "Stable; decide by it. New codes may be added.",
                "examples": codes,
            },
            "detail": {"type": "string", "description": "For people: what happened and what to do."},
            "errors": {
                "type": "array",
                "description": "With the code `validation`: every fault of the request.",
                "items": {"$ref": "#/components/schemas/FieldFault"},
            },
            "may_have_happened": {
                "type": "boolean",
                "description": "With the codes `unavailable` and `timeout`, and only then: the request may have been carried out although this is an error. Without it nothing has happened.",
            },
            "data": {"$ref": "#/components/schemas/JsonObject", "description": "Mostly empty. A conflict tells here what it conflicts with."},
            "meta": {"$ref": "#/components/schemas/ProblemMeta"},
        },
    })
}

/// The `meta` of every error body.
pub(super) fn meta_schema() -> Value {
    json!({
        "type": "object",
        "required": ["request_id"],
        "properties": {
            "request_id": {"type": "string", "description": "Tell us this when you ask for help."},
        },
    })
}

/// The codes that an entry of `errors` can have.
pub(super) fn fault_codes(pool: &DescriptorPool) -> Value {
    let faults = faults(pool);
    let codes: Vec<&str> = faults.iter().map(|fault| fault.code.as_str()).collect();
    let lines: Vec<String> =
        faults.iter().map(|fault| format!("- `{}`: {}", fault.code, fault.text)).collect();
    json!({"type": "string", "enum": codes, "description": lines.join("\n")})
}

/// The shape of one entry of `errors`.
pub(super) fn fault_schema() -> Value {
    json!({
        "type": "object",
        "description": "One fault of a request. It names its place by `pointer`, `parameter` or `header`.",
        "required": ["code", "detail"],
        "properties": {
            "pointer": {
                "type": "string",
                "description": "A JSON Pointer (RFC 6901) into the body; the empty text is the body itself.",
                "examples": ["/rows/0/quantity"],
            },
            "parameter": {"type": "string", "description": "The name of a query parameter."},
            "header": {"type": "string", "description": "The name of a header."},
            "code": {
                "$ref": "#/components/schemas/FaultCode",
                "description": "Stable. New codes may be added.",
            },
            "detail": {"type": "string", "description": "For people."},
        },
    })
}

/// The code of a fault and what it means.
pub struct FaultInfo {
    pub code: String,
    pub text: String,
}

/// Every fault code of the contract, in the order of its numbers.
pub fn faults(pool: &DescriptorPool) -> Vec<FaultInfo> {
    let Some(descriptor) = pool.get_enum_by_name("admin.api.v1.Fault") else { return Vec::new() };
    let file = descriptor.parent_file();
    descriptor
        .values()
        .filter(|value| value.number() != 0)
        .filter_map(|value| {
            let code = Fault::try_from(value.number()).ok()?.code();
            let text = super::text::flowing(&policy::comment(file.file_descriptor_proto(), value.path()));
            Some(FaultInfo { code, text })
        })
        .collect()
}
