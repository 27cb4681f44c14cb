//! The form of a domain name, the records that its DNS should have, and when a domain is verified. Pure.

use chrono::{DateTime, TimeDelta, Utc};
use proto::api::Fault;
use proto::{At, Faults};

use super::Record;
use crate::address::OwnDomain;

pub(super) const TXT: &str = "TXT";
pub(super) const MX: &str = "MX";
const DKIM: &str = "dkim";
const SPF: &str = "spf";
const DMARC: &str = "dmarc";

/// The interval between two checks of a domain.
pub(super) const CHECK_INTERVAL: TimeDelta = TimeDelta::days(1);

/// A record that the DNS should have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ExpectedRecord {
    pub purpose: &'static str,
    pub kind: &'static str,
    pub name: String,
    pub value: String,
    pub required: bool,
}

/// A domain name and its parts, in lower case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct HostName {
    /// Subdomain and domain: the part of an address after the `@`.
    pub host: String,
    pub domain: String,
    pub subdomain: String,
}

/// Checks the form of a domain name.
pub(super) fn host_name(domain: &str, subdomain: &str, faults: &mut Faults) -> HostName {
    let domain = domain.to_ascii_lowercase();
    let subdomain = subdomain.to_ascii_lowercase();
    let names = |text: &str| text.split('.').all(is_label);
    if !domain.is_empty() && (!domain.contains('.') || !names(&domain)) {
        let detail = "domain must be a domain such as example.com, international names in their xn-- form";
        faults.add(&At::ROOT.name("domain"), Fault::BadFormat, detail);
    }
    if !subdomain.is_empty() && !names(&subdomain) {
        let detail = "subdomain must be made of letters, digits and hyphens, for example support";
        faults.add(&At::ROOT.name("subdomain"), Fault::BadFormat, detail);
    }
    let host = if subdomain.is_empty() { domain.clone() } else { format!("{subdomain}.{domain}") };
    // The names of its records, which are longer, must fit into the 253 characters of a DNS name.
    if host.len() > 200 {
        faults.add(
            &At::ROOT.name("domain"),
            Fault::TooLong,
            "domain and subdomain must have 200 characters at most",
        );
    }
    HostName { host, domain, subdomain }
}

fn is_label(label: &str) -> bool {
    let fits = (1..=63).contains(&label.len()) && !label.starts_with('-') && !label.ends_with('-');
    fits && label.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
}

/// The records that the DNS of a domain should have. `dkim` is the value for its key.
pub(super) fn expected_records(record: &Record, dkim: &str, own: &OwnDomain) -> Vec<ExpectedRecord> {
    let Record { host, selector, receiving, .. } = record;
    let txt =
        |purpose, name, value: String, required| ExpectedRecord { purpose, kind: TXT, name, value, required };
    let mut records = vec![txt(DKIM, format!("{selector}._domainkey.{host}"), dkim.to_owned(), true)];
    if let Some(own) = own.name() {
        records.push(txt(SPF, host.clone(), format!("v=spf1 include:{own} ~all"), false));
        if *receiving {
            let value = format!("10 {own}");
            let name = host.clone();
            records.push(ExpectedRecord { purpose: "mx", kind: MX, name, value, required: true });
        }
    }
    records.push(txt(DMARC, format!("_dmarc.{host}"), "v=DMARC1; p=none".to_owned(), false));
    records
}

/// Whether one of the values in the DNS serves the purpose of the expected record. The owner may have written it
/// differently, or added to it.
pub(super) fn is_satisfied(expected: &ExpectedRecord, values: &[String]) -> bool {
    let value = expected.value.as_str();
    values.iter().any(|found| match expected.purpose {
        DKIM => tag(found, "p").is_some_and(|key| !key.is_empty() && Some(key) == tag(value, "p")),
        SPF => {
            let include = value.split(' ').nth(1).unwrap_or_default();
            is_version(found, "v=spf1")
                && found.split_whitespace().any(|word| word.eq_ignore_ascii_case(include))
        }
        DMARC => is_version(found, "v=DMARC1"),
        _ => {
            let host =
                |text: &str| text.rsplit(' ').next().unwrap_or_default().trim_end_matches('.').to_lowercase();
            host(found) == host(value)
        }
    })
}

/// Applies the result of a DNS check: a domain is verified if its records are `complete`, and stays verified for the
/// time `grace` after they were first missing.
pub(super) fn apply_check(record: &mut Record, complete: bool, grace: TimeDelta, now: DateTime<Utc>) {
    let since = record.missing_since.unwrap_or(now);
    let in_grace = !complete && record.verified && now - since < grace;
    record.verified = complete || in_grace;
    record.missing_since = in_grace.then_some(since);
    record.checked_at = Some(now);
    record.check_at = now + CHECK_INTERVAL;
}

