//! The identifiers of a party: country, VAT number, legal registration and address on the Peppol network, each in the
//! form that the rules accept, or absent.

use render::printed::Party;

use super::codes::is_country;
use super::xml::clean;

/// A value and the list that it comes from: ISO 6523 for registrations, the Peppol list (EAS) for network addresses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Id {
    /// Empty for a national list without a scheme.
    pub scheme: &'static str,
    pub value: String,
}

/// The scheme of e-mail addresses. EN 16931 knows it, Peppol does not: nothing can be delivered there.
const EMAIL: &str = "EM";

pub(super) struct Identity {
    /// Empty when it is not known.
    pub country: String,
    /// With the prefix of its country.
    pub vat: Option<String>,
    pub legal: Option<Id>,
    pub endpoint: Option<Id>,
}

impl Identity {
    pub(super) fn of(party: &Party) -> Self {
        let country = Some(compact(&party.country)).filter(|code| is_country(code)).unwrap_or_default();
        let vat = vat(&party.vat_number, &country);
        let legal = legal(&clean(&party.registration_number), &country);
        let endpoint = legal
            .as_ref()
            .filter(|id| !id.scheme.is_empty())
            .cloned()
            .or_else(|| by_vat(vat.as_deref()?))
            .or_else(|| us_employer(legal.as_ref()?, &country))
            .or_else(|| by_email(&party.email));
        Self { country, vat, legal, endpoint }
    }

    /// Whether there is an address that Peppol can deliver to.
    pub(super) fn is_reachable(&self) -> bool {
        self.endpoint.as_ref().is_some_and(|id| id.scheme != EMAIL)
    }

    /// The country of the VAT number; without one, that of the address.
    pub(super) fn tax_country(&self) -> &str {
        let of_vat = self.vat.as_deref().and_then(|vat| vat.get(..2)).map(country_of_prefix);
        of_vat.unwrap_or(&self.country)
    }
}

/// Letters and digits, in upper case.
pub(super) fn compact(text: &str) -> String {
    text.chars().filter(char::is_ascii_alphanumeric).map(|c| c.to_ascii_uppercase()).collect()
}

/// Greece's VAT numbers do not begin with its country code.
fn country_of_prefix(prefix: &str) -> &str {
    if prefix == "EL" { "GR" } else { prefix }
}

fn vat(text: &str, country: &str) -> Option<String> {
    let number = compact(text);
    let prefix = number.get(..2).map(country_of_prefix).filter(|prefix| is_country(prefix));
    let (of, rest) = match prefix {
        Some(of) => (of, &number[2..]),
        None => (country, number.as_str()),
    };
    let is_good = match of {
        "" => false,
        "NL" => is_dutch_vat(rest),
        _ => rest.len() >= 2,
    };
    is_good.then(|| format!("{}{rest}", if of == "GR" { "EL" } else { of }))
}

/// 123456789B01.
fn is_dutch_vat(rest: &str) -> bool {
    rest.len() == 12
        && rest.bytes().enumerate().all(|(at, b)| if at == 9 { b == b'B' } else { b.is_ascii_digit() })
}

fn legal(text: &str, country: &str) -> Option<Id> {
    let number = compact(text);
    let id = |scheme, value: &str| Some(Id { scheme, value: value.to_owned() });
    let is_digits = number.bytes().all(|b| b.is_ascii_digit());
    match (country, number.len()) {
        ("NL", 8) if is_digits => id("0106", &number),
        ("NL", 20) if is_digits => id("0190", &number),
        // The rules of the Netherlands take no other.
        ("NL", _) => None,
        ("BE", _) if belgian(&number).is_some() => belgian(&number),
        ("FR", 14) if is_digits => id("0009", &number),
        ("FR", 9) if is_digits => id("0002", &number),
        ("DK", 8) if is_digits => id("0184", &number),
        ("NO", _) if norwegian(&number).is_some() => norwegian(&number),
        ("SE", _) if swedish(&number).is_some() => swedish(&number),
        _ if number.is_empty() => None,
        _ => id("", text),
    }
}

/// The network address that follows from a VAT number.
fn by_vat(vat: &str) -> Option<Id> {
    let (prefix, rest) = vat.split_at_checked(2)?;
    let scheme = match prefix {
        "BE" if belgian(rest).is_some() => return belgian(rest),
        "SE" => return swedish(rest.get(..10)?),
        "NO" => return norwegian(rest.trim_end_matches("MVA")),
        "US" => return us_employer_number(rest),
        "DK" if rest.len() == 8 && rest.bytes().all(|b| b.is_ascii_digit()) => "0184",
        "FI" if rest.len() == 8 && rest.bytes().all(|b| b.is_ascii_digit()) => {
            return Some(Id { scheme: "0216", value: format!("0037{rest}") });
        }
        "AD" => "9922",
        "AL" => "9923",
        "AT" => "9914",
        "BA" => "9924",
        "BE" => "9925",
        "BG" => "9926",
        "CH" => "9927",
        "CY" => "9928",
        "CZ" => "9929",
        "DE" => "9930",
        "EE" => "9931",
        "EL" => "9933",
        "ES" => "9920",
        "FR" => "9957",
        "GB" => "9932",
        "HR" => "9934",
        "HU" => "9910",
        "IE" => "9935",
        "IT" => "0211",
        "LI" => "9936",
        "LT" => "9937",
        "LU" => "9938",
        "LV" => "9939",
        "MC" => "9940",
        "ME" => "9941",
        "MK" => "9942",
        "MT" => "9943",
        "NL" => "9944",
        "PL" => "9945",
        "PT" => "9946",
        "RO" => "9947",
        "RS" => "9948",
        "SI" => "9949",
        "SK" => "9950",
        "SM" => "9951",
        "TR" => "9952",
        "VA" => "9953",
        _ => return None,
    };
    Some(Id { scheme, value: vat.to_owned() })
}

