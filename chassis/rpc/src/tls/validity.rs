//! The expiry of a certificate, read from its DER for the expiry alert. Nothing else is parsed.

use chrono::{DateTime, NaiveDateTime, Utc};

const VERSION: u8 = 0xa0;
const UTC_TIME: u8 = 0x17;
const GENERALIZED_TIME: u8 = 0x18;

/// `None` when the time cannot be read. Call it only for a certificate that rustls has accepted.
pub(super) fn end(certificate: &[u8]) -> Option<DateTime<Utc>> {
    let (_, certificate, _) = element(certificate)?;
    let (_, signed, _) = element(certificate)?;
    let (first, _, _) = element(signed)?;
    // The optional version, the serial number, the algorithm and the issuer come before the validity.
    let before = if first == VERSION { 4 } else { 3 };
    let mut rest = signed;
    for _ in 0..before {
        (_, _, rest) = element(rest)?;
    }
    let (_, validity, _) = element(rest)?;
    let (_, _, end) = element(validity)?;
    let (kind, text, _) = element(end)?;
    time(kind, std::str::from_utf8(text).ok()?)
}

/// The first element: its tag, its content, and the bytes after it.
fn element(bytes: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (kind, rest) = bytes.split_first()?;
    let (first, rest) = rest.split_first()?;
    let (length, rest) = match first {
        0..=0x7f => (usize::from(*first), rest),
        0x81..=0x84 => {
            let (digits, rest) = rest.split_at_checked(usize::from(first & 0x7f))?;
            (digits.iter().fold(0, |length, digit| (length << 8) | usize::from(*digit)), rest)
        }
        _ => return None,
    };
    let (content, rest) = rest.split_at_checked(length)?;
    Some((*kind, content, rest))
}

fn time(kind: u8, text: &str) -> Option<DateTime<Utc>> {
    let text = match kind {
        // The year has two digits and lies between 1950 and 2049.
        UTC_TIME => format!("{}{text}", if text.get(..1)? < "5" { "20" } else { "19" }),
        GENERALIZED_TIME => text.to_owned(),
        _ => return None,
    };
    NaiveDateTime::parse_from_str(&text, "%Y%m%d%H%M%SZ").ok().map(|time| time.and_utc())
}

#[cfg(test)]
mod tests {
    use super::*;
    use rcgen::{CertificateParams, KeyPair, date_time_ymd};

    fn certificate(year: i32) -> Vec<u8> {
        let mut params = CertificateParams::new(vec!["a-name".to_owned()]).unwrap();
        params.not_after = date_time_ymd(year, 3, 31);
        params.self_signed(&KeyPair::generate().unwrap()).unwrap().der().to_vec()
    }

    #[test]
    fn the_end_of_a_certificate_is_read_in_both_ways_of_writing() {
        for year in [2027, 2049, 2050, 4096] {
            let end = end(&certificate(year)).unwrap();
            assert_eq!(end.to_rfc3339(), format!("{year}-03-31T00:00:00+00:00"));
        }
    }

    #[test]
    fn something_else_has_no_end() {
        let whole = certificate(2027);
        for length in 0..whole.len() {
            assert_eq!(end(&whole[..length]), None);
        }
        assert_eq!(end(&[0xff; 64]), None);
    }
}
