//! The code lists of the e-invoice: units, countries, currencies, reasons for charging no VAT.

use render::printed::{Category, Language};

/// UN/ECE Recommendation 20: "one", for what is counted and for units that the list does not have.
const ONE: &str = "C62";

/// The code of a unit as people write it, in Dutch or English.
pub(super) fn unit(text: &str) -> &'static str {
    let word: String = text.trim().trim_end_matches('.').to_lowercase();
    match word.as_str() {
        "u" | "uur" | "uren" | "h" | "hr" | "hrs" | "hour" | "hours" => "HUR",
        "min" | "minuut" | "minuten" | "minute" | "minutes" => "MIN",
        "s" | "sec" | "seconde" | "seconden" | "second" | "seconds" => "SEC",
        "d" | "dag" | "dagen" | "day" | "days" => "DAY",
        "wk" | "week" | "weken" | "weeks" => "WEE",
        "mnd" | "maand" | "maanden" | "mo" | "month" | "months" => "MON",
        "kwartaal" | "kwartalen" | "quarter" | "quarters" => "QAN",
        "jr" | "jaar" | "jaren" | "yr" | "year" | "years" => "ANN",
        "mg" | "milligram" => "MGM",
        "g" | "gr" | "gram" | "grams" => "GRM",
        "kg" | "kilo" | "kilogram" | "kilograms" => "KGM",
        "t" | "ton" | "tonne" | "tonnes" => "TNE",
        "mm" | "millimeter" | "millimetre" => "MMT",
        "cm" | "centimeter" | "centimetre" => "CMT",
        "m" | "mtr" | "meter" | "meters" | "metre" | "metres" | "m1" => "MTR",
        "km" | "kilometer" | "kilometers" | "kilometre" | "kilometres" => "KMT",
        "m2" | "m²" | "vierkante meter" | "square meter" | "square metre" => "MTK",
        "m3" | "m³" | "kuub" | "kubieke meter" | "cubic meter" | "cubic metre" => "MTQ",
        "ha" | "hectare" | "hectares" => "HAR",
        "ml" | "milliliter" | "millilitre" => "MLT",
        "cl" | "centiliter" | "centilitre" => "CLT",
        "l" | "ltr" | "liter" | "liters" | "litre" | "litres" => "LTR",
        "kwh" => "KWH",
        "dozijn" | "dozen" => "DZN",
        "paar" | "pair" | "pairs" => "PR",
        "set" | "sets" => "SET",
        "%" | "procent" | "percent" => "P1",
        _ => ONE,
    }
}

/// ISO 3166 alpha-2, every officially assigned code, and Northern Ireland as the rules have it.
const COUNTRIES: &str = "\
    AD AE AF AG AI AL AM AO AQ AR AS AT AU AW AX AZ BA BB BD BE BF BG BH BI BJ BL BM BN BO BQ BR BS BT BV BW BY BZ \
    CA CC CD CF CG CH CI CK CL CM CN CO CR CU CV CW CX CY CZ DE DJ DK DM DO DZ EC EE EG EH ER ES ET FI FJ FK FM FO \
    FR GA GB GD GE GF GG GH GI GL GM GN GP GQ GR GS GT GU GW GY HK HM HN HR HT HU ID IE IL IM IN IO IQ IR IS IT JE \
    JM JO JP KE KG KH KI KM KN KP KR KW KY KZ LA LB LC LI LK LR LS LT LU LV LY MA MC MD ME MF MG MH MK ML MM MN MO \
    MP MQ MR MS MT MU MV MW MX MY MZ NA NC NE NF NG NI NL NO NP NR NU NZ OM PA PE PF PG PH PK PL PM PN PR PS PT PW \
    PY QA RE RO RS RU RW SA SB SC SD SE SG SH SI SJ SK SL SM SN SO SR SS ST SV SX SY SZ TC TD TF TG TH TJ TK TL TM \
    TN TO TR TT TV TW TZ UA UG UM US UY UZ VA VC VE VG VI VN VU WF WS XI YE YT ZA ZM ZW";

/// ISO 4217, the currencies in use.
const CURRENCIES: &str = "\
    AED AFN ALL AMD AOA ARS AUD AWG AZN BAM BBD BDT BHD BIF BMD BND BOB BRL BSD BTN BWP BYN BZD CAD CDF CHF CLP CNY \
    COP CRC CUP CVE CZK DJF DKK DOP DZD EGP ERN ETB EUR FJD FKP GBP GEL GHS GIP GMD GNF GTQ GYD HKD HNL HTG HUF IDR \
    ILS INR IQD IRR ISK JMD JOD JPY KES KGS KHR KMF KPW KRW KWD KYD KZT LAK LBP LKR LRD LSL LYD MAD MDL MGA MKD MMK \
    MNT MOP MRU MUR MVR MWK MXN MYR MZN NAD NGN NIO NOK NPR NZD OMR PAB PEN PGK PHP PKR PLN PYG QAR RON RSD RUB RWF \
    SAR SBD SCR SDG SEK SGD SHP SLE SOS SRD SSP SVC SYP SZL THB TJS TMT TND TOP TRY TTD TWD TZS UAH UGX USD UYU UZS \
    VES VND VUV WST XAF XCD XOF XPF YER ZAR ZMW";

pub(super) fn is_country(code: &str) -> bool {
    COUNTRIES.split_ascii_whitespace().any(|known| known == code)
}

pub(super) fn is_currency(code: &str) -> bool {
    CURRENCIES.split_ascii_whitespace().any(|known| known == code)
}

/// The reason for which no VAT is charged.
pub(super) struct Exemption {
    /// A code of the VATEX list. Empty for exempt supplies: which law exempts a service is not known here.
    pub code: &'static str,
    pub text: &'static str,
}

pub(super) fn exemption(category: Category, language: Language) -> Option<Exemption> {
    let (code, dutch, english) = match category {
        Category::S | Category::Z => return None,
        Category::E => ("", "Vrijgesteld van btw", "Exempt from VAT"),
        Category::AE => ("VATEX-EU-AE", "Btw verlegd", "Reverse charge"),
        Category::K => ("VATEX-EU-IC", "Intracommunautaire levering", "Intra-community supply"),
        Category::G => ("VATEX-EU-G", "Uitvoer buiten de EU", "Export outside the EU"),
        Category::O => ("VATEX-EU-O", "Valt niet onder de btw", "Not subject to VAT"),
    };
    let text = match language {
        Language::Nl => dutch,
        Language::En => english,
    };
    Some(Exemption { code, text })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_known_in_both_languages_whatever_their_case() {
        for (word, code) in [
            ("uur", "HUR"),
            ("Uren", "HUR"),
            ("hrs.", "HUR"),
            (" DAG ", "DAY"),
            ("maand", "MON"),
            ("m²", "MTK"),
            ("stuks", "C62"),
            ("", "C62"),
            ("schepje", "C62"),
        ] {
            assert_eq!(unit(word), code, "{word:?}");
        }
    }

    #[test]
    fn the_lists_are_in_order_and_have_no_duplicates() {
        for list in [COUNTRIES, CURRENCIES] {
            let codes: Vec<&str> = list.split_ascii_whitespace().collect();
            assert!(codes.windows(2).all(|pair| pair[0] < pair[1]));
        }
        assert!(is_country("NL") && !is_country("XX") && !is_country(""));
        assert!(is_currency("EUR") && !is_currency("EURO") && !is_currency(""));
    }
}
