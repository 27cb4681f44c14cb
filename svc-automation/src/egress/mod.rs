//! HTTP requests to addresses that an account chose. The only place that sends them: no private network is reached (the
//! address that is dialled is the one that was checked), no redirect is followed, time and size are bounded, and every
//! request is signed.

mod address;
mod signature;

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use chassis_base::error::chain;
use chrono::{DateTime, Utc};
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::header::{CONTENT_TYPE, HeaderName, HeaderValue};
use reqwest::{Client, Method, Response, Url, redirect};

use crate::dispatcher::await_external;

pub(crate) use signature::Secret;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Bytes of a response body that are read.
const MAX_BODY: usize = 64 * 1024;
const PRIVATE_ADDRESS: &str = "the address is in a private network";

/// The client for requests to external addresses.
#[derive(Clone)]
pub(crate) struct Egress {
    /// An error where TLS cannot be set up, for example because there is no root certificate. The service still starts:
    /// everything else works.
    client: Result<Client, Arc<str>>,
    /// Whether private networks may be reached: for development and tests.
    allow_private: bool,
}

pub(crate) struct OutgoingRequest {
    pub method: String,
    pub url: String,
    pub headers: Vec<(String, String)>,
    /// JSON.
    pub body: String,
    /// Sent as `webhook-id`: the receiver recognises repeats by it.
    pub id: String,
    /// The current secret, and the previous one during its overlap.
    pub secrets: Vec<Secret>,
    pub timeout: Duration,
}

pub(crate) struct HttpResponse {
    pub status: u16,
    pub body: String,
}

impl HttpResponse {
    pub(crate) fn is_success(&self) -> bool {
        (200..300).contains(&self.status)
    }
}

/// Why there is no response. The kinds differ in what is known about the receiver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum SendError {
    /// The request was not sent and never will be.
    Refused(String),
    /// The request was not sent; a later attempt may succeed.
    Unreachable(String),
    /// The request may have been received.
    Interrupted(String),
}

impl SendError {
    pub(crate) fn into_text(self) -> String {
        match self {
            Self::Refused(text) | Self::Unreachable(text) | Self::Interrupted(text) => text,
        }
    }
}

impl Egress {
    pub(crate) fn new(allow_private: bool) -> Self {
        // reqwest is built without a cryptography provider of its own. An error means that one was installed before.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let client = Client::builder()
            .connect_timeout(CONNECT_TIMEOUT)
            .redirect(redirect::Policy::none())
            // A proxy would resolve and dial by itself, past the check of the address.
            .no_proxy()
            .dns_resolver(Arc::new(PublicResolver { allow_private }))
            .user_agent(concat!("admin-automation/", env!("CARGO_PKG_VERSION")))
            .build()
            .map_err(|error| Arc::from(format!("no HTTP client can be made: {}", chain(&error))))
            .inspect_err(|why: &Arc<str>| tracing::error!(why = &**why, "external requests are disabled"));
        Self { client, allow_private }
    }

    pub(crate) async fn send(
        &self,
        outgoing: &OutgoingRequest,
        now: DateTime<Utc>,
    ) -> Result<HttpResponse, SendError> {
        let url = parse_url(&outgoing.url).map_err(|why| SendError::Refused(format!("the address {why}")))?;
        // The resolver checks names only; an IP address in the URL never comes to it.
        if let Some(ip) = literal_ip(&url)
            && !self.allow_private
            && !address::is_public(ip)
        {
            return Err(SendError::Refused(PRIVATE_ADDRESS.to_owned()));
        }
        let method = Method::from_bytes(outgoing.method.as_bytes())
            .map_err(|_| SendError::Refused(format!("{} is not an HTTP method", outgoing.method)))?;
        let client = self.client.as_ref().map_err(|why| SendError::Unreachable(why.to_string()))?;
        let mut request = client.request(method, url).timeout(outgoing.timeout);
        for (name, value) in signature::headers(&outgoing.id, &outgoing.body, &outgoing.secrets, now) {
            request = request.header(name, value);
        }
        for (name, value) in &outgoing.headers {
            let name = HeaderName::from_bytes(name.as_bytes());
            let value = HeaderValue::from_str(value);
            let (Ok(name), Ok(value)) = (name, value) else {
                return Err(SendError::Refused("a header has characters that it cannot have".to_owned()));
            };
            request = request.header(name, value);
        }
        request = request.header(CONTENT_TYPE, "application/json").body(outgoing.body.clone());
        await_external(async move {
            let mut response = request.send().await.map_err(send_error)?;
            let status = response.status().as_u16();
            let body = read_body(&mut response).await?;
            Ok(HttpResponse { status, body })
        })
        .await
    }
}

