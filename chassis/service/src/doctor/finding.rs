//! Findings: what a check observed, and what to do about it.

use std::time::Duration;

use proto::api::{Finding, Outcome};

/// The time limit of each check.
pub(super) const LOOK_TIMEOUT: Duration = Duration::from_secs(5);

pub fn good(name: &str, saw: impl Into<String>) -> Finding {
    finding(name, Outcome::Ok, saw.into(), "")
}

/// The subject works, but not as intended.
pub fn doubtful(name: &str, saw: impl Into<String>, advice: &str) -> Finding {
    finding(name, Outcome::Warning, saw.into(), advice)
}

pub fn bad(name: &str, saw: impl Into<String>, advice: &str) -> Finding {
    finding(name, Outcome::Failed, saw.into(), advice)
}

fn finding(name: &str, outcome: Outcome, saw: String, advice: &str) -> Finding {
    Finding { name: name.to_owned(), outcome: outcome.into(), saw, advice: advice.to_owned() }
}
