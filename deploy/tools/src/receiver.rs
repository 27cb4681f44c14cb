//! A server on this machine that takes every request, answers it with 200 and passes on what it got and when. As much of HTTP/1.1 as
//! the requests of flows and webhooks need, and as little work as possible: it may share the machine with what it
//! measures.

use std::io;
use std::net::SocketAddr;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc::UnboundedSender;
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::http::{MAX_HEAD_BYTES, broken, find};

/// A request that has come.
#[derive(Debug)]
pub struct Received {
    pub at: Instant,
    pub body: Vec<u8>,
}

/// Takes requests until it is dropped.
#[derive(Debug)]
pub struct Receiver {
    address: SocketAddr,
    _serving: JoinSet<()>,
}

impl Receiver {
    /// On a free port. Every request goes to `sender`.
    pub async fn start(sender: UnboundedSender<Received>) -> io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let mut serving = JoinSet::new();
        serving.spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                let sender = sender.clone();
                connections.spawn(async move {
                    // A sender that goes away ends its connection only.
                    let _ = serve(stream, &sender).await;
                });
            }
        });
        Ok(Self { address, _serving: serving })
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }
}

async fn serve(mut stream: TcpStream, sender: &UnboundedSender<Received>) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut buffer = Vec::with_capacity(16 * 1024);
    loop {
        let head = loop {
            if let Some(end) = find(&buffer, b"\r\n\r\n", 0) {
                break end + 4;
            }
            if buffer.len() > MAX_HEAD_BYTES {
                return Err(broken("the request's head has no end"));
            }
            if stream.read_buf(&mut buffer).await? == 0 {
                return Ok(());
            }
        };
        let end = head.saturating_add(length(&buffer[..head])?);
        while buffer.len() < end {
            if stream.read_buf(&mut buffer).await? == 0 {
                return Ok(());
            }
        }
        // Nobody may be interested any more.
        let _ = sender.send(Received { at: Instant::now(), body: buffer[head..end].to_vec() });
        buffer.drain(..end);
        stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").await?;
    }
}

/// Of the body; 0 when the head does not say.
fn length(head: &[u8]) -> io::Result<usize> {
    let head = std::str::from_utf8(head).map_err(|_| broken("the request's head is not text"))?;
    let value = head.split("\r\n").find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-length").then(|| value.trim())
    });
    value.map_or(Ok(0), |value| value.parse().map_err(|_| broken("content-length is not a number")))
}

#[cfg(test)]
mod tests {
    use tokio::sync::mpsc;

    use super::*;
    use crate::http::{Connection, Request, authority};

    #[tokio::test]
    async fn every_request_of_a_connection_is_passed_on_with_its_body() {
        let (sender, mut requests) = mpsc::unbounded_channel();
        let receiver = Receiver::start(sender).await.unwrap();
        let url = receiver.url();
        let authority = authority(&url).unwrap();
        let mut connection = Connection::open(authority).await.unwrap();
        for body in [Some(r#"{"a": 1}"#), None, Some("{}")] {
            let mut message = Vec::new();
            Request { method: "POST", target: "/x", body, ..Request::default() }
                .render(authority, &mut message);
            assert_eq!(connection.send(&message).await.unwrap().status, 200);
            assert_eq!(requests.recv().await.unwrap().body, body.unwrap_or_default().as_bytes());
        }
    }

    #[test]
    fn a_length_that_is_none_is_refused() {
        assert!(length(b"POST / HTTP/1.1\r\nContent-Length: many\r\n\r\n").is_err());
        assert_eq!(length(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n").unwrap(), 0);
    }
}