/// The first [`MAX_BODY`] bytes; the rest is not read, so that a receiver cannot fill our memory.
async fn read_body(response: &mut Response) -> Result<String, SendError> {
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(send_error)? {
        let room = MAX_BODY - body.len();
        body.extend_from_slice(&chunk[..chunk.len().min(room)]);
        if body.len() >= MAX_BODY {
            break;
        }
    }
    // Postgres cannot store NUL in a text.
    Ok(String::from_utf8_lossy(&body).replace('\0', ""))
}

fn send_error(error: reqwest::Error) -> SendError {
    let error = error.without_url();
    let text = chain(&error);
    if text.contains(ONLY_PRIVATE) {
        return SendError::Refused(PRIVATE_ADDRESS.to_owned());
    }
    if error.is_builder() {
        SendError::Refused(text)
    } else if error.is_connect() {
        SendError::Unreachable(text)
    } else if error.is_timeout() {
        SendError::Interrupted("no response in time".to_owned())
    } else {
        SendError::Interrupted(text)
    }
}

/// Parses the address of a request, and checks what its text alone can tell. The error continues a sentence.
pub(crate) fn parse_url(text: &str) -> Result<Url, String> {
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

/// Whether the text of the address already names a private network.
pub(crate) fn is_private(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default().trim_end_matches('.');
    host.eq_ignore_ascii_case("localhost")
        || host.to_ascii_lowercase().ends_with(".localhost")
        || literal_ip(url).is_some_and(|ip| !address::is_public(ip))
}

fn literal_ip(url: &Url) -> Option<IpAddr> {
    url.host_str()?.trim_matches(['[', ']']).parse().ok()
}

/// Resolves names to the addresses that may be dialled. The client dials exactly these, so a name cannot resolve to a
/// public address for the check and to a private one for the connection.
struct PublicResolver {
    allow_private: bool,
}

type ResolveError = Box<dyn std::error::Error + Send + Sync>;

const ONLY_PRIVATE: &str = "every address of this name is in a private network";

impl Resolve for PublicResolver {
    fn resolve(&self, name: Name) -> Resolving {
        let allow_private = self.allow_private;
        Box::pin(async move {
            let found = tokio::net::lookup_host((name.as_str(), 0)).await?;
            let allowed: Vec<SocketAddr> =
                found.filter(|found| allow_private || address::is_public(found.ip())).collect();
            if allowed.is_empty() {
                return Err(ResolveError::from(ONLY_PRIVATE));
            }
            Ok::<Addrs, ResolveError>(Box::new(allowed.into_iter()))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_plain_web_addresses_are_accepted() {
        assert!(
            parse_url("https://example.com/a?b=c").is_ok()
                && parse_url(" http://93.184.216.34:8080 ").is_ok()
        );
        for wrong in [
            "",
            "example.com",
            "ftp://example.com",
            "https://u:p@example.com",
            "file:///etc/passwd",
            "https://",
        ] {
            assert!(parse_url(wrong).is_err(), "{wrong}");
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
            assert!(is_private(&parse_url(private).unwrap()), "{private}");
        }
        assert!(!is_private(&parse_url("https://example.com").unwrap()));
    }

    fn request(url: &str) -> OutgoingRequest {
        OutgoingRequest {
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
        let egress = Egress::new(false);
        for host in ["127.0.0.1", "localhost", "[::ffff:127.0.0.1]"] {
            let sent =
                egress.send(&request(&format!("http://{host}:{port}/")), chassis_testing::moment()).await;
            assert!(matches!(sent, Err(SendError::Refused(_))), "{host}");
        }
    }
}
