//! One conversation with a client.

use std::io::Error;
use std::net::IpAddr;
use std::time::Duration;

use bytes::Bytes;
use chassis::server::{Stage, asked_to_stop};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::sync::watch;

use super::command::{Command, parse};
use super::line::{Data, Line, STEP, Timeouts, data, line};
use super::office::{Office, Recipient, Verdict};
use crate::intake::memory::Holder;

const MOST_RECIPIENTS: usize = 100;
/// Mails, mistakes and minutes of one conversation.
const MOST_MAILS: usize = 100;
const MOST_MISTAKES: usize = 10;
const PATIENCE: Duration = Duration::from_hours(1);
/// For writing an answer, and for memory that others have.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);
const MEMORY_TIMEOUT: Duration = Duration::from_secs(2);

const READY: &str = "220 ready for mail";
const OK: &str = "250 2.0.0 ok";
const BUSY: &str = "421 4.3.2 too many conversations, come back later";
const CLOSING: &str = "421 4.3.2 closing, come back later";
const TOO_LARGE: &str = "552 5.3.4 the mail is too large";
const TAKEN: &str = "250 2.0.0 taken in";
const NO_MEMORY: &str = "452 4.3.1 too much mail is coming in, come back later";
const LATER: &str = "451 4.3.0 cannot be taken in now, come back later";
const UNREADABLE: &str = "554 5.6.0 the mail cannot be read";

struct Session<'a, S> {
    stream: BufReader<S>,
    office: &'a Office,
    peer: IpAddr,
    timeouts: Timeouts,
    /// LMTP: an answer for each recipient.
    local: bool,
    greeted: bool,
    sender: Option<String>,
    /// How large the mail will be, as far as that was said.
    size: usize,
    recipients: Vec<Recipient>,
    mails: usize,
    mistakes: usize,
}

/// Whether the conversation goes on.
type Goes = Result<bool, Error>;

