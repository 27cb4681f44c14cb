//! Addresses of web sites: http or https, a host, and no character that breaks a link.

use super::email::is_label;

/// The address without surrounding white space and with its scheme in lower case.
pub fn normalise(text: &str) -> Option<String> {
    let text = text.trim();
    let (scheme, rest) = text.split_once("://")?;
    let scheme = scheme.to_ascii_lowercase();
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (authority, path) = rest.split_at(end);
    let allowed = matches!(scheme.as_str(), "http" | "https") && is_authority(authority) && is_path(path);
    allowed.then(|| format!("{scheme}://{rest}"))
}

/// A host with an optional port. User names are refused, because they disguise the host of a link.
fn is_authority(authority: &str) -> bool {
    let (host, port) = match authority.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((host, port)) => return host.parse::<std::net::Ipv6Addr>().is_ok() && is_port(port),
        None => authority.split_at(authority.find(':').unwrap_or(authority.len())),
    };
    let host = host.strip_suffix('.').unwrap_or(host);
    host.split('.').all(|label| is_label(&label.replace('_', "x"))) && is_port(port)
}

fn is_port(port: &str) -> bool {
    port.is_empty()
        || port.strip_prefix(':').is_some_and(|digits| {
            digits.bytes().all(|b| b.is_ascii_digit()) && digits.parse::<u16>().is_ok_and(|port| port > 0)
        })
}

fn is_path(path: &str) -> bool {
    !path.chars().any(|c| c.is_whitespace() || c.is_control() || "<>\"\\^`{|}".contains(c))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn web_addresses_pass_and_others_do_not() {
        for right in [
            "https://korenbloem.example",
            "http://a.nl/pad?x=1#y",
            "https://bücher.example:8443/",
            "http://[::1]:80/",
            "http://192.0.2.1",
            "http://localhost:8080",
        ] {
            assert_eq!(normalise(right).as_deref(), Some(right), "{right}");
        }
        assert_eq!(normalise(" HTTPS://Korenbloem.nl ").as_deref(), Some("https://Korenbloem.nl"));
        for wrong in [
            "",
            "korenbloem.nl",
            "ftp://a.nl",
            "javascript://a.nl",
            "https://",
            "https:///x",
            "https://a b.nl",
            "https://a.nl/<script>",
            "https://user:pw@a.nl",
            "https://a.nl:",
            "https://a.nl:0",
            "https://a.nl:65536",
            "https://a..nl",
            "http://[::1",
        ] {
            assert_eq!(normalise(wrong), None, "{wrong}");
        }
    }

    proptest! {
        #[test]
        fn a_normal_form_stays_as_it_is(text in "(?i)https?://[a-z.:@/ \\[\\]0-9]{0,20}") {
            if let Some(normal) = normalise(&text) {
                prop_assert_eq!(normalise(&normal), Some(normal));
            }
        }
    }
}
