//! `Prefer: handling=strict` (RFC 7240): a request with a name that its operation does not know is refused, and not only told
//! of it. A strict key asks for that with every request.

use chassis_transcode::Handling;
use http::{HeaderMap, HeaderName, HeaderValue};

use super::admission::Admitted;

const PREFER: HeaderName = HeaderName::from_static("prefer");
const APPLIED: HeaderName = HeaderName::from_static("preference-applied");
const HANDLING: &str = "handling";
const STRICT: &str = "strict";

/// What becomes of unknown names. Requests without a key come from people's browsers and from providers, whose addresses and
/// forms have names of their own.
pub(super) fn handling(admitted: &Admitted, headers: &HeaderMap) -> Handling {
    match admitted {
        Admitted::Public => Handling::Unchecked,
        Admitted::Key(caller) if caller.strict || asks_for_strict(headers) => Handling::Strict,
        Admitted::Key(_) => Handling::Lenient,
    }
}

/// What an answer says of the preference, if it was there and is honoured.
pub(super) fn applied(admitted: &Admitted, headers: &HeaderMap) -> Option<(HeaderName, HeaderValue)> {
    let is_honoured = matches!(admitted, Admitted::Key(_)) && asks_for_strict(headers);
    is_honoured.then(|| (APPLIED, HeaderValue::from_static("handling=strict")))
}

/// Of several that contradict each other the first counts.
fn asks_for_strict(headers: &HeaderMap) -> bool {
    let lines = headers.get_all(PREFER).iter().filter_map(|line| line.to_str().ok());
    let preferences = lines.flat_map(|line| line.split(',')).filter_map(|preference| {
        // What follows a semicolon are parameters, of which this preference has none.
        let (name, value) = preference.split(';').next()?.split_once('=')?;
        Some((name.trim(), value.trim().trim_matches('"')))
    });
    let mut handling = preferences.filter(|(name, _)| name.eq_ignore_ascii_case(HANDLING));
    handling.next().is_some_and(|(_, value)| value.eq_ignore_ascii_case(STRICT))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_preference_is_found_among_others() {
        let asks = |lines: &[&'static str]| {
            let mut headers = HeaderMap::new();
            for line in lines {
                headers.append(PREFER, HeaderValue::from_static(line));
            }
            asks_for_strict(&headers)
        };
        for strict in [
            &["handling=strict"][..],
            &["respond-async, Handling = \"strict\"; x=1, wait=100"],
            &["return=minimal", "handling=STRICT"],
            &["handling=strict, handling=lenient"],
        ] {
            assert!(asks(strict), "{strict:?}");
        }
        for other in [
            &[][..],
            &["handling=lenient"],
            &["handling"],
            &["handling=lenient, handling=strict"],
            &["x-handling=strict"],
            &["return=minimal; handling=strict"],
            &["handling=stricter"],
        ] {
            assert!(!asks(other), "{other:?}");
        }
    }
}
