//! Requests to addresses that an account chose. The one place that speaks HTTP to the outside: no private network is
//! reached (the address that is dialled is the one that was checked), no redirect is followed, nothing takes longer or
//! is larger than allowed, and everything is signed.

mod guard;
mod sign;

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use chassis_base::error::chain;
use chrono::{DateTime, Utc};
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::header::{CONTENT_TYPE, HeaderName, HeaderValue};
use reqwest::{Client, Method, Response, Url, redirect};

use crate::pump;

pub(crate) use sign::Secret;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Bytes of an answer that are read.
const MAX_ANSWER: usize = 64 * 1024;

/// A client for addresses outside.
#[derive(Clone)]
pub(crate) struct Outside {
    /// Why there is none, where TLS cannot be set up, for example without any root certificate: everything else works.
    client: Result<Client, Arc<str>>,
    /// Also addresses of private networks: for development and tests.
    private: bool,
}

/// A request as it goes out.
pub(crate) struct Outgoing {
    pub method: String,
    pub url: String,
    pub headers: Vec<(String, String)>,
    /// JSON.
    pub body: String,
    /// The receiver knows by it what it has had before.
    pub id: String,
    /// The current secret, and the one before it while that signs along.
    pub secrets: Vec<Secret>,
    pub timeout: Duration,
}

pub(crate) struct Answer {
    pub status: u16,
    pub body: String,
}

impl Answer {
    pub fn is_success(&self) -> bool {
        (200..300).contains(&self.status)
    }
}

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Trouble {
    /// It was not sent and will not be.
    Refused(String),
    /// It was not sent this time.
    Unreachable(String),
    /// It may have been received.
    Broken(String),
}

impl Trouble {
    pub fn into_text(self) -> String {
        match self {
            Self::Refused(text) | Self::Unreachable(text) | Self::Broken(text) => text,
        }
    }
}

impl Outside {
    pub fn new(private: bool) -> Self {
        // The program's only TLS library is told which cryptography to use. An error means that it was told before.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let client = Client::builder()
            .connect_timeout(CONNECT_TIMEOUT)
            .redirect(redirect::Policy::none())
            // A proxy would dial for us, past the check.
            .no_proxy()
            .dns_resolver(Arc::new(Public { private }))
            .user_agent(concat!("admin-automation/", env!("CARGO_PKG_VERSION")))
            .build()
            .map_err(|error| Arc::from(format!("no client for requests can be made: {}", chain(&error))))
            .inspect_err(|why: &Arc<str>| tracing::error!(why = &**why, "nothing outside can be reached"));
        Self { client, private }
    }

    pub async fn send(&self, outgoing: &Outgoing, now: DateTime<Utc>) -> Result<Answer, Trouble> {
        let url = address(&outgoing.url).map_err(|why| Trouble::Refused(format!("the address {why}")))?;
        // A name is checked when it is looked up, an address never is.
        if let Some(ip) = literal(&url)
            && !self.private
            && !guard::is_public(ip)
        {
            return Err(Trouble::Refused("the address is in a private network".to_owned()));
        }
        let method = Method::from_bytes(outgoing.method.as_bytes())
            .map_err(|_| Trouble::Refused(format!("{} is no method", outgoing.method)))?;
        let client = self.client.as_ref().map_err(|why| Trouble::Unreachable(why.to_string()))?;
        let mut request = client.request(method, url).timeout(outgoing.timeout);
        for (name, value) in sign::headers(&outgoing.id, &outgoing.body, &outgoing.secrets, now) {
            request = request.header(name, value);
        }
        for (name, value) in &outgoing.headers {
            let name = HeaderName::from_bytes(name.as_bytes());
            let value = HeaderValue::from_str(value);
            let (Ok(name), Ok(value)) = (name, value) else {
                return Err(Trouble::Refused("a header has characters that it cannot have".to_owned()));
            };
            request = request.header(name, value);
        }
        request = request.header(CONTENT_TYPE, "application/json").body(outgoing.body.clone());
        pump::outside(async move {
            let mut answer = request.send().await.map_err(trouble)?;
            let status = answer.status().as_u16();
            let body = content(&mut answer).await?;
            Ok(Answer { status, body })
        })
        .await
    }
}