fn by_email(text: &str) -> Option<Id> {
    let first = text.split([',', ';']).next().map(clean)?;
    first.contains('@').then_some(Id { scheme: EMAIL, value: first })
}

fn us_employer(legal: &Id, country: &str) -> Option<Id> {
    if country == "US" { us_employer_number(&compact(&legal.value)) } else { None }
}

/// EIN: nine digits.
fn us_employer_number(number: &str) -> Option<Id> {
    (number.len() == 9 && digits(number).is_some()).then(|| Id { scheme: "9959", value: number.to_owned() })
}

fn digits(text: &str) -> Option<Vec<u32>> {
    text.chars().map(|c| c.to_digit(10)).collect()
}

/// The enterprise number: ten digits, the last two check the others. Old ones are written without the leading zero.
fn belgian(number: &str) -> Option<Id> {
    let number = format!("{:0>10}", number.strip_prefix("BE").unwrap_or(number));
    let (base, check) = number.split_at_checked(8).filter(|_| number.len() == 10)?;
    let (base, check): (u32, u32) = (base.parse().ok()?, check.parse().ok()?);
    (base > 0 && 97 - base % 97 == check).then_some(Id { scheme: "0208", value: number })
}

/// Ten digits, checked by Luhn's sum.
fn swedish(number: &str) -> Option<Id> {
    let doubled = |(at, digit): (usize, u32)| match at % 2 {
        0 => digit * 2 / 10 + digit * 2 % 10,
        _ => digit,
    };
    let sum: u32 = digits(number).filter(|all| all.len() == 10)?.into_iter().enumerate().map(doubled).sum();
    (sum > 0 && sum.is_multiple_of(10)).then(|| Id { scheme: "0007", value: number.to_owned() })
}

/// Nine digits, weighted modulo 11.
fn norwegian(number: &str) -> Option<Id> {
    const WEIGHTS: [u32; 9] = [3, 2, 7, 6, 5, 4, 3, 2, 1];
    let digits = digits(number).filter(|all| all.len() == 9)?;
    let sum: u32 = digits.iter().zip(WEIGHTS).map(|(digit, weight)| digit * weight).sum();
    (sum > 0 && sum.is_multiple_of(11)).then(|| Id { scheme: "0192", value: number.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn party(country: &str, registration_number: &str, vat_number: &str) -> Identity {
        Identity::of(&Party {
            country: country.to_owned(),
            registration_number: registration_number.to_owned(),
            vat_number: vat_number.to_owned(),
            email: "post@example.com, other@example.com".to_owned(),
            ..Party::default()
        })
    }

    fn endpoint(identity: &Identity) -> (&str, &str) {
        identity.endpoint.as_ref().map_or(("", ""), |id| (id.scheme, id.value.as_str()))
    }

    #[test]
    fn the_registration_comes_before_the_vat_number_and_that_before_the_mail_address() {
        for (country, registration, vat, scheme, value) in [
            ("NL", "12345678", "NL123456789B01", "0106", "12345678"),
            (" nl", "1234 5678", "", "0106", "12345678"),
            ("NL", "00000001234567890000", "", "0190", "00000001234567890000"),
            ("NL", "123", "NL123456789B01", "9944", "NL123456789B01"),
            ("BE", "0403.170.701", "", "0208", "0403170701"),
            ("BE", "", "BE 0403.170.701", "0208", "0403170701"),
            ("BE", "", "BE0403170702", "9925", "BE0403170702"),
            ("DE", "HRB 12345", "DE123456789", "9930", "DE123456789"),
            ("FR", "732 829 320", "", "0002", "732829320"),
            ("FR", "", "FR83732829320", "9957", "FR83732829320"),
            ("SE", "", "SE556036079301", "0007", "5560360793"),
            ("NO", "", "NO923609016MVA", "0192", "923609016"),
            ("FI", "", "FI01120389", "0216", "003701120389"),
            ("DK", "", "DK13585628", "0184", "DK13585628"),
            ("GR", "", "GR094259216", "9933", "EL094259216"),
            ("US", "12-3456789", "", "9959", "123456789"),
            ("US", "", "", "EM", "post@example.com"),
            ("NL", "", "NL123", "EM", "post@example.com"),
        ] {
            let identity = party(country, registration, vat);
            assert_eq!(endpoint(&identity), (scheme, value), "{country} {registration} {vat}");
            assert_eq!(identity.is_reachable(), scheme != "EM");
        }
    }

    #[test]
    fn a_vat_number_gets_the_prefix_of_the_country_when_it_has_none() {
        assert_eq!(party("NL", "", "1234.56.789.B01").vat.as_deref(), Some("NL123456789B01"));
        assert_eq!(party("AT", "", "U12345678").vat.as_deref(), Some("ATU12345678"));
        assert_eq!(party("GR", "", "094259216").vat.as_deref(), Some("EL094259216"));
        assert_eq!(party("", "", "123456789B01").vat, None);
        assert_eq!(party("NL", "", "NL12").vat, None);
    }

    #[test]
    fn a_country_that_does_not_exist_is_not_known() {
        assert_eq!(party("XX", "", "").country, "");
        assert_eq!(party(" be ", "", "").country, "BE");
        assert_eq!(party("NL", "", "EL094259216").tax_country(), "GR");
        assert_eq!(party("NL", "", "").tax_country(), "NL");
    }
}
