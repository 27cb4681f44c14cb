//! Country codes of ISO 3166 alpha-2.

use super::compact;

/// All officially assigned codes, in order.
const CODES: &str = "\
    AD AE AF AG AI AL AM AO AQ AR AS AT AU AW AX AZ BA BB BD BE BF BG BH BI BJ BL BM BN BO BQ BR BS BT BV BW BY BZ \
    CA CC CD CF CG CH CI CK CL CM CN CO CR CU CV CW CX CY CZ DE DJ DK DM DO DZ EC EE EG EH ER ES ET FI FJ FK FM FO \
    FR GA GB GD GE GF GG GH GI GL GM GN GP GQ GR GS GT GU GW GY HK HM HN HR HT HU ID IE IL IM IN IO IQ IR IS IT JE \
    JM JO JP KE KG KH KI KM KN KP KR KW KY KZ LA LB LC LI LK LR LS LT LU LV LY MA MC MD ME MF MG MH MK ML MM MN MO \
    MP MQ MR MS MT MU MV MW MX MY MZ NA NC NE NF NG NI NL NO NP NR NU NZ OM PA PE PF PG PH PK PL PM PN PR PS PT PW \
    PY QA RE RO RS RU RW SA SB SC SD SE SG SH SI SJ SK SL SM SN SO SR SS ST SV SX SY SZ TC TD TF TG TH TJ TK TL TM \
    TN TO TR TT TV TW TZ UA UG UM US UY UZ VA VC VE VG VI VN VU WF WS YE YT ZA ZM ZW";

pub fn normalise(text: &str) -> Option<String> {
    let code = compact(text);
    is_code(&code).then_some(code)
}

pub fn is_code(code: &str) -> bool {
    CODES.split_ascii_whitespace().any(|known| known == code)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_249_codes_are_there_once_and_in_order() {
        let codes: Vec<&str> = CODES.split_ascii_whitespace().collect();
        assert_eq!(codes.len(), 249);
        assert!(codes.windows(2).all(|pair| pair[0] < pair[1]));
        assert!(codes.iter().all(|code| code.len() == 2));
    }

    #[test]
    fn a_code_is_put_in_upper_case_and_anything_else_refused() {
        assert_eq!(normalise(" nl ").as_deref(), Some("NL"));
        for wrong in ["", "XX", "UK", "EU", "NLD", "N", "AD AE", "ñl"] {
            assert_eq!(normalise(wrong), None, "{wrong:?}");
        }
    }
}
