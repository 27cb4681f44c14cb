//! External programs that some tests need: those of `deploy/requirements.txt`, which `deploy/test` installs.

#![expect(clippy::expect_used, reason = "a test without its tools has to stop")]

use std::io::Write;
use std::path::PathBuf;
use std::process::Stdio;

use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::process::{Child, Command};

/// The path of a Python tool. When it is missing, reports the test as skipped and returns `None`; with `CI=true` the
/// test fails instead.
pub fn python_tool(test: &str, program: &str) -> Option<PathBuf> {
    let bin = concat!(env!("CARGO_MANIFEST_DIR"), "/../../.local/venv/bin");
    let path = PathBuf::from(bin).join(program);
    if path.exists() {
        return Some(path);
    }
    let line = format!("{test}: {program} is missing; ./deploy/test installs it into .local/venv");
    assert!(std::env::var("CI").as_deref() != Ok("true"), "with CI=true nothing may be skipped: {line}");
    eprintln!("SKIPPED {line}");
    if let Ok(file) = std::env::var("TEST_SKIP_FILE") {
        let mut file =
            std::fs::OpenOptions::new().append(true).create(true).open(file).expect("TEST_SKIP_FILE");
        writeln!(file, "{line}").expect("TEST_SKIP_FILE can be written");
    }
    None
}

/// An S3 service with one bucket; it stops when the value is dropped.
pub struct S3Server {
    url: String,
    _process: Child,
}

impl S3Server {
    pub const BUCKET: &'static str = "files";

    /// `None` when the program is missing; see [`python_tool`].
    pub async fn start(test: &str) -> Option<Self> {
        let program = python_tool(test, "moto_server")?;
        let mut process = Command::new(program)
            .args(["-H", "127.0.0.1", "-p", "0"])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .expect("moto_server starts");
        let mut lines = BufReader::new(process.stderr.take().expect("its messages")).lines();
        let url = loop {
            let line = lines.next_line().await.expect("text").expect("it says where it listens");
            if let Some((_, url)) = line.split_once("Running on ") {
                break url.trim().to_owned();
            }
        };
        // The log is read to the end, so that it never fills the pipe and blocks the server.
        tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
        let server = Self { url, _process: process };
        server.create_bucket().await;
        Some(server)
    }

    /// The flags of a service that stores its files here.
    pub fn flags(&self) -> Vec<String> {
        let flags = [
            ("--files-s3-bucket", Self::BUCKET),
            ("--files-s3-endpoint", &self.url),
            ("--files-s3-key-id", "test"),
            ("--files-s3-secret", "test"),
        ];
        flags.iter().flat_map(|(flag, value)| [(*flag).to_owned(), (*value).to_owned()]).collect()
    }

    async fn create_bucket(&self) {
        let host = self.url.trim_start_matches("http://");
        let mut stream = tokio::net::TcpStream::connect(host).await.expect("it listens");
        // The server requires credentials but does not check them.
        let credentials = "AWS4-HMAC-SHA256 Credential=test/20260101/eu-west-1/s3/aws4_request";
        let body = "<CreateBucketConfiguration><LocationConstraint>eu-west-1</LocationConstraint></CreateBucketConfiguration>";
        let request = format!(
            "PUT /{} HTTP/1.1\r\nHost: {host}\r\nAuthorization: {credentials}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
            Self::BUCKET,
            body.len()
        );
        stream.write_all(request.as_bytes()).await.expect("it listens");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.expect("an answer");
        assert!(answer.starts_with("HTTP/1.1 200"), "no bucket: {answer}");
    }
}
