//! VAT numbers in the format that VIES accepts for each EU country. Numbers of other countries are only cleaned up.

use super::compact;

/// Country, prefix and formats. In a format, `9` is a digit, `@` a letter, `#` either of these, `?` either of these or
/// `+` or `*`; any other character matches itself.
const FORMATS: [(&str, &str, &[&str]); 28] = [
    ("AT", "AT", &["U99999999"]),
    ("BE", "BE", &["0999999999", "1999999999"]),
    ("BG", "BG", &["999999999", "9999999999"]),
    ("CY", "CY", &["99999999@"]),
    ("CZ", "CZ", &["99999999", "999999999", "9999999999"]),
    ("DE", "DE", &["999999999"]),
    ("DK", "DK", &["99999999"]),
    ("EE", "EE", &["999999999"]),
    ("GR", "EL", &["999999999"]),
    ("ES", "ES", &["@9999999@", "99999999@", "@99999999"]),
    ("FI", "FI", &["99999999"]),
    ("FR", "FR", &["##999999999"]),
    ("HR", "HR", &["99999999999"]),
    ("HU", "HU", &["99999999"]),
    ("IE", "IE", &["9999999@", "9999999@@", "9?99999@"]),
    ("IT", "IT", &["99999999999"]),
    ("LT", "LT", &["999999999", "999999999999"]),
    ("LU", "LU", &["99999999"]),
    ("LV", "LV", &["99999999999"]),
    ("MT", "MT", &["99999999"]),
    ("NL", "NL", &["999999999B99"]),
    ("PL", "PL", &["9999999999"]),
    ("PT", "PT", &["999999999"]),
    ("RO", "RO", &["99", "999", "9999", "99999", "999999", "9999999", "99999999", "999999999", "9999999999"]),
    ("SE", "SE", &["999999999999"]),
    ("SI", "SI", &["99999999"]),
    ("SK", "SK", &["9999999999"]),
    // Northern Ireland is not in the EU, but EU rules apply to its trade in goods.
    ("XI", "XI", &["999999999", "999999999999", "GD999", "HA999"]),
];

/// The number with its prefix, without spaces, dots and hyphens, in upper case.
///
/// `country` is the country of the holder. In the EU the number must have the format of its prefix's country, and the
/// prefix may be omitted. Outside the EU any text passes.
pub fn normalise(text: &str, country: &str) -> Option<String> {
    let spaced = compact(text);
    let number: String = spaced.chars().filter(|c| !matches!(c, '.' | '-')).collect();
    if let Some(normal) = with_prefix(&number) {
        return Some(normal);
    }
    match FORMATS.iter().find(|(of, _, _)| *of == country) {
        Some((_, prefix, formats)) => fits_any(formats, &number).then(|| format!("{prefix}{number}")),
        None => Some(spaced),
    }
}

/// A number as it is compared with others: neither case nor spaces, dots and hyphens matter. A number in normal form only
/// loses its dots and hyphens.
pub fn comparable(text: &str) -> String {
    let number: String = compact(text).chars().filter(|c| !matches!(c, '.' | '-')).collect();
    with_prefix(&number).unwrap_or(number)
}

fn with_prefix(number: &str) -> Option<String> {
    let (prefix, rest) = number.split_at_checked(2)?;
    // The prefix of Greece is EL, but GR is also in use.
    let (_, prefix, formats) =
        FORMATS.iter().find(|(country, own, _)| *own == prefix || *country == prefix)?;
    fits_any(formats, rest).then(|| format!("{prefix}{rest}"))
}

fn fits_any(formats: &[&str], number: &str) -> bool {
    formats.iter().any(|format| fits(format, number))
}

fn fits(format: &str, number: &str) -> bool {
    format.len() == number.len()
        && format.bytes().zip(number.bytes()).all(|(wanted, byte)| match wanted {
            b'9' => byte.is_ascii_digit(),
            b'@' => byte.is_ascii_uppercase(),
            b'#' => byte.is_ascii_uppercase() || byte.is_ascii_digit(),
            b'?' => byte.is_ascii_uppercase() || byte.is_ascii_digit() || matches!(byte, b'+' | b'*'),
            other => byte == other,
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_number_gets_its_normal_form() {
        for (text, country, normal) in [
            ("NL123456789B01", "NL", "NL123456789B01"),
            ("nl 1234.56.789.b01", "NL", "NL123456789B01"),
            ("123456789B01", "NL", "NL123456789B01"),
            ("BE 0123.456.789", "NL", "BE0123456789"),
            ("GR123456789", "GR", "EL123456789"),
            ("123456789", "GR", "EL123456789"),
            ("ATU12345678", "AT", "ATU12345678"),
            ("IE1A23456B", "IE", "IE1A23456B"),
            ("XI123456789", "GB", "XI123456789"),
            ("gb 123 4567 89", "GB", "GB123456789"),
            ("che-123.456.789 mwst", "CH", "CHE-123.456.789MWST"),
        ] {
            assert_eq!(normalise(text, country).as_deref(), Some(normal), "{text}");
        }
    }

    #[test]
    fn numbers_are_compared_without_what_does_not_matter() {
        for (text, comparable_text) in [
            ("nl 1234.56.789-b01", "NL123456789B01"),
            ("GR123456789", "EL123456789"),
            ("che-123.456.789 mwst", "CHE123456789MWST"),
            ("123456789B01", "123456789B01"),
            ("", ""),
        ] {
            assert_eq!(comparable(text), comparable_text, "{text}");
        }
    }

    #[test]
    fn a_number_of_the_wrong_form_is_refused_in_the_eu() {
        for (text, country) in [
            ("NL123", "NL"),
            ("NL123456789A01", "NL"),
            ("DE12345678", "NL"),
            ("DE1234567890", "DE"),
            ("ZZ123456789", "DE"),
            ("BE2123456789", "BE"),
            ("é", "FR"),
        ] {
            assert_eq!(normalise(text, country), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn a_normal_form_stays_as_it_is(text in "[A-Z]{0,3}[0-9 .-]{0,12}[A-Z]{0,2}", eu in 0_usize..28) {
            let country = FORMATS[eu].0;
            if let Some(normal) = normalise(&text, country) {
                prop_assert_eq!(normalise(&normal, country), Some(normal));
            }
        }

        #[test]
        fn a_missing_digit_is_noticed(number in "[0-9]{8}B[0-9]{2}") {
            prop_assert_eq!(normalise(&format!("NL{number}"), "NL"), None);
        }
    }
}
