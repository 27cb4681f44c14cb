//! IBAN (ISO 13616) and BIC (ISO 9362).

use super::{compact, country};

/// The length of an IBAN in each country that has them, from the registry.
const LENGTHS: &str = "\
    AD24 AE23 AL28 AT20 AZ28 BA20 BE16 BG22 BH22 BI27 BR29 BY28 CH21 CR22 CY28 CZ24 DE22 DJ27 DK18 DO28 EE20 EG29 \
    ES24 FI18 FK18 FO18 FR27 GB22 GE22 GI23 GL18 GR27 GT28 HN28 HR21 HU28 IE22 IL23 IQ23 IS26 IT27 JO30 KW30 KZ20 \
    LB28 LC32 LI21 LT20 LU20 LV21 LY25 MC27 MD24 ME22 MK19 MN20 MR27 MT31 MU30 NI28 NL18 NO15 OM23 PK24 PL28 PS29 \
    PT25 QA29 RO24 RS22 RU33 SA24 SC31 SD18 SE24 SI19 SK24 SM27 SO23 ST25 SV28 TL23 TN24 TR26 UA29 VA22 VG24 XK20 \
    YE30";

/// An IBAN in upper case without spaces, if its length and check digits are correct.
pub fn normalise_iban(text: &str) -> Option<String> {
    let iban = compact(text);
    let right = iban.bytes().all(|byte| byte.is_ascii_alphanumeric())
        && iban.get(..2).and_then(length_in) == Some(iban.len())
        // The calculation yields 02 to 98. 00, 01 and 99 are equal to 97, 98 and 02 modulo 97, so they would pass it.
        && iban.get(2..4).and_then(|digits| digits.parse().ok()).is_some_and(|digits: u8| (2..=98).contains(&digits))
        && remainder(&iban) == 1;
    right.then_some(iban)
}

fn length_in(country: &str) -> Option<usize> {
    let entry = LENGTHS.split_ascii_whitespace().find(|entry| entry.starts_with(country))?;
    entry.get(2..)?.parse().ok()
}

/// The remainder modulo 97 of the number that the characters form, with the first four moved to the end.
fn remainder(iban: &str) -> u32 {
    let (head, tail) = iban.split_at(4);
    tail.chars().chain(head.chars()).filter_map(|c| c.to_digit(36)).fold(0, |sum, value| {
        let shift = if value > 9 { 100 } else { 10 };
        (sum * shift + value) % 97
    })
}

/// A BIC in upper case without spaces: institution, country, location and optionally a branch.
pub fn normalise_bic(text: &str) -> Option<String> {
    let bic = compact(text);
    let right = matches!(bic.len(), 8 | 11)
        && bic.bytes().all(|byte| byte.is_ascii_alphanumeric())
        // Kosovo has banks but no officially assigned country code.
        && bic.get(4..6).is_some_and(|code| code == "XK" || country::is_code(code));
    right.then_some(bic)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn examples_of_many_countries_pass() {
        for iban in [
            "NL91 ABNA 0417 1643 00",
            "BE68539007547034",
            "DE89370400440532013000",
            "FR1420041010050500013M02606",
            "GB29NWBK60161331926819",
            "MT84MALT011000012345MTLCAST001S",
            "NO9386011117947",
            "nl91abna0417164300",
            "SA0380000000608010167519",
        ] {
            assert_eq!(normalise_iban(iban), Some(compact(iban)), "{iban}");
        }
    }

    #[test]
    fn other_texts_are_no_iban() {
        for wrong in [
            "",
            "NL",
            "é",
            "NL91ABNA041716430",
            "NL91ABNA04171643000",
            "NL92ABNA0417164300",
            "XX91ABNA0417164300",
        ] {
            assert_eq!(normalise_iban(wrong), None, "{wrong}");
        }
        for wrong in ["US64SVBKUS6S3300958879", "NL91-ABNA-0417-1643-00", "N", "ΝL91ABNA0417164300"] {
            assert_eq!(normalise_iban(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_bic_has_eight_or_eleven_characters_and_a_country() {
        for right in ["ABNANL2A", "DEUTDEFF500", "abna nl 2a"] {
            assert_eq!(normalise_bic(right), Some(compact(right)), "{right}");
        }
        for wrong in ["", "ABNANL2", "ABNANL2AX", "ABNAXX2A", "ABNANL2A5000", "ABNANL2Ä", "ÄÄÄÄ"] {
            assert_eq!(normalise_bic(wrong), None, "{wrong}");
        }
    }

    /// Generates Dutch and French IBANs with computed check digits.
    fn iban() -> impl Strategy<Value = String> {
        let account =
            prop_oneof!["[A-Z]{4}[0-9]{10}".prop_map(|a| ("NL", a)), "[0-9A-Z]{23}".prop_map(|a| ("FR", a))];
        account.prop_map(|(country, account)| {
            let check = 98 - remainder(&format!("{country}00{account}"));
            format!("{country}{check:02}{account}")
        })
    }

    proptest! {
        #[test]
        fn computed_check_digits_pass(iban in iban()) {
            prop_assert_eq!(normalise_iban(&iban), Some(iban));
        }

        #[test]
        fn one_changed_digit_fails(iban in iban(), place in 2_usize..18, by in 1_u32..10) {
            let old = char::from(iban.as_bytes()[place]);
            if let Some(digit) = old.to_digit(10) {
                let new = char::from_digit((digit + by) % 10, 10).unwrap();
                let mut changed = iban.clone();
                changed.replace_range(place..=place, &new.to_string());
                prop_assert_eq!(normalise_iban(&changed), None);
            }
        }

        #[test]
        fn two_swapped_neighbours_fail(iban in iban(), place in 4_usize..17) {
            let mut bytes = iban.clone().into_bytes();
            bytes.swap(place, place + 1);
            let swapped = String::from_utf8(bytes).unwrap();
            if swapped != iban && swapped.as_bytes()[place..=place + 1].iter().all(u8::is_ascii_digit) {
                prop_assert_eq!(normalise_iban(&swapped), None);
            }
        }

        #[test]
        fn any_text_gets_an_answer(text in any::<String>()) {
            let _ = (normalise_iban(&text), normalise_bic(&text));
        }
    }
}