pub async fn run<S: AsyncRead + AsyncWrite + Unpin>(
    (stream, peer): (S, IpAddr),
    office: &Office,
    stop: watch::Receiver<Stage>,
    has_room: bool,
) -> Result<(), Error> {
    let mut session = Session {
        stream: BufReader::new(stream),
        office,
        peer,
        timeouts: Timeouts::default(),
        local: false,
        greeted: false,
        sender: None,
        size: 0,
        recipients: Vec::new(),
        mails: 0,
        mistakes: 0,
    };
    if !has_room {
        return session.say(BUSY).await;
    }
    session.say(READY).await?;
    match tokio::time::timeout(PATIENCE, session.converse(stop)).await {
        Ok(outcome) => outcome,
        Err(_) => session.say(CLOSING).await,
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> Session<'_, S> {
    async fn converse(&mut self, stop: watch::Receiver<Stage>) -> Result<(), Error> {
        loop {
            let heard = tokio::select! {
                heard = line(&mut self.stream, self.timeouts) => heard?,
                () = asked_to_stop(stop.clone()) => return self.say(CLOSING).await,
            };
            let goes = match heard {
                Line::End => false,
                Line::TooLong => {
                    self.say("500 5.5.2 the line is too long").await?;
                    false
                }
                Line::NotText => self.mistake("500 5.5.2 the line is no text").await?,
                Line::Text(text) => self.obey(parse(&text)).await?,
            };
            if !goes {
                return Ok(());
            }
        }
    }

    async fn obey(&mut self, command: Command) -> Goes {
        match command {
            Command::Hello { extended, local } => self.greet(extended, local).await,
            Command::Mail { from, size } => self.begin(from, size).await,
            Command::Recipient(address) => self.add(&address).await,
            Command::Data => self.take().await,
            Command::Reset => {
                self.forget();
                self.go_on(OK).await
            }
            Command::Nothing => self.go_on(OK).await,
            Command::Verify => self.go_on("252 2.1.5 send a mail and see").await,
            Command::Quit => {
                self.say("221 2.0.0 bye").await?;
                Ok(false)
            }
            Command::Malformed(advice) => self.mistake(&format!("501 5.5.4 {advice}")).await,
            Command::Unknown => self.mistake("500 5.5.1 not known here").await,
        }
    }

    async fn greet(&mut self, extended: bool, local: bool) -> Goes {
        self.forget();
        self.greeted = true;
        self.local = local;
        if !extended {
            return self.go_on("250 hello").await;
        }
        let size = self.office.max_bytes();
        let answer = format!(
            "250-hello\r\n250-PIPELINING\r\n250-8BITMIME\r\n250-SMTPUTF8\r\n250-ENHANCEDSTATUSCODES\r\n250 SIZE {size}"
        );
        self.go_on(&answer).await
    }

    async fn begin(&mut self, from: String, size: Option<u64>) -> Goes {
        if !self.greeted {
            return self.mistake("503 5.5.1 say HELO first").await;
        }
        if self.sender.is_some() {
            return self.mistake("503 5.5.1 there is a sender already").await;
        }
        if self.mails >= MOST_MAILS {
            self.say(CLOSING).await?;
            return Ok(false);
        }
        let size = usize::try_from(size.unwrap_or_default()).unwrap_or(usize::MAX);
        if size > self.office.max_bytes() {
            return self.go_on(TOO_LARGE).await;
        }
        self.size = size;
        self.sender = Some(from);
        self.go_on(OK).await
    }

    async fn add(&mut self, address: &str) -> Goes {
        if self.sender.is_none() {
            return self.mistake("503 5.5.1 say MAIL first").await;
        }
        if self.recipients.len() >= MOST_RECIPIENTS {
            return self.go_on("452 4.5.3 too many recipients").await;
        }
        match self.office.find(address).await {
            Ok(Some(recipient)) => {
                self.recipients.push(recipient);
                self.go_on("250 2.1.5 ok").await
            }
            // Counted, so that addresses cannot be tried without end.
            Ok(None) => self.mistake("550 5.1.1 there is no such mailbox here").await,
            Err(error) => {
                tracing::warn!(%error, "a mail recipient could not be looked up");
                self.go_on(LATER).await
            }
        }
    }

    async fn take(&mut self) -> Goes {
        let Some(sender) = self.sender.clone().filter(|_| !self.recipients.is_empty()) else {
            return self.mistake("503 5.5.1 say MAIL and RCPT first").await;
        };
        let accounts = self.recipients.iter().map(|recipient| Holder::Account(recipient.account));
        let mut hold = self.office.memory.hold(accounts.chain([Holder::Address(self.peer)]));
        // What was not said is taken as it comes.
        let expected = self.size.max(STEP).min(self.office.max_bytes());
        if !hold.wait_for(expected, MEMORY_TIMEOUT).await {
            return self.go_on(NO_MEMORY).await;
        }
        self.say("354 go on").await?;
        let mail = data(&mut self.stream, self.office.max_bytes(), self.timeouts, &mut hold).await?;
        self.mails += 1;
        let recipients = std::mem::take(&mut self.recipients);
        self.forget();
        let verdicts = match mail {
            Data::Mail(mail) => self.office.deliver(&sender, &recipients, Bytes::from(mail)).await,
            Data::TooLarge => vec![Verdict::TooLarge; recipients.len()],
            Data::NoMemory => vec![Verdict::NoMemory; recipients.len()],
        };
        drop(hold);
        let answers = if self.local {
            verdicts.iter().map(|verdict| answer(*verdict)).collect::<Vec<_>>().join("\r\n")
        } else {
            // One answer for all: what was taken in already is recognised when the mail comes again.
            verdicts.iter().max().map_or(LATER, |worst| answer(*worst)).to_owned()
        };
        self.go_on(&answers).await
    }

    fn forget(&mut self) {
        self.sender = None;
        self.size = 0;
        self.recipients.clear();
    }

    async fn mistake(&mut self, answer: &str) -> Goes {
        self.mistakes += 1;
        if self.mistakes > MOST_MISTAKES {
            self.say("421 4.7.0 too many mistakes").await?;
            return Ok(false);
        }
        self.go_on(answer).await
    }

    async fn go_on(&mut self, answer: &str) -> Goes {
        self.say(answer).await?;
        Ok(true)
    }

    async fn say(&mut self, text: &str) -> Result<(), Error> {
        let line = format!("{text}\r\n");
        let saying = async {
            self.stream.write_all(line.as_bytes()).await?;
            self.stream.flush().await
        };
        let said = tokio::time::timeout(ANSWER_TIMEOUT, saying).await;
        said.unwrap_or_else(|_| Err(std::io::ErrorKind::TimedOut.into()))
    }
}

fn answer(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Taken => TAKEN,
        Verdict::Unreadable => UNREADABLE,
        Verdict::TooLarge => TOO_LARGE,
        Verdict::NoMemory => NO_MEMORY,
        Verdict::Later => LATER,
    }
}
