//! A mail server for tests: SMTP over TCP, as much of RFC 5321 as a client needs, with replies that a test can choose.

#![expect(clippy::expect_used, reason = "a test without its mail server has to stop")]

use std::collections::{HashMap, VecDeque};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

/// A mail that the server accepted.
#[derive(Clone, Debug)]
pub struct Received {
    pub sender: String,
    pub recipients: Vec<String>,
    /// The unchanged message, with lines that end in CR LF.
    pub message: String,
}

#[derive(Default)]
struct State {
    received: Vec<Received>,
    answers: VecDeque<String>,
    refusals: HashMap<String, String>,
    refused: usize,
}

/// Accepts mail until it is dropped.
pub struct SmtpServer {
    address: SocketAddr,
    state: Arc<Mutex<State>>,
    _serving: JoinSet<()>,
}

impl SmtpServer {
    pub async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("a bound port");
        let state = Arc::new(Mutex::new(State::default()));
        let mut serving = JoinSet::new();
        let shared = Arc::clone(&state);
        serving.spawn(async move {
            let mut sessions = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                let state = Arc::clone(&shared);
                sessions.spawn(async move {
                    // A client that disconnects ends only its own session.
                    let _ = session(stream, &state).await;
                });
            }
        });
        Self { address, state, _serving: serving }
    }

    /// For `SMTP_URL`.
    pub fn url(&self) -> String {
        format!("smtp://{}", self.address)
    }

    pub fn received(&self) -> Vec<Received> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).received.clone()
    }

    /// The number of refused mails.
    pub fn refused(&self) -> usize {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).refused
    }

    /// Refuses the next mails, each with one of these replies, for example `451 later`.
    pub fn refuse_next(&self, answers: &[&str]) {
        let answers = answers.iter().map(ToString::to_string);
        self.state.lock().unwrap_or_else(PoisonError::into_inner).answers.extend(answers);
    }

    /// Refuses every mail to this recipient with this reply, for example `550 no such user`, until [`Self::welcome`].
    pub fn refuse_recipient(&self, address: &str, answer: &str) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.refusals.insert(address.to_owned(), answer.to_owned());
    }

    pub fn welcome(&self, address: &str) {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).refusals.remove(address);
    }
}

async fn session(stream: TcpStream, state: &Mutex<State>) -> std::io::Result<()> {
    // Replies are short: with Nagle's algorithm each would wait up to 40 ms for an acknowledgement.
    stream.set_nodelay(true)?;
    let mut stream = BufReader::new(stream);
    reply(&mut stream, "220 test ESMTP").await?;
    let (mut sender, mut recipients) = (String::new(), Vec::new());
    loop {
        let Some(line) = read_line(&mut stream).await? else { return Ok(()) };
        let verb = line.split([' ', ':']).next().unwrap_or_default().to_ascii_uppercase();
        match verb.as_str() {
            "EHLO" => reply(&mut stream, "250-test\r\n250 8BITMIME").await?,
            "HELO" | "NOOP" => reply(&mut stream, "250 ok").await?,
            "MAIL" => {
                sender = path(&line);
                recipients.clear();
                reply(&mut stream, "250 ok").await?;
            }
            "RCPT" => {
                let recipient = path(&line);
                let refusal = refusal_of(state, &recipient);
                if refusal.is_none() {
                    recipients.push(recipient);
                }
                reply(&mut stream, refusal.as_deref().unwrap_or("250 ok")).await?;
            }
            "DATA" if recipients.is_empty() => reply(&mut stream, "503 no recipients").await?,
            "DATA" => {
                reply(&mut stream, "354 start mail input").await?;
                let message = data(&mut stream).await?;
                let mail = Received { sender: sender.clone(), recipients: recipients.clone(), message };
                let answer = accept_or_refuse(state, mail);
                reply(&mut stream, &answer).await?;
            }
            "RSET" => {
                recipients.clear();
                reply(&mut stream, "250 ok").await?;
            }
            "QUIT" => return reply(&mut stream, "221 bye").await,
            _ => reply(&mut stream, "502 command not implemented").await?,
        }
    }
}

fn refusal_of(state: &Mutex<State>, recipient: &str) -> Option<String> {
    state.lock().unwrap_or_else(PoisonError::into_inner).refusals.get(recipient).cloned()
}

fn accept_or_refuse(state: &Mutex<State>, mail: Received) -> String {
    let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(answer) = state.answers.pop_front() {
        state.refused += 1;
        return answer;
    }
    state.received.push(mail);
    "250 accepted".to_owned()
}

/// The address between the angle brackets.
fn path(line: &str) -> String {
    let inside = line.split_once('<').and_then(|(_, rest)| rest.split_once('>'));
    inside.map(|(path, _)| path.to_owned()).unwrap_or_default()
}

async fn data(stream: &mut BufReader<TcpStream>) -> std::io::Result<String> {
    let mut message = String::new();
    loop {
        match read_line(stream).await? {
            None => return Err(std::io::ErrorKind::UnexpectedEof.into()),
            Some(line) if line == "." => return Ok(message),
            Some(line) => {
                // The client doubles a leading dot (RFC 5321, section 4.5.2).
                message.push_str(line.strip_prefix('.').unwrap_or(&line));
                message.push_str("\r\n");
            }
        }
    }
}

async fn read_line(stream: &mut BufReader<TcpStream>) -> std::io::Result<Option<String>> {
    let mut line = String::new();
    if stream.read_line(&mut line).await? == 0 {
        return Ok(None);
    }
    Ok(Some(line.trim_end_matches(['\r', '\n']).to_owned()))
}

async fn reply(stream: &mut BufReader<TcpStream>, text: &str) -> std::io::Result<()> {
    stream.write_all(format!("{text}\r\n").as_bytes()).await
}
