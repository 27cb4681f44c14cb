//! What the number of a company is called where the company is.

use crate::printed::Language;

/// The number with its label; `None` without a number.
pub(super) fn labelled(number: &str, country: &str, language: Language) -> Option<String> {
    let number = number.trim();
    let label = label(number, &country.trim().to_ascii_uppercase(), language);
    let begins = number.get(..label.len()).is_some_and(|start| start.eq_ignore_ascii_case(label));
    // A German number begins with the name of its register.
    let text =
        if begins || is_german_register(number) { number.to_owned() } else { format!("{label} {number}") };
    (!number.is_empty()).then_some(text)
}

fn label(number: &str, country: &str, language: Language) -> &'static str {
    match (country, language) {
        ("NL", _) | ("", Language::Nl) => "KvK",
        ("BE", _) => "KBO/BCE",
        ("DE", _) => "HRB",
        // A SIRET is a SIREN with the number of an establishment behind it.
        ("FR", _) if number.chars().filter(char::is_ascii_digit).count() == 14 => "SIRET",
        ("FR", _) => "SIREN",
        (_, Language::Nl) => "Reg.nr.",
        (_, Language::En) => "Reg. no.",
    }
}

fn is_german_register(number: &str) -> bool {
    ["HRA", "HRB", "GNR", "PR ", "VR "].iter().any(|register| {
        number.get(..register.len()).is_some_and(|start| start.eq_ignore_ascii_case(register))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_called_what_its_country_calls_it() {
        for (number, country, language, shown) in [
            ("12345678", "NL", Language::Nl, "KvK 12345678"),
            ("12345678", "nl", Language::En, "KvK 12345678"),
            ("0123.456.789", "BE", Language::Nl, "KBO/BCE 0123.456.789"),
            ("12345", "DE", Language::En, "HRB 12345"),
            ("HRB 12345 B", "DE", Language::Nl, "HRB 12345 B"),
            ("HRA 9", "DE", Language::Nl, "HRA 9"),
            ("732 829 320", "FR", Language::En, "SIREN 732 829 320"),
            ("732 829 320 00074", "FR", Language::En, "SIRET 732 829 320 00074"),
            ("77", "SE", Language::Nl, "Reg.nr. 77"),
            ("77", "SE", Language::En, "Reg. no. 77"),
            ("KvK 12345678", "NL", Language::Nl, "KvK 12345678"),
        ] {
            assert_eq!(labelled(number, country, language).as_deref(), Some(shown));
        }
        assert_eq!(labelled(" ", "NL", Language::Nl), None);
    }
}
