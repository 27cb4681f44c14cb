//! Writes JSON text: strings, integers and times, without an allocation for each.

/// For each byte, whether a JSON string must escape it.
const ESCAPED: [bool; 256] = {
    let mut table = [false; 256];
    let mut byte = 0;
    while byte < 0x20 {
        table[byte] = true;
        byte += 1;
    }
    table[b'"' as usize] = true;
    table[b'\\' as usize] = true;
    table
};

/// Appends `text` as a JSON string, quotes included.
pub(crate) fn put_string(text: &str, out: &mut Vec<u8>) {
    out.push(b'"');
    let bytes = text.as_bytes();
    let (words, _) = bytes.as_chunks();
    // Most texts need no escape at all, and eight bytes are checked as fast as one.
    let mut index = 8 * words.iter().take_while(|word| is_plain(**word)).count();
    let mut plain_from = 0;
    while let Some(&byte) = bytes.get(index) {
        if ESCAPED[usize::from(byte)] {
            out.extend_from_slice(&bytes[plain_from..index]);
            put_escape(byte, out);
            plain_from = index + 1;
        }
        index += 1;
    }
    out.extend_from_slice(&bytes[plain_from..]);
    out.push(b'"');
}

/// Whether none of eight bytes must be escaped.
fn is_plain(word: [u8; 8]) -> bool {
    const ONES: u64 = 0x0101_0101_0101_0101;
    const HIGH: u64 = 0x8080_8080_8080_8080;
    let word = u64::from_ne_bytes(word);
    // The subtraction sets the high bit of each byte below the limit. Only such a byte borrows from the next one, so
    // the result is 0 exactly when there is none.
    let below = |word: u64, limit: u64| word.wrapping_sub(ONES * limit) & !word & HIGH;
    let equal = |byte: u8| below(word ^ (ONES * u64::from(byte)), 1);
    below(word, 0x20) | equal(b'"') | equal(b'\\') == 0
}

fn put_escape(byte: u8, out: &mut Vec<u8>) {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    let short = match byte {
        b'"' | b'\\' => byte,
        b'\n' => b'n',
        b'\r' => b'r',
        b'\t' => b't',
        0x08 => b'b',
        0x0c => b'f',
        _ => {
            out.extend_from_slice(b"\\u00");
            out.push(HEX[usize::from(byte >> 4)]);
            out.push(HEX[usize::from(byte & 15)]);
            return;
        }
    };
    out.extend_from_slice(&[b'\\', short]);
}

pub(crate) fn put_signed(value: i64, out: &mut Vec<u8>) {
    if value < 0 {
        out.push(b'-');
    }
    put_unsigned(value.unsigned_abs(), out);
}

pub(crate) fn put_unsigned(mut value: u64, out: &mut Vec<u8>) {
    let mut digits = [0_u8; 20];
    let mut start = digits.len();
    loop {
        start -= 1;
        digits[start] = b'0' + (value % 10).to_le_bytes()[0];
        value /= 10;
        if value == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[start..]);
}

/// Appends a quoted RFC 3339 time in UTC with milliseconds. Returns `None` and appends nothing when the year is not
/// 1 to 9999 or `nanos` is not below one second.
pub(crate) fn put_time(seconds: i64, nanos: i32, out: &mut Vec<u8>) -> Option<()> {
    let nanos = u32::try_from(nanos).ok().filter(|nanos| *nanos < 1_000_000_000)?;
    if !(-62_135_596_800..=253_402_300_799).contains(&seconds) {
        return None;
    }
    let (year, month, day) = civil_date(seconds.div_euclid(86_400));
    let second = seconds.rem_euclid(86_400);
    let parts = [
        (b'"', year, 1000),
        (b'-', month, 10),
        (b'-', day, 10),
        (b'T', second / 3600, 10),
        (b':', second / 60 % 60, 10),
        (b':', second % 60, 10),
        (b'.', i64::from(nanos / 1_000_000), 100),
    ];
    for (before, value, mut place) in parts {
        out.push(before);
        while place > 0 {
            out.push(b'0' + (value / place % 10).to_le_bytes()[0]);
            place /= 10;
        }
    }
    out.extend_from_slice(b"Z\"");
    Some(())
}

/// Year, month and day of a day counted from 1970-01-01, in the proleptic Gregorian calendar.
///
/// The computation uses years that begin in March, so that the leap day is the last day.
fn civil_date(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let day_of_era = days.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    (era * 400 + year_of_era + i64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use chrono::{DateTime, SecondsFormat};
    use proptest::prelude::*;

    use super::*;

    fn written(write: impl FnOnce(&mut Vec<u8>)) -> String {
        let mut out = Vec::new();
        write(&mut out);
        String::from_utf8(out).unwrap()
    }

    proptest! {
        #[test]
        fn a_string_is_written_as_serde_json_reads_it(text: String) {
            let json = written(|out| put_string(&text, out));
            prop_assert_eq!(serde_json::from_str::<String>(&json).unwrap(), text);
        }

        #[test]
        fn whole_numbers_are_written_exactly(signed: i64, unsigned: u64) {
            prop_assert_eq!(written(|out| put_signed(signed, out)), signed.to_string());
            prop_assert_eq!(written(|out| put_unsigned(unsigned, out)), unsigned.to_string());
        }

        #[test]
        fn times_are_written_as_chrono_writes_them(
            seconds in -62_135_596_800_i64..=253_402_300_799,
            nanos in 0..1_000_000_000_u32,
        ) {
            let chrono = DateTime::from_timestamp(seconds, nanos).unwrap();
            let expected = format!("\"{}\"", chrono.to_rfc3339_opts(SecondsFormat::Millis, true));
            let json = written(|out| put_time(seconds, nanos.cast_signed(), out).unwrap());
            prop_assert_eq!(json, expected);
        }
    }

    #[test]
    fn the_edges_of_numbers_and_control_characters_are_right() {
        assert_eq!(written(|out| put_signed(i64::MIN, out)), i64::MIN.to_string());
        assert_eq!(written(|out| put_unsigned(u64::MAX, out)), u64::MAX.to_string());
        for code in 0..=0x7f_u8 {
            let text = char::from(code).to_string();
            let json = written(|out| put_string(&text, out));
            assert_eq!(json, serde_json::to_string(&text).unwrap());
        }
    }

    #[test]
    fn an_escape_is_found_at_every_place_of_a_text() {
        for length in 1..40 {
            for place in 0..length {
                for special in ["\"", "\\", "\u{0}", "\u{1f}", "é", "\u{7f}"] {
                    let mut text = "x".repeat(length);
                    text.replace_range(place..=place, special);
                    assert_eq!(written(|out| put_string(&text, out)), serde_json::to_string(&text).unwrap());
                }
            }
        }
    }

    #[test]
    fn a_time_outside_the_years_1_to_9999_is_refused() {
        for (seconds, nanos) in
            [(-62_135_596_801, 0), (253_402_300_800, 0), (0, -1), (0, 1_000_000_000), (i64::MIN, 0)]
        {
            let mut out = Vec::new();
            assert_eq!(put_time(seconds, nanos, &mut out), None);
            assert!(out.is_empty());
        }
    }
}
