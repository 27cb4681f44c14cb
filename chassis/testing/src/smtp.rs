//! A mail server for tests: real SMTP over TCP, as much of RFC 5321 as a client needs, with answers that a test can
//! choose.

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
    /// As it came, lines ending in CR LF.
    pub message: String,
}

#[derive(Default)]
struct State {
    received: Vec<Received>,
    answers: VecDeque<String>,
    unwanted: HashMap<String, String>,
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
                    // A client that goes away ends its session only.
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

    /// How many mails were refused.
    pub fn refused(&self) -> usize {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).refused
    }

    /// Answers the next mails, one each, with this instead of accepting them; for example `451 later`.
    pub fn refuse_next(&self, answers: &[&str]) {
        let answers = answers.iter().map(ToString::to_string);
        self.state.lock().unwrap_or_else(PoisonError::into_inner).answers.extend(answers);
    }

    /// Answers every mail to this recipient with this, for example `550 no such user`, until [`Self::welcome`].
    pub fn refuse_recipient(&self, address: &str, answer: &str) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.unwanted.insert(address.to_owned(), answer.to_owned());
    }

    pub fn welcome(&self, address: &str) {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).unwanted.remove(address);
    }
}

async fn session(stream: TcpStream, state: &Mutex<State>) -> std::io::Result<()> {
    // Short answers to short commands: waiting for more to send would cost 40 ms each time.
    stream.set_nodelay(true)?;
    let mut stream = BufReader::new(stream);
    say(&mut stream, "220 test ESMTP").await?;
    let (mut sender, mut recipients) = (String::new(), Vec::new());
    loop {
        let Some(line) = hear(&mut stream).await? else { return Ok(()) };
        let verb = line.split([' ', ':']).next().unwrap_or_default().to_ascii_uppercase();
        match verb.as_str() {
            "EHLO" => say(&mut stream, "250-test\r\n250 8BITMIME").await?,
            "HELO" | "NOOP" => say(&mut stream, "250 ok").await?,
            "MAIL" => {
                sender = path(&line);
                recipients.clear();
                say(&mut stream, "250 ok").await?;
            }
            "RCPT" => {
                let recipient = path(&line);
                let refusal = unwanted(state, &recipient);
                if refusal.is_none() {
                    recipients.push(recipient);
                }
                say(&mut stream, refusal.as_deref().unwrap_or("250 ok")).await?;
            }
            "DATA" if recipients.is_empty() => say(&mut stream, "503 who is it for?").await?,
            "DATA" => {
                say(&mut stream, "354 go on").await?;
                let message = data(&mut stream).await?;
                let mail = Received { sender: sender.clone(), recipients: recipients.clone(), message };
                let answer = judge(state, mail);
                say(&mut stream, &answer).await?;
            }
            "RSET" => {
                recipients.clear();
                say(&mut stream, "250 ok").await?;
            }
            "QUIT" => return say(&mut stream, "221 bye").await,
            _ => say(&mut stream, "502 not here").await?,
        }
    }
}

fn unwanted(state: &Mutex<State>, recipient: &str) -> Option<String> {
    state.lock().unwrap_or_else(PoisonError::into_inner).unwanted.get(recipient).cloned()
}

fn judge(state: &Mutex<State>, mail: Received) -> String {
    let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(answer) = state.answers.pop_front() {
        state.refused += 1;
        return answer;
    }
    state.received.push(mail);
    "250 accepted".to_owned()
}

/// What is between the angle brackets.
fn path(line: &str) -> String {
    let inside = line.split_once('<').and_then(|(_, rest)| rest.split_once('>'));
    inside.map(|(path, _)| path.to_owned()).unwrap_or_default()
}

async fn data(stream: &mut BufReader<TcpStream>) -> std::io::Result<String> {
    let mut message = String::new();
    loop {
        match hear(stream).await? {
            None => return Err(std::io::ErrorKind::UnexpectedEof.into()),
            Some(line) if line == "." => return Ok(message),
            Some(line) => {
                // A leading dot was doubled on the way.
                message.push_str(line.strip_prefix('.').unwrap_or(&line));
                message.push_str("\r\n");
            }
        }
    }
}

async fn hear(stream: &mut BufReader<TcpStream>) -> std::io::Result<Option<String>> {
    let mut line = String::new();
    if stream.read_line(&mut line).await? == 0 {
        return Ok(None);
    }
    Ok(Some(line.trim_end_matches(['\r', '\n']).to_owned()))
}

async fn say(stream: &mut BufReader<TcpStream>, text: &str) -> std::io::Result<()> {
    stream.write_all(format!("{text}\r\n").as_bytes()).await
}
