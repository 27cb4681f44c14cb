//! The events as webhooks: what an endpoint of an integrator is sent. Their names and data are listed in the file that the
//! reference page shows, because events are no messages of the contract.

use serde_json::{Map, Value, json};

use super::schemas::Schemas;
use super::text::upper_camel;

const CATALOG: &str = include_str!("../pages/reference/events.json");
const EXAMPLE_TIME: &str = "2026-11-14T09:30:00.123Z";
const EXAMPLE_EVENT: &str = "019a8c5e-9d10-7a4e-8b21-6f0c3d5e7a91";

/// Every event by its name, with the request that tells of it.
pub(super) fn all(schemas: &mut Schemas) -> Value {
    let catalog: Value = serde_json::from_str(CATALOG).unwrap_or_default();
    let events = catalog["events"].as_array().into_iter().flatten();
    let webhooks = events.filter_map(|event| {
        let name = event["name"].as_str()?;
        Some((name.to_owned(), json!({"post": describe(name, event, &catalog["shapes"], schemas)})))
    });
    Value::Object(webhooks.collect::<Map<_, _>>())
}

fn describe(name: &str, event: &Value, shapes: &Value, schemas: &mut Schemas) -> Value {
    let class = class_of(name);
    let data = schemas.shared(&format!("{class}Data"), || data(event, shapes));
    let body = schemas.shared(&class, || message(name, event, shapes, &data));
    json!({
        "operationId": format!("on{class}"),
        "summary": name,
        "description": event["when"],
        "tags": [event["area"]],
        "x-required-scope": event["scope"],
        "security": [],
        "parameters": headers(),
        "requestBody": {"required": true, "content": {"application/json": {"schema": body}}},
        "responses": {
            "2XX": {"description": "Taken."},
            "default": {"description": "Not taken: the event is sent again later."},
        },
    })
}

/// `InvoicePaidEvent` for `invoice.paid`.
fn class_of(name: &str) -> String {
    format!("{}Event", upper_camel(&name.replace('.', "_")))
}

/// The data of an event: that of its shape, what it has besides, and examples of its own.
fn data(event: &Value, shapes: &Value) -> Value {
    json!({"type": "object", "properties": properties(event, shapes)})
}

fn properties(event: &Value, shapes: &Value) -> Map<String, Value> {
    let shape = event["shape"].as_str().unwrap_or_default();
    let fields = |fields: &Value| fields.as_object().cloned().unwrap_or_default();
    let mut properties = fields(&shapes[shape]);
    properties.extend(fields(&event["also"]));
    for (name, example) in fields(&event["example"]) {
        properties.entry(name).or_insert_with(|| json!({}))["examples"] = json!([example]);
    }
    properties
}

fn message(name: &str, event: &Value, shapes: &Value, data: &Value) -> Value {
    let about = properties(event, shapes).get("id").map_or_else(|| json!(""), |id| id["examples"][0].clone());
    json!({
        "type": "object",
        "description": event["when"],
        "required": ["id", "type", "timestamp", "occurred_at", "entity_type", "entity_id", "data"],
        "properties": {
            "id": {"type": "string", "format": "uuid", "description": "The event. A delivery that is repeated has it again.", "examples": [EXAMPLE_EVENT]},
            "type": {"type": "string", "const": name},
            "timestamp": {"type": "string", "format": "date-time", "description": "When it happened.", "examples": [EXAMPLE_TIME]},
            "occurred_at": {"type": "string", "format": "date-time", "description": "The same.", "examples": [EXAMPLE_TIME]},
            "entity_type": {"type": "string", "description": "What kind of record it is about.", "examples": [event["entity"]]},
            "entity_id": {"type": "string", "description": "Which record it is about.", "examples": [about]},
            "data": data,
        },
    })
}

/// What a delivery has in its head.
fn headers() -> Value {
    let header = |name: &str, text: &str| json!({"name": name, "in": "header", "required": true, "description": text, "schema": {"type": "string"}});
    json!([
        header("webhook-id", "The delivery's id: a repeat has it again."),
        header("webhook-timestamp", "When it was sent, in seconds since 1970."),
        header(
            "webhook-signature",
            "The signatures of `id.timestamp.body`, as Standard Webhooks says: `v1,` and a Base64 of HMAC-SHA256 each."
        ),
        header(
            "X-Automation-Depth",
            "Send it along with the calls of this API that you make because of the event."
        ),
    ])
}
