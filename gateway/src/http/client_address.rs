//! The address of the client that a request comes from, for the limits that are counted by address.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use axum::extract::{ConnectInfo, FromRef, FromRequestParts};
use http::{HeaderMap, HeaderName, header};

use crate::settings::{ForwardedHeader, Settings};

const X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");

/// The proxies in front of the gateway, and the header in which they name their clients.
#[derive(Clone, Copy, Debug)]
pub struct Proxies {
    /// How many there are; each adds an entry.
    count: usize,
    header: ForwardedHeader,
}

impl Proxies {
    pub fn new(settings: &Settings) -> Self {
        Self { count: settings.proxies(), header: settings.forwarded_header }
    }

    /// Whether a proxy is in front of the gateway.
    pub fn is_any(&self) -> bool {
        self.count > 0
    }

    /// The address that the outermost proxy names. Each proxy appends an entry, so that it is `count` entries from the
    /// end; those before it come from the client itself and prove nothing, whatever line they are in. With fewer entries
    /// than proxies, all of them are the proxies'. `None` when the entry is missing or is not an address.
    fn client(&self, headers: &HeaderMap) -> Option<IpAddr> {
        if !self.is_any() {
            return None;
        }
        let name = match self.header {
            ForwardedHeader::XForwardedFor => X_FORWARDED_FOR,
            ForwardedHeader::Forwarded => header::FORWARDED,
        };
        // Several lines are one list (RFC 9110, 5.3). What is not text may still end with what a proxy has added.
        let lines: Vec<_> =
            headers.get_all(name).iter().map(|line| String::from_utf8_lossy(line.as_bytes())).collect();
        let entries = lines.iter().flat_map(|line| match self.header {
            ForwardedHeader::XForwardedFor => line.split(',').collect(),
            ForwardedHeader::Forwarded => split(line, ','),
        });
        let entries: Vec<&str> = entries.map(str::trim).filter(|entry| !entry.is_empty()).collect();
        let entry = entries.get(entries.len().saturating_sub(self.count))?;
        match self.header {
            ForwardedHeader::XForwardedFor => address(entry),
            ForwardedHeader::Forwarded => address(forwarded_for(entry)?),
        }
    }
}

/// The parts between `mark`s that are not within quotation marks. Where a quotation mark is left open, none of them
/// counts: otherwise a client could hide the entry that a proxy appends to its line.
fn split(text: &str, mark: char) -> Vec<&str> {
    let (mut parts, mut begin, mut quoted, mut escaped) = (Vec::new(), 0, false, false);
    for (at, character) in text.char_indices() {
        match character {
            _ if escaped => escaped = false,
            '\\' if quoted => escaped = true,
            '"' => quoted = !quoted,
            _ if character == mark && !quoted => {
                parts.push(&text[begin..at]);
                begin = at + mark.len_utf8();
            }
            _ => {}
        }
    }
    if quoted {
        return text.split(mark).collect();
    }
    parts.push(&text[begin..]);
    parts
}

/// The value of `for` in an element of `Forwarded` (RFC 7239, 4).
fn forwarded_for(element: &str) -> Option<&str> {
    let pairs = split(element, ';').into_iter().filter_map(|pair| pair.split_once('='));
    let mut found = pairs.filter(|(name, _)| name.trim().eq_ignore_ascii_case("for"));
    found.next().map(|(_, value)| value.trim())
}

/// An address, with or without a port, brackets and quotation marks. `unknown` and hidden names (`_proxy`) are not addresses.
fn address(text: &str) -> Option<IpAddr> {
    let text = text.trim().trim_matches('"');
    let bare = match text.strip_prefix('[') {
        Some(rest) => rest.split(']').next()?,
        None => text,
    };
    let with_port = || text.parse::<SocketAddr>().ok().map(|address| address.ip());
    bare.parse().ok().or_else(with_port)
}

/// The address of the client. With neither a proxy's entry nor a connection it is 0.0.0.0, so that limits still count.
pub(super) struct ClientAddress(pub IpAddr);

