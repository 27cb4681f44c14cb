//! The stand-in's answers. A file of its own, because every endpoint builds them and the server sends them.

use serde_json::{Value, json};

/// Status and body of an answer.
#[derive(Clone)]
pub(super) struct Reply {
    pub status: u16,
    pub body: Value,
}

impl Reply {
    pub(super) fn new(status: u16, body: Value) -> Self {
        Self { status, body }
    }

    /// An error in Mollie's form.
    pub(super) fn problem(status: u16, detail: &str, field: Option<&str>) -> Self {
        let title = http::StatusCode::from_u16(status).ok().and_then(|status| status.canonical_reason());
        let mut body = json!({
            "status": status,
            "title": title.unwrap_or_default(),
            "detail": detail,
            "_links": { "documentation": { "href": "https://docs.mollie.com/errors", "type": "text/html" } },
        });
        if let Some(field) = field {
            body["field"] = json!(field);
        }
        Self { status, body }
    }

    pub(super) fn not_found(what: &str) -> Self {
        Self::problem(404, &format!("No {what} exists with that id."), None)
    }
}
