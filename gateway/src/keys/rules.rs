//! What a key must be like, and what of that holds for credentials too. Pure.

use chrono::{DateTime, Utc};
use prost_types::Timestamp;
use proto::accounts::CreateKeyRequest;
use proto::api::Fault;
use proto::{At, Faults};

use crate::scopes;

/// The last second of the year 9999: RFC 3339 has no later one.
const MAX_EXPIRY: i64 = 253_402_300_799;

/// The settings of a new key.
#[derive(Debug)]
pub(crate) struct KeySettings {
    pub name: String,
    /// Each once, in alphabetical order.
    pub scopes: Vec<String>,
    pub strict: bool,
    pub expires_at: Option<DateTime<Utc>>,
}

pub(crate) fn key_settings(input: &CreateKeyRequest, now: DateTime<Utc>, faults: &mut Faults) -> KeySettings {
    KeySettings {
        name: input.name.clone(),
        scopes: select_scopes(&input.scopes, input.all_scopes, scopes::all(), faults),
        strict: input.strict,
        expires_at: expiry(input.expires_at.as_ref(), now, faults),
    }
}

/// The scopes of a new key or credential: each once, in alphabetical order. `available` is in that order too.
pub(crate) fn select_scopes(
    requested: &[String],
    all: bool,
    available: &[String],
    faults: &mut Faults,
) -> Vec<String> {
    let at = At::ROOT.name("scopes");
    let listed = || format!("the scopes are {}", available.join(", "));
    if all {
        if !requested.is_empty() {
            faults.add(&at, Fault::NotAllowed, "scopes must be left out together with all_scopes");
        }
        return available.to_vec();
    }
    if requested.is_empty() {
        faults.add(&at, Fault::Required, format!("scopes is needed, or all_scopes; {}", listed()));
    }
    for (index, scope) in requested.iter().enumerate() {
        if available.binary_search(scope).is_err() {
            let detail = format!("`{scope}` is not a scope; {}", listed());
            faults.add(&at.index(index), Fault::NotAllowed, detail);
        }
    }
    let mut selected = requested.to_vec();
    selected.sort_unstable();
    selected.dedup();
    selected
}

/// When a new key or credential expires, which must be in the future.
pub(crate) fn expiry(
    expires_at: Option<&Timestamp>,
    now: DateTime<Utc>,
    faults: &mut Faults,
) -> Option<DateTime<Utc>> {
    let at = At::ROOT.name("expires_at");
    let time = chassis_base::time::from_timestamp(expires_at?);
    match time {
        None => faults.add(&at, Fault::NotATime, "expires_at must be a time that exists"),
        Some(time) if time <= now || time.timestamp() > MAX_EXPIRY => {
            faults.add(&at, Fault::OutOfRange, "expires_at must be in the future and before the year 10000");
        }
        Some(_) => {}
    }
    time
}

/// Whether a key or credential no longer gives any access.
pub(crate) fn has_ended(
    revoked_at: Option<DateTime<Utc>>,
    expires_at: Option<DateTime<Utc>>,
    now: DateTime<Utc>,
) -> bool {
    revoked_at.is_some() || expires_at.is_some_and(|end| end <= now)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scopes_of_key(requested: &[&str], faults: &mut Faults) -> Vec<String> {
        let scopes = requested.iter().map(|scope| (*scope).to_owned()).collect();
        let input = CreateKeyRequest { scopes, ..CreateKeyRequest::default() };
        key_settings(&input, DateTime::UNIX_EPOCH, faults).scopes
    }

    #[test]
    fn an_unknown_scope_is_named_and_the_available_ones_listed() {
        let mut faults = Faults::default();
        scopes_of_key(&["relations.read", "relations.destroy"], &mut faults);
        assert_eq!(faults.entries()[0].pointer, "/scopes/1");
        assert!(faults.entries()[0].detail.contains("`relations.destroy`"));
        assert!(faults.entries()[0].detail.contains("webhooks.write"));
    }

    #[test]
    fn a_key_has_no_scope_of_internal_teams() {
        let mut faults = Faults::default();
        scopes_of_key(&["crm.internal"], &mut faults);
        assert_eq!(faults.entries()[0].pointer, "/scopes/0");
    }

    #[test]
    fn a_key_has_each_scope_once() {
        let mut faults = Faults::default();
        let scopes = scopes_of_key(&["tasks.read", "deals.read", "tasks.read"], &mut faults);
        assert_eq!(scopes, ["deals.read", "tasks.read"]);
        assert!(faults.is_empty());
    }
}