/// As much of an answer as is of use. The rest is not even read.
async fn content(answer: &mut Response) -> Result<String, Trouble> {
    let mut content = Vec::new();
    while let Some(piece) = answer.chunk().await.map_err(trouble)? {
        let room = MAX_ANSWER - content.len();
        content.extend_from_slice(&piece[..piece.len().min(room)]);
        if content.len() >= MAX_ANSWER {
            break;
        }
    }
    Ok(String::from_utf8_lossy(&content).replace('\0', ""))
}

fn trouble(error: reqwest::Error) -> Trouble {
    let error = error.without_url();
    let text = chain(&error);
    if text.contains(PRIVATE) {
        return Trouble::Refused("the address is in a private network".to_owned());
    }
    if error.is_builder() {
        Trouble::Refused(text)
    } else if error.is_connect() {
        Trouble::Unreachable(text)
    } else if error.is_timeout() {
        Trouble::Broken("no answer in time".to_owned())
    } else {
        Trouble::Broken(text)
    }
}

/// An address that requests can go to, as far as its text tells. The error continues a sentence.
pub(crate) fn address(text: &str) -> Result<Url, String> {
    let url: Url =
        text.trim().parse().map_err(|_| "must be a web address such as https://example.com/path")?;
    if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none_or(str::is_empty) {
        return Err("must begin with https:// or http:// and name a host".to_owned());
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err("must not have a user name or a password in it".to_owned());
    }
    Ok(url)
}

/// Whether the address itself says that it is in a private network.
pub(crate) fn is_private(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default().trim_end_matches('.');
    host.eq_ignore_ascii_case("localhost")
        || host.to_ascii_lowercase().ends_with(".localhost")
        || literal(url).is_some_and(|ip| !guard::is_public(ip))
}

fn literal(url: &Url) -> Option<IpAddr> {
    url.host_str()?.trim_matches(['[', ']']).parse().ok()
}

/// Looks names up and hands on only addresses that may be dialled; these are the ones that are.
struct Public {
    private: bool,
}

type Fault = Box<dyn std::error::Error + Send + Sync>;

const PRIVATE: &str = "every address of this name is in a private network";

impl Resolve for Public {
    fn resolve(&self, name: Name) -> Resolving {
        let private = self.private;
        Box::pin(async move {
            let found = tokio::net::lookup_host((name.as_str(), 0)).await?;
            let allowed: Vec<SocketAddr> =
                found.filter(|address| private || guard::is_public(address.ip())).collect();
            if allowed.is_empty() {
                return Err(Fault::from(PRIVATE));
            }
            Ok::<Addrs, Fault>(Box::new(allowed.into_iter()))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_plain_web_addresses_are_taken() {
        assert!(
            address("https://example.com/a?b=c").is_ok() && address(" http://93.184.216.34:8080 ").is_ok()
        );
        for wrong in [
            "",
            "example.com",
            "ftp://example.com",
            "https://u:p@example.com",
            "file:///etc/passwd",
            "https://",
        ] {
            assert!(address(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn other_spellings_of_private_addresses_are_known() {
        for private in [
            "http://127.0.0.1",
            "http://0x7f.1",
            "http://2130706433",
            "http://[::1]",
            "http://[::ffff:10.0.0.1]",
            "http://localhost:80",
            "http://a.localhost.",
            "http://169.254.169.254/latest",
        ] {
            assert!(is_private(&address(private).unwrap()), "{private}");
        }
        assert!(!is_private(&address("https://example.com").unwrap()));
    }

    fn outgoing(url: &str) -> Outgoing {
        Outgoing {
            method: "POST".into(),
            url: url.into(),
            headers: Vec::new(),
            body: "{}".into(),
            id: "x".into(),
            secrets: vec![Secret::random()],
            timeout: Duration::from_secs(5),
        }
    }

    #[tokio::test]
    async fn private_networks_are_not_reached_by_address_nor_by_name() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let outside = Outside::new(false);
        for host in ["127.0.0.1", "localhost", "[::ffff:127.0.0.1]"] {
            let sent =
                outside.send(&outgoing(&format!("http://{host}:{port}/")), chassis_testing::moment()).await;
            assert!(matches!(sent, Err(Trouble::Refused(_))), "{host}");
        }
    }
}
