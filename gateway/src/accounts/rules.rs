//! What an account, a key and a credential must be like. Pure.

use chrono::{DateTime, Utc};
use chrono_tz::Tz;
use prost_types::Timestamp;
use proto::accounts::{CreateAccountRequest, CreateKeyRequest, IssueCredentialRequest};
use proto::api::Fault;
use proto::{At, Faults};
use uuid::Uuid;

use crate::scopes;

pub const DEFAULT_COUNTRY: &str = "NL";
pub const DEFAULT_TIMEZONE: Tz = Tz::Europe__Amsterdam;
pub const DEFAULT_CURRENCY: &str = "EUR";

/// The settings of a new account, with defaults for what was left out.
#[derive(Debug)]
pub struct NewAccount {
    pub country: String,
    pub timezone: Tz,
    pub currency: String,
}

pub fn new_account(input: &CreateAccountRequest, faults: &mut Faults) -> NewAccount {
    if Uuid::parse_str(&input.name).is_ok() {
        let detail = "name must not look like an id: it stands for the account where an id could";
        faults.add(&At::ROOT.name("name"), Fault::NotAllowed, detail);
    }
    let country = code(&input.country, DEFAULT_COUNTRY);
    if !is_letters(&country, 2) {
        let detail = "country must be an ISO 3166 code of two letters, such as NL";
        faults.add(&At::ROOT.name("country"), Fault::BadCountry, detail);
    }
    let currency = code(&input.currency, DEFAULT_CURRENCY);
    if !is_letters(&currency, 3) {
        let detail = "currency must be an ISO 4217 code of three letters, such as EUR";
        faults.add(&At::ROOT.name("currency"), Fault::BadFormat, detail);
    }
    let timezone = match input.timezone.as_str() {
        "" => DEFAULT_TIMEZONE,
        name => name.parse().unwrap_or_else(|_| {
            let detail = "timezone must be an IANA name, such as Europe/Amsterdam";
            faults.add(&At::ROOT.name("timezone"), Fault::NotAllowed, detail);
            DEFAULT_TIMEZONE
        }),
    };
    NewAccount { country, timezone, currency }
}

fn code(sent: &str, default: &str) -> String {
    if sent.is_empty() { default.to_owned() } else { sent.to_ascii_uppercase() }
}

fn is_letters(code: &str, length: usize) -> bool {
    code.len() == length && code.bytes().all(|byte| byte.is_ascii_uppercase())
}

/// The scopes of a new key: each once, in alphabetical order.
pub fn key_scopes(input: &CreateKeyRequest, faults: &mut Faults) -> Vec<String> {
    chosen_scopes(&input.scopes, input.all_scopes, scopes::all(), faults)
}

/// The scopes of a new credential, which may also be those of internal teams.
pub fn credential_scopes(input: &IssueCredentialRequest, faults: &mut Faults) -> Vec<String> {
    chosen_scopes(&input.scopes, input.all_scopes, scopes::of_teams(), faults)
}

/// `known` is in alphabetical order.
fn chosen_scopes(sent: &[String], all: bool, known: &[String], faults: &mut Faults) -> Vec<String> {
    let at = At::ROOT.name("scopes");
    let listed = || format!("the scopes are {}", known.join(", "));
    if all {
        if !sent.is_empty() {
            faults.add(&at, Fault::NotAllowed, "scopes must be left out together with all_scopes");
        }
        return known.to_vec();
    }
    if sent.is_empty() {
        faults.add(&at, Fault::Required, format!("scopes is needed, or all_scopes; {}", listed()));
    }
    for (index, scope) in sent.iter().enumerate() {
        if known.binary_search(scope).is_err() {
            let detail = format!("`{scope}` is not a scope; {}", listed());
            faults.add(&at.index(index), Fault::NotAllowed, detail);
        }
    }
    let mut chosen = sent.to_vec();
    chosen.sort_unstable();
    chosen.dedup();
    chosen
}

/// When a new key or credential ends; in the past is a mistake.
pub fn expiry(
    expires_at: Option<&Timestamp>,
    now: DateTime<Utc>,
    faults: &mut Faults,
) -> Option<DateTime<Utc>> {
    let at = At::ROOT.name("expires_at");
    let time = chassis::time::from_timestamp(expires_at?);
    match time {
        None => faults.add(&at, Fault::NotATime, "expires_at must be a time that exists"),
        // Also what the database can store.
        Some(time) if time <= now || time.timestamp() > 253_402_300_799 => {
            faults.add(&at, Fault::OutOfRange, "expires_at must be in the future and before the year 10000");
        }
        Some(_) => {}
    }
    time
}

#[cfg(test)]
mod tests {
    use super::*;

    fn account(country: &str, timezone: &str, currency: &str) -> Result<NewAccount, Faults> {
        let mut faults = Faults::default();
        let input = CreateAccountRequest {
            name: "Bakery".into(),
            country: country.into(),
            timezone: timezone.into(),
            currency: currency.into(),
        };
        let account = new_account(&input, &mut faults);
        if faults.is_empty() { Ok(account) } else { Err(faults) }
    }

    #[test]
    fn what_is_left_out_has_a_default() {
        let account = account("", "", "").unwrap();
        assert_eq!((account.country.as_str(), account.currency.as_str()), ("NL", "EUR"));
        assert_eq!(account.timezone, DEFAULT_TIMEZONE);
    }

    #[test]
    fn codes_are_normalised_and_checked() {
        assert_eq!(account("be", "Europe/Brussels", "eur").unwrap().country, "BE");
        assert_eq!(account("B", "Mars/Olympus", "euro").unwrap_err().len(), 3);
        assert!(account("É", "", "").is_err());
    }

    #[test]
    fn an_unknown_scope_is_named_and_the_known_ones_listed() {
        let mut faults = Faults::default();
        let scopes = vec!["relations.read".into(), "relations.destroy".into()];
        key_scopes(&CreateKeyRequest { scopes, ..CreateKeyRequest::default() }, &mut faults);
        assert_eq!(faults.entries()[0].pointer, "/scopes/1");
        assert!(faults.entries()[0].detail.contains("`relations.destroy`"));
        assert!(faults.entries()[0].detail.contains("webhooks.write"));
    }

    #[test]
    fn only_a_credential_has_scopes_of_internal_teams() {
        let scopes = vec!["crm.internal".to_owned()];
        let mut faults = Faults::default();
        let credential =
            IssueCredentialRequest { scopes: scopes.clone(), ..IssueCredentialRequest::default() };
        assert_eq!(credential_scopes(&credential, &mut faults), scopes);
        assert!(faults.is_empty());
        key_scopes(&CreateKeyRequest { scopes, ..CreateKeyRequest::default() }, &mut faults);
        assert_eq!(faults.entries()[0].pointer, "/scopes/0");
    }

    #[test]
    fn a_key_has_each_scope_once() {
        let mut faults = Faults::default();
        let scopes = ["tasks.read", "deals.read", "tasks.read"].map(str::to_owned).to_vec();
        let input = CreateKeyRequest { scopes, ..CreateKeyRequest::default() };
        assert_eq!(key_scopes(&input, &mut faults), ["deals.read", "tasks.read"]);
        assert!(faults.is_empty());
    }
}
