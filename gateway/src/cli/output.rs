//! What the commands print.

use std::io::Write;

use chassis_base::time::from_timestamp;
use chrono::SecondsFormat;
use prost::Message;
use prost_types::Timestamp;
use proto::google::rpc;
use tonic::{Code, Status};

/// Prints one line to stdout. A closed pipe is an error to report and not a panic.
pub(super) fn print(line: &str) -> Result<(), String> {
    writeln!(std::io::stdout(), "{line}").map_err(|error| format!("cannot print: {error}"))
}

pub(super) fn time(timestamp: Option<Timestamp>) -> String {
    let time = timestamp.and_then(|timestamp| from_timestamp(&timestamp));
    time.map_or_else(|| "-".to_owned(), |time| time.to_rfc3339_opts(SecondsFormat::Millis, true))
}

/// Why an operation failed, for a person at a shell: every fault on its own line.
pub(super) fn reason(status: &Status) -> String {
    let faults = faults(status);
    match status.code() {
        _ if !faults.is_empty() => faults.join("\n"),
        Code::Internal => format!(
            "{} The log above says what; is the schema up to date (gateway migrate)?",
            status.message()
        ),
        Code::Unavailable => format!("{} Is DATABASE_URL right, and is the database up?", status.message()),
        _ => status.message().to_owned(),
    }
}

fn faults(status: &Status) -> Vec<String> {
    let details = rpc::Status::decode(status.details()).unwrap_or_default().details;
    let bad = details.iter().filter(|detail| detail.type_url.ends_with("google.rpc.BadRequest"));
    let bad = bad.filter_map(|detail| rpc::BadRequest::decode(detail.value.as_slice()).ok());
    bad.flat_map(|bad| bad.field_violations).map(|fault| fault.description).collect()
}
