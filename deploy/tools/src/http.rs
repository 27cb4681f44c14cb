//! A keep-alive HTTP/1.1 client for one plain-text address, made to cost as little CPU as it can.
//!
//! It owns the reading and writing of messages and nothing else: no redirects, no TLS, no pool. The load program
//! shares the machine with what it measures, so a request is one write of bytes rendered beforehand, and a response is
//! parsed in place. Not for addresses outside the own machine.

use std::io;
use std::ops::Range;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// No header block of ours comes near this; a longer one is not HTTP.
pub(crate) const MAX_HEAD_BYTES: usize = 64 * 1024;

/// The host and port of `http://host:port[/]`.
pub fn authority(base_url: &str) -> Result<&str, String> {
    let rest =
        base_url.strip_prefix("http://").ok_or_else(|| format!("{base_url} does not begin with http://"))?;
    let authority = rest.trim_end_matches('/');
    if authority.is_empty() || authority.contains('/') {
        return Err(format!("{base_url} is not of the form http://host:port"));
    }
    Ok(authority)
}

/// A request, to be rendered once and sent as often as wanted.
#[derive(Clone, Copy, Debug, Default)]
pub struct Request<'a> {
    pub method: &'a str,
    /// Path and query, percent-encoded.
    pub target: &'a str,
    /// The API key, sent as a bearer token.
    pub key: Option<&'a str>,
    pub idempotency_key: Option<&'a str>,
    /// A JSON body.
    pub body: Option<&'a str>,
}

impl Request<'_> {
    /// Appends the message to `out`, so that a caller can use one buffer for ever.
    pub fn render(&self, authority: &str, out: &mut Vec<u8>) {
        let mut line = |parts: &[&str]| {
            for part in parts {
                out.extend_from_slice(part.as_bytes());
            }
            out.extend_from_slice(b"\r\n");
        };
        line(&[self.method, " ", self.target, " HTTP/1.1"]);
        line(&["host: ", authority]);
        if let Some(key) = self.key {
            line(&["authorization: Bearer ", key]);
        }
        if let Some(key) = self.idempotency_key {
            line(&["idempotency-key: ", key]);
        }
        if let Some(body) = self.body {
            line(&["content-type: application/json"]);
            line(&["content-length: ", &body.len().to_string()]);
        }
        line(&[]);
        out.extend_from_slice(self.body.unwrap_or_default().as_bytes());
    }
}

/// What came back. The body is valid until the next request on the connection.
#[derive(Debug)]
pub struct Response<'a> {
    pub status: u16,
    pub body: &'a [u8],
    /// `X-Idempotent-Replay: true` was there: the effect is an earlier request's.
    pub replayed: bool,
}

impl Response<'_> {
    pub fn text(&self) -> String {
        String::from_utf8_lossy(self.body).into_owned()
    }
}

/// One connection; one request at a time.
#[derive(Debug)]
pub struct Connection {
    stream: TcpStream,
    buffer: Vec<u8>,
    /// The body when it came in chunks and had to be put together.
    joined: Vec<u8>,
}

impl Connection {
    pub async fn open(authority: &str) -> io::Result<Self> {
        let stream = TcpStream::connect(authority).await?;
        stream.set_nodelay(true)?;
        Ok(Self { stream, buffer: Vec::with_capacity(64 * 1024), joined: Vec::new() })
    }

    /// Sends a rendered request and reads its response. After an error the connection is of no more use.
    pub async fn send(&mut self, request: &[u8]) -> io::Result<Response<'_>> {
        self.stream.write_all(request).await?;
        self.buffer.clear();
        let head = loop {
            if let Some(end) = find(&self.buffer, b"\r\n\r\n", 0) {
                break Head::parse(&self.buffer, end + 4)?;
            }
            if self.buffer.len() > MAX_HEAD_BYTES {
                return Err(broken("the response's head has no end"));
            }
            self.read_more().await?;
        };
        let body = match head.framing {
            Framing::None => &self.buffer[head.end..head.end],
            Framing::Length(length) => {
                while self.buffer.len() < head.end + length {
                    self.read_more().await?;
                }
                &self.buffer[head.end..head.end + length]
            }
            Framing::Chunked => {
                self.join_chunks(head.end).await?;
                &self.joined
            }
        };
        Ok(Response { status: head.status, body, replayed: head.replayed })
    }

    async fn read_more(&mut self) -> io::Result<()> {
        if self.stream.read_buf(&mut self.buffer).await? == 0 {
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the server closed the connection"));
        }
        Ok(())
    }

    async fn join_chunks(&mut self, mut at: usize) -> io::Result<()> {
        self.joined.clear();
        loop {
            let line = self.line_at(at).await?;
            let after_line = line.end + 2;
            let size = chunk_size(&self.buffer[line])?;
            if size == 0 {
                return self.skip_trailers(after_line).await;
            }
            let end = after_line + size;
            while self.buffer.len() < end + 2 {
                self.read_more().await?;
            }
            self.joined.extend_from_slice(&self.buffer[after_line..end]);
            at = end + 2;
        }
    }

    async fn skip_trailers(&mut self, mut at: usize) -> io::Result<()> {
        loop {
            let line = self.line_at(at).await?;
            if line.is_empty() {
                return Ok(());
            }
            at = line.end + 2;
        }
    }

    /// Where the line that begins at `at` is, without its line end; reads on until it is complete.
    async fn line_at(&mut self, at: usize) -> io::Result<Range<usize>> {
        loop {
            if let Some(end) = find(&self.buffer, b"\r\n", at) {
                return Ok(at..end);
            }
            self.read_more().await?;
        }
    }
}

