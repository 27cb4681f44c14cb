//! A client of the API that exposes what tests check: status, headers, exact bytes.

use std::net::SocketAddr;

use bytes::Bytes;
use http::{HeaderMap, Method, Request, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};

use super::documented;

#[derive(Clone)]
pub struct Api {
    address: SocketAddr,
    key: String,
    client: Client<HttpConnector, Full<Bytes>>,
}

/// An answer as it was received.
#[derive(Clone, Debug)]
pub struct Answer {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub body: Bytes,
}

impl Answer {
    /// The body as JSON; `null` when it is not JSON.
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }

    /// A value of the body by its JSON Pointer; `null` when it is absent.
    pub fn at(&self, pointer: &str) -> Value {
        self.json().pointer(pointer).cloned().unwrap_or_default()
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    /// The faults of a problem: location and code, in their order.
    pub fn faults(&self) -> Vec<(String, String)> {
        let location = |entry: &Value| {
            let named = ["pointer", "parameter", "header"].into_iter().find_map(|name| entry[name].as_str());
            named.unwrap_or("nowhere").to_owned()
        };
        let entries = self.at("/errors");
        let entries = entries.as_array().map(Vec::as_slice).unwrap_or_default();
        entries
            .iter()
            .map(|entry| (location(entry), entry["code"].as_str().unwrap_or_default().to_owned()))
            .collect()
    }

    /// Fails, and shows the body, unless the status is this one.
    #[track_caller]
    #[expect(clippy::return_self_not_must_use, reason = "often the status is all that a test asks for")]
    pub fn expect(self, status: u16) -> Self {
        assert_eq!(self.status.as_u16(), status, "{}", String::from_utf8_lossy(&self.body));
        self
    }
}

impl Api {
    pub fn new(address: SocketAddr, key: &str) -> Self {
        Self { address, key: key.to_owned(), client: Client::builder(TokioExecutor::new()).build_http() }
    }

    pub fn key(&self) -> &str {
        &self.key
    }

    pub async fn get(&self, path: &str) -> Answer {
        self.send(Method::GET, path, &[], Bytes::new()).await
    }

    /// Begins a GET whose body the test reads by itself.
    pub async fn begin(&self, path: &str) -> (StatusCode, Incoming) {
        let uri = format!("http://{}{path}", self.address);
        let request = Request::get(uri).header("authorization", format!("Bearer {}", self.key));
        let request = request.body(Full::new(Bytes::new())).expect("a request");
        let answer = self.client.request(request).await.expect("the gateway answers");
        (answer.status(), answer.into_body())
    }

    /// Begins to read an answer and goes no further: as little of it as possible is on its way. The caller leaves when the
    /// connection is dropped.
    pub async fn begin_unread(&self, path: &str) -> TcpStream {
        let socket = TcpSocket::new_v4().expect("a socket");
        socket.set_recv_buffer_size(4096).expect("a small buffer");
        let mut connection = socket.connect(self.address).await.expect("the gateway listens");
        let key = &self.key;
        let request = format!("GET {path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {key}\r\n\r\n");
        connection.write_all(request.as_bytes()).await.expect("the gateway takes requests");
        let mut status = [0; 12];
        connection.read_exact(&mut status).await.expect("the gateway answers");
        assert_eq!(str::from_utf8(&status), Ok("HTTP/1.1 200"));
        connection
    }

    pub async fn post(&self, path: &str, body: Value) -> Answer {
        self.send(Method::POST, path, &[("content-type", "application/json")], body.to_string()).await
    }

    pub async fn post_keyed(&self, path: &str, idempotency_key: &str, body: Value) -> Answer {
        let headers = [("content-type", "application/json"), ("idempotency-key", idempotency_key)];
        self.send(Method::POST, path, &headers, body.to_string()).await
    }

    pub async fn patch(&self, path: &str, body: Value) -> Answer {
        self.send(Method::PATCH, path, &[("content-type", "application/json")], body.to_string()).await
    }

    pub async fn send(
        &self,
        method: Method,
        path: &str,
        headers: &[(&str, &str)],
        body: impl Into<Bytes>,
    ) -> Answer {
        self.try_send(method, path, headers, body).await.expect("the gateway answers")
    }

    /// `Err` when the connection broke.
    pub async fn try_send(
        &self,
        method: Method,
        path: &str,
        headers: &[(&str, &str)],
        body: impl Into<Bytes>,
    ) -> Result<Answer, String> {
        let uri = format!("http://{}{path}", self.address);
        let mut request = Request::builder().method(&method).uri(uri);
        if !self.key.is_empty() {
            request = request.header("authorization", format!("Bearer {}", self.key));
        }
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(Full::new(body.into())).map_err(|error| error.to_string())?;
        let (parts, body) =
            self.client.request(request).await.map_err(|error| error.to_string())?.into_parts();
        let body = body.collect().await.map_err(|error| error.to_string())?.to_bytes();
        let answer = Answer { status: parts.status, headers: parts.headers, body };
        documented::check(&method, path, &answer);
        Ok(answer)
    }
}
