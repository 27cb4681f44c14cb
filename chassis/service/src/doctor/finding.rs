//! What was seen, and what to do about it.

use std::time::Duration;

use proto::api::{Finding, Outcome};

/// For each thing that is looked at.
pub(super) const LOOK_TIMEOUT: Duration = Duration::from_secs(5);

pub fn good(name: &str, saw: impl Into<String>) -> Finding {
    finding(name, Outcome::Ok, saw.into(), "")
}

/// It works, but not as it should.
pub fn doubtful(name: &str, saw: impl Into<String>, advice: &str) -> Finding {
    finding(name, Outcome::Warning, saw.into(), advice)
}

pub fn bad(name: &str, saw: impl Into<String>, advice: &str) -> Finding {
    finding(name, Outcome::Failed, saw.into(), advice)
}

fn finding(name: &str, outcome: Outcome, saw: String, advice: &str) -> Finding {
    Finding { name: name.to_owned(), outcome: outcome.into(), saw, advice: advice.to_owned() }
}