#[derive(Debug, PartialEq)]
enum Framing {
    None,
    Length(usize),
    Chunked,
}

/// What the head says about reading on.
#[derive(Debug)]
struct Head {
    status: u16,
    framing: Framing,
    replayed: bool,
    /// Where the body begins.
    end: usize,
}

impl Head {
    fn parse(buffer: &[u8], end: usize) -> io::Result<Self> {
        let text =
            std::str::from_utf8(&buffer[..end]).map_err(|_| broken("the response's head is not text"))?;
        let mut lines = text.split("\r\n");
        let status = lines
            .next()
            .and_then(|line| line.strip_prefix("HTTP/1.1 "))
            .and_then(|rest| rest.get(..3))
            .and_then(|code| code.parse().ok())
            .ok_or_else(|| broken("the answer is not HTTP/1.1"))?;
        let mut head = Self { status, framing: Framing::None, replayed: false, end };
        for line in lines {
            let Some((name, value)) = line.split_once(':') else { continue };
            let value = value.trim();
            if name.eq_ignore_ascii_case("content-length") {
                head.framing =
                    Framing::Length(value.parse().map_err(|_| broken("content-length is not a number"))?);
            } else if name.eq_ignore_ascii_case("transfer-encoding") && value.eq_ignore_ascii_case("chunked")
            {
                head.framing = Framing::Chunked;
            } else if name.eq_ignore_ascii_case("x-idempotent-replay") {
                head.replayed = value == "true";
            }
        }
        if status == 204 || status == 304 {
            head.framing = Framing::None;
        }
        Ok(head)
    }
}

fn chunk_size(line: &[u8]) -> io::Result<usize> {
    std::str::from_utf8(line)
        .ok()
        .and_then(|line| usize::from_str_radix(line.split(';').next().unwrap_or_default().trim(), 16).ok())
        .ok_or_else(|| broken("a chunk has no size"))
}

pub(crate) fn find(haystack: &[u8], needle: &[u8], from: usize) -> Option<usize> {
    haystack.get(from..)?.windows(needle.len()).position(|window| window == needle).map(|at| at + from)
}

pub(crate) fn broken(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::net::TcpListener;

    /// Answers each connection's requests with the given pieces, one write each.
    async fn serve(pieces: Vec<&'static str>) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut request = vec![0; 4096];
            while stream.read(&mut request).await.unwrap_or(0) > 0 {
                for piece in &pieces {
                    stream.write_all(piece.as_bytes()).await.unwrap();
                    stream.flush().await.unwrap();
                    tokio::task::yield_now().await;
                }
            }
        });
        address
    }

    async fn get(pieces: Vec<&'static str>) -> io::Result<(u16, String, bool)> {
        let address = serve(pieces).await;
        let mut connection = Connection::open(&address).await.unwrap();
        let mut message = Vec::new();
        Request { method: "GET", target: "/", ..Request::default() }.render(&address, &mut message);
        connection.send(&message).await?;
        let second = connection.send(&message).await?;
        Ok((second.status, second.text(), second.replayed))
    }

    #[tokio::test]
    async fn a_connection_is_used_again_for_the_next_request() {
        let answer = get(vec!["HTTP/1.1 200 OK\r\nContent-Len", "gth: 5\r\n\r\nhe", "llo"]).await.unwrap();
        assert_eq!(answer, (200, "hello".to_owned(), false));
    }

    #[tokio::test]
    async fn chunks_are_joined_and_trailers_skipped() {
        let head = "HTTP/1.1 201 Created\r\nx-idempotent-replay: true\r\ntransfer-encoding: chunked\r\n\r\n";
        let answer =
            get(vec![head, "3\r\nhel\r\n", "2;x=y\r\nlo\r", "\n0\r\nexpires: never\r\n\r\n"]).await.unwrap();
        assert_eq!(answer, (201, "hello".to_owned(), true));
    }

    #[tokio::test]
    async fn an_answer_without_content_has_an_empty_body() {
        assert_eq!(get(vec!["HTTP/1.1 204 No Content\r\n\r\n"]).await.unwrap(), (204, String::new(), false));
    }

    #[tokio::test]
    async fn an_answer_that_is_not_http_is_an_error() {
        let fault = get(vec!["SSH-2.0-OpenSSH\r\n\r\n"]).await.unwrap_err();
        assert_eq!(fault.kind(), io::ErrorKind::InvalidData);
    }

    #[test]
    fn a_rendered_request_carries_key_idempotency_key_and_body() {
        let mut message = Vec::new();
        let request = Request {
            method: "POST",
            target: "/v1/clients",
            key: Some("ba_x"),
            idempotency_key: Some("k1"),
            body: Some("{}"),
        };
        request.render("127.0.0.1:7700", &mut message);
        assert_eq!(
            String::from_utf8(message).unwrap(),
            "POST /v1/clients HTTP/1.1\r\nhost: 127.0.0.1:7700\r\nauthorization: Bearer ba_x\r\nidempotency-key: k1\r\n\
             content-type: application/json\r\ncontent-length: 2\r\n\r\n{}"
        );
    }

    #[test]
    fn only_a_plain_http_address_is_taken() {
        assert_eq!(authority("http://127.0.0.1:7700/"), Ok("127.0.0.1:7700"));
        assert!(authority("https://127.0.0.1").is_err());
        assert!(authority("http://127.0.0.1/v1").is_err());
    }
}
