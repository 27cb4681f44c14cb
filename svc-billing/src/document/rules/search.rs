//! The text that a search looks through, in lower case. Line breaks keep a search from matching across two values.

use crate::clients::Client;
use crate::document::Record;

/// All of it but the number, which the insert statement appends.
pub(crate) fn text(title: &str, client: Option<&Client>, external_id: &str) -> String {
    let names = client.map(names).unwrap_or_default();
    format!("{}\n{names}{}\n", title.to_lowercase(), external_id.to_lowercase())
}

/// The names of a client, each followed by a line break.
pub(crate) fn names(client: &Client) -> String {
    let Client { company_name, firstname, lastname, .. } = client;
    let full_name = if firstname.is_empty() || lastname.is_empty() {
        format!("{firstname}{lastname}")
    } else {
        format!("{firstname} {lastname}")
    };
    format!("{company_name}\n{full_name}\n").to_lowercase()
}

/// All of it, for a document that already has its number.
pub(crate) fn with_number(record: &Record) -> String {
    text(&record.title, record.client.as_ref(), &record.external_id) + &record.number.to_lowercase()
}