fn is_version(text: &str, version: &str) -> bool {
    let rest = text.trim_start().get(..version.len());
    rest.is_some_and(|start| start.eq_ignore_ascii_case(version))
}

/// The value of a tag in a list such as `v=DKIM1; p=…`, without white space.
fn tag(text: &str, name: &str) -> Option<String> {
    let tags = text.split(';').filter_map(|tag| tag.split_once('='));
    let value = tags.filter(|(tag, _)| tag.trim() == name).map(|(_, value)| value).next()?;
    Some(value.chars().filter(|c| !c.is_whitespace()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn record(receiving: bool) -> Record {
        Record {
            version: 1,
            host: "mail.bakery.example".into(),
            domain: "bakery.example".into(),
            subdomain: "mail".into(),
            receiving,
            verified: false,
            selector: "k1".into(),
            private_key: String::new(),
            found: Vec::new(),
            checked_at: None,
            check_at: DateTime::UNIX_EPOCH,
            missing_since: None,
            created_at: DateTime::UNIX_EPOCH,
            updated_at: DateTime::UNIX_EPOCH,
        }
    }

    #[test]
    fn a_domain_that_receives_needs_its_mail_to_come_here() {
        let own = OwnDomain::new("in.example.com");
        let purposes = |receiving| -> Vec<(&str, bool)> {
            let records = expected_records(&record(receiving), "v=DKIM1; p=abc", &own);
            records.iter().map(|record| (record.purpose, record.required)).collect()
        };
        assert_eq!(purposes(false), [("dkim", true), ("spf", false), ("dmarc", false)]);
        assert_eq!(purposes(true), [("dkim", true), ("spf", false), ("mx", true), ("dmarc", false)]);
    }

    #[test]
    fn a_verified_domain_has_a_grace_period_and_a_pending_one_has_none() {
        let (grace, day) = (TimeDelta::days(3), |day| DateTime::UNIX_EPOCH + TimeDelta::days(day));
        let mut domain = record(false);
        let mut check = |complete, grace, on| {
            apply_check(&mut domain, complete, grace, day(on));
            assert_eq!((domain.checked_at, domain.check_at), (Some(day(on)), day(on + 1)));
            (domain.verified, domain.missing_since)
        };
        assert_eq!(check(false, grace, 1), (false, None));
        assert_eq!(check(true, grace, 2), (true, None));
        assert_eq!(check(false, grace, 3), (true, Some(day(3))));
        assert_eq!(check(true, grace, 4), (true, None));
        assert_eq!(check(false, grace, 5), (true, Some(day(5))), "counted anew");
        assert_eq!(check(false, grace, 7), (true, Some(day(5))));
        assert_eq!(check(false, grace, 8), (false, None));
        assert_eq!(check(true, grace, 9), (true, None));
        assert_eq!(check(false, TimeDelta::zero(), 9), (false, None), "without a grace period");
    }

    #[test]
    fn records_are_recognised_in_other_spellings() {
        let own = OwnDomain::new("in.example.com");
        let expected = expected_records(&record(true), "v=DKIM1; k=rsa; p=abc+/=", &own);
        let met = |purpose: &str, value: &str| {
            let record = expected.iter().find(|record| record.purpose == purpose).unwrap();
            is_satisfied(record, &[value.to_owned()])
        };
        assert!(
            met("dkim", "v=DKIM1;k=rsa;p=ab c+/=") && !met("dkim", "v=DKIM1; p=") && !met("dkim", "p=other")
        );
        assert!(met("spf", "v=spf1 mx include:IN.example.com -all") && !met("spf", "v=spf1 -all"));
        assert!(!met("spf", "include:in.example.com"));
        assert!(met("dmarc", "v=DMARC1; p=reject") && !met("dmarc", "p=none"));
        assert!(met("mx", "5 In.Example.com.") && !met("mx", "5 example.com."));
    }

    #[test]
    fn only_host_names_are_domains() {
        for (domain, subdomain, count) in [
            ("bakery.example", "", 0),
            ("Bakery.Example", "Mail.eu", 0),
            ("bakery", "", 1),
            ("bakery..example", "", 1),
            ("bücher.example", "-a", 2),
            ("a b.example", "", 1),
        ] {
            let mut faults = Faults::default();
            host_name(domain, subdomain, &mut faults);
            assert_eq!(faults.len(), count, "{domain} {subdomain}");
        }
        assert_eq!(host_name("B.example", "M", &mut Faults::default()).host, "m.b.example");
    }

    proptest! {
        #[test]
        fn any_value_of_the_dns_can_be_compared(value in any::<String>()) {
            let own = OwnDomain::new("in.example.com");
            for expected in expected_records(&record(true), "v=DKIM1; p=abc", &own) {
                is_satisfied(&expected, std::slice::from_ref(&value));
            }
        }
    }
}