impl<S> FromRequestParts<S> for ClientAddress
where
    S: Send + Sync,
    Proxies: FromRef<S>,
{
    type Rejection = std::convert::Infallible;

    async fn from_request_parts(
        parts: &mut http::request::Parts,
        state: &S,
    ) -> Result<Self, Self::Rejection> {
        let direct = || parts.extensions.get::<ConnectInfo<SocketAddr>>().map(|info| info.0.ip());
        let client = Proxies::from_ref(state).client(&parts.headers).or_else(direct);
        Ok(Self(client.unwrap_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn client(count: usize, header: ForwardedHeader, lines: &[(HeaderName, &str)]) -> Option<String> {
        let mut headers = HeaderMap::new();
        for (name, value) in lines {
            headers.append(name.clone(), http::HeaderValue::from_bytes(value.as_bytes()).unwrap());
        }
        Proxies { count, header }.client(&headers).map(|address| address.to_string())
    }

    fn x(count: usize, lines: &[&str]) -> Option<String> {
        let lines: Vec<_> = lines.iter().map(|line| (X_FORWARDED_FOR, *line)).collect();
        client(count, ForwardedHeader::XForwardedFor, &lines)
    }

    fn forwarded(count: usize, lines: &[&str]) -> Option<String> {
        let lines: Vec<_> = lines.iter().map(|line| (header::FORWARDED, *line)).collect();
        client(count, ForwardedHeader::Forwarded, &lines)
    }

    #[test]
    fn a_client_cannot_choose_its_address() {
        let is = |address: &str| Some(address.to_owned());
        assert_eq!(x(0, &["192.0.2.1"]), None);
        assert_eq!(x(1, &["192.0.2.1"]), is("192.0.2.1"));
        assert_eq!(x(1, &["198.51.100.9, 192.0.2.1"]), is("192.0.2.1"));
        assert_eq!(x(1, &["198.51.100.9", "192.0.2.1"]), is("192.0.2.1"), "the proxy adds a line");
        assert_eq!(x(1, &["\"198.51.100.9", "192.0.2.1"]), is("192.0.2.1"), "an open quotation mark");
        assert_eq!(x(1, &["é, 192.0.2.1"]), is("192.0.2.1"), "what is not ASCII");
        assert_eq!(x(2, &["198.51.100.9, 192.0.2.1", "10.0.0.1"]), is("192.0.2.1"));
        assert_eq!(x(2, &["198.51.100.9,", "192.0.2.1", ", 10.0.0.1,"]), is("192.0.2.1"));
        assert_eq!(x(3, &["192.0.2.1, 10.0.0.1"]), is("192.0.2.1"), "past one of the proxies");
        assert_eq!(x(1, &["192.0.2.1, unknown"]), None);
        assert_eq!(x(1, &[]), None);
    }

    #[test]
    fn addresses_come_in_several_forms() {
        for (text, address) in [
            ("192.0.2.1:4711", "192.0.2.1"),
            ("2001:db8::1", "2001:db8::1"),
            ("[2001:db8::1]", "2001:db8::1"),
            ("[2001:db8::1]:4711", "2001:db8::1"),
        ] {
            assert_eq!(x(1, &[text]).as_deref(), Some(address), "{text}");
            assert_eq!(forwarded(1, &[&format!("for=\"{text}\"")]).as_deref(), Some(address), "{text}");
        }
    }

    #[test]
    fn the_standard_header_is_read_where_it_is_named_and_no_other() {
        let is = |address: &str| Some(address.to_owned());
        assert_eq!(forwarded(1, &["for=192.0.2.1;proto=https;by=203.0.113.43"]), is("192.0.2.1"));
        assert_eq!(forwarded(1, &["For=\"[2001:db8:cafe::17]:4711\""]), is("2001:db8:cafe::17"));
        assert_eq!(forwarded(1, &["for=198.51.100.9, proto=http; for=192.0.2.1"]), is("192.0.2.1"));
        assert_eq!(forwarded(1, &["for=198.51.100.9", "for=192.0.2.1"]), is("192.0.2.1"));
        assert_eq!(forwarded(2, &["for=\"_a,_b\";host=x, for=10.0.0.1"]), None, "a hidden name");
        for unknown in ["for=unknown", "for=_hidden", "by=192.0.2.1", "192.0.2.1", ""] {
            assert_eq!(forwarded(1, &[unknown]), None, "{unknown}");
        }
        let both = [(header::FORWARDED, "for=192.0.2.1"), (X_FORWARDED_FOR, "198.51.100.9")];
        assert_eq!(client(1, ForwardedHeader::Forwarded, &both), is("192.0.2.1"));
        assert_eq!(client(1, ForwardedHeader::XForwardedFor, &both), is("198.51.100.9"));
    }

    proptest! {
        #[test]
        fn whatever_a_client_sends_the_line_of_the_proxy_counts(own in "[ -~]{0,40}") {
            prop_assert_eq!(x(1, &[&own, "192.0.2.1"]), Some("192.0.2.1".to_owned()));
            prop_assert_eq!(forwarded(1, &[&own, "for=192.0.2.1"]), Some("192.0.2.1".to_owned()));
            prop_assert_eq!(x(1, &[&format!("{own}, 192.0.2.1")]), Some("192.0.2.1".to_owned()));
            let line = format!("{own}, for=\"192.0.2.1:80\"");
            prop_assert_eq!(forwarded(1, &[&line]), Some("192.0.2.1".to_owned()));
        }
    }
}
