//! What an account must be like. Pure.

use chassis_base::Timezone;
use proto::accounts::CreateAccountRequest;
use proto::api::Fault;
use proto::{At, Faults};
use uuid::Uuid;

const DEFAULT_COUNTRY: &str = "NL";
const DEFAULT_TIMEZONE: Timezone = Timezone::AMSTERDAM;
const DEFAULT_CURRENCY: &str = "EUR";

/// The settings of a new account. What the request leaves out has a default.
#[derive(Debug)]
pub(super) struct AccountSettings {
    pub country: String,
    pub timezone: Timezone,
    pub currency: String,
}

pub(super) fn account_settings(input: &CreateAccountRequest, faults: &mut Faults) -> AccountSettings {
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
    AccountSettings { country, timezone, currency }
}

fn code(sent: &str, default: &str) -> String {
    if sent.is_empty() { default.to_owned() } else { sent.to_ascii_uppercase() }
}

fn is_letters(code: &str, length: usize) -> bool {
    code.len() == length && code.bytes().all(|byte| byte.is_ascii_uppercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn account(country: &str, timezone: &str, currency: &str) -> Result<AccountSettings, Faults> {
        let mut faults = Faults::default();
        let input = CreateAccountRequest {
            name: "Bakery".into(),
            country: country.into(),
            timezone: timezone.into(),
            currency: currency.into(),
        };
        let account = account_settings(&input, &mut faults);
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
}
