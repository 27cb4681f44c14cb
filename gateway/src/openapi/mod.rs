//! The `OpenAPI` 3.1 document, made whole from the descriptor: what the proto files say is what integrators read.
//!
//! Owns the wording of conventions that hold for every operation (`introduction.md`). Names no single operation and
//! has no business word; a text about an operation belongs in the comment above it in its proto file.

mod choice;
mod example;
mod field;
mod message;
mod operation;
mod problem;
mod response;
mod route;
mod schemas;
mod text;
mod webhooks;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use prost_reflect::DescriptorPool;
use proto::policy;
use serde_json::{Map, Value, json};

pub use problem::{Body as ProblemBody, FaultInfo, example_body as example_problem_body, faults};
pub use route::{Route, route_table, routes};

use schemas::Schemas;

/// The name of the product, as every page shows it.
pub const TITLE: &str = "Business Administration API";

/// What the contract may be used under, as SPDX calls it.
const LICENSE: &str = env!("CARGO_PKG_LICENSE");

/// The whole document. The same contract always gives the same document, byte for byte once it is printed.
pub fn document(pool: &DescriptorPool) -> Value {
    let routes = routes(pool);
    let mut schemas = Schemas::new(route::records(&routes));
    let mut responses = BTreeMap::new();
    let mut paths: BTreeMap<&str, Map<String, Value>> = BTreeMap::new();
    for route in &routes {
        let operation = operation::describe(route, &routes, &mut schemas, &mut responses);
        paths.entry(&route.path).or_default().insert(route.verb.as_str().to_ascii_lowercase(), operation);
    }
    let webhooks = webhooks::all(&mut schemas);
    message::describe_all(&mut schemas);
    schemas.add("Problem", problem::schema());
    schemas.add("ProblemMeta", problem::meta_schema());
    schemas.add("FieldFault", problem::fault_schema());
    schemas.add("FaultCode", problem::fault_codes(pool));
    let mut document = json!({
        "openapi": "3.1.0",
        "info": {
            "title": TITLE,
            "version": "1",
            "description": include_str!("introduction.md").trim(),
            "license": {"name": LICENSE, "identifier": LICENSE},
            "contact": {"name": "The maintainers"},
        },
        "servers": [{"url": "/", "description": "The installation that this document comes from."}],
        "tags": tags(&routes),
        "paths": paths,
        "webhooks": webhooks,
        "components": {
            "schemas": schemas.into_components(),
            "parameters": operation::shared_parameters(),
            "headers": response::shared_headers(),
            "responses": responses,
            "securitySchemes": {
                operation::SECURITY_SCHEME: {
                    "type": "http",
                    "scheme": "bearer",
                    "description": "An API key: `ba_<public id>_<secret>_<checksum>`. The scopes that it needs for an operation are in `x-required-scopes`: one of the lists, all of it.",
                },
            },
        },
    });
    // Whether serde_json keeps the order of insertion depends on features that other crates of a build enable. Sorted,
    // the document is the same in every build.
    document.sort_all_objects();
    document
}

/// The document as it is served and committed.
pub fn printed(document: &Value) -> String {
    format!("{document:#}\n")
}

/// The headings of the reference in the order of their names, each with the comments of its services.
fn tags(routes: &[Route]) -> Vec<Value> {
    let mut texts: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for route in routes {
        let service = route.rpc.parent_service();
        let text = policy::comment(service.parent_file().file_descriptor_proto(), service.path());
        let of_tag = texts.entry(route.tag.clone()).or_default();
        let text = text::flowing(&text);
        if !text.is_empty() && !of_tag.contains(&text) {
            of_tag.push(text);
        }
    }
    let tag = |(name, mut texts): (String, Vec<String>)| {
        // First what the area is, then what else belongs to it.
        texts.sort_by_key(|text| !begins_with(text, &name));
        json!({"name": name, "description": texts.join("\n\n")})
    };
    texts.into_iter().map(tag).collect()
}

/// Whether a text says first what it is about: `Notes: …`.
fn begins_with(text: &str, name: &str) -> bool {
    text.strip_prefix(name).is_some_and(|rest| rest.starts_with(':'))
}
