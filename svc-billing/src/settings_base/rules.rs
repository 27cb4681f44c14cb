//! Checks that several kinds of settings share. Pure.

use proto::api::Fault;
use proto::{At, Faults};

const MAX_CODE_LENGTH: usize = 64;

/// Checks the code of a tax rate or a payment term.
pub(crate) fn check_code(code: &str, at: &At<'_>, faults: &mut Faults) {
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    if code.is_empty() || code.len() > MAX_CODE_LENGTH || !code.chars().all(allowed) {
        let detail = format!("code must be 1 to {MAX_CODE_LENGTH} of A-Z, a-z, 0-9, -, _ and .");
        faults.add(at, Fault::BadFormat, detail);
    }
}

/// The limit of a list of settings. These lists are read as a whole, so they must not grow without bound.
pub(crate) struct ListLimit {
    pub max: i64,
    /// The field of the request that adds an entry.
    pub field: &'static str,
    /// What the entries are called in an error.
    pub entries: &'static str,
}

impl ListLimit {
    /// Refuses an entry of a list that has `others` besides it.
    pub(crate) fn check(&self, others: i64, faults: &mut Faults) {
        if others >= self.max {
            let detail = format!("an account has at most {} {}; remove one first", self.max, self.entries);
            faults.add(&At::ROOT.name(self.field), Fault::TooMany, detail);
        }
    }
}
