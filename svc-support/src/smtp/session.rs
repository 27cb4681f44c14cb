//! One session with a client.

use std::io::Error;
use std::net::IpAddr;
use std::time::Duration;

use bytes::Bytes;
use chassis_service::stage::{Stage, asked_to_stop};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::sync::watch;

use super::command::{Command, parse};
use super::reader::{Data, Line, MIN_GROWTH, Timeouts, read_data, read_line};
use super::receiver::{Disposition, MailReceiver, Recipient};
use crate::intake::memory::Holder;

const MAX_RECIPIENTS: usize = 100;
/// The number of mails, and of commands that fail, in one session.
const MAX_MAILS: usize = 100;
const MAX_ERRORS: usize = 10;
const SESSION_TIMEOUT: Duration = Duration::from_hours(1);
const WRITE_TIMEOUT: Duration = Duration::from_secs(30);
/// How long a mail waits for memory that other mails hold.
const MEMORY_TIMEOUT: Duration = Duration::from_secs(2);

const READY: &str = "220 ready for mail";
const OK: &str = "250 2.0.0 ok";
const BUSY: &str = "421 4.3.2 too many connections, try again later";
const CLOSING: &str = "421 4.3.2 closing the connection, try again later";
const TOO_LARGE: &str = "552 5.3.4 the mail is too large";
const ACCEPTED: &str = "250 2.0.0 accepted";
const NO_MEMORY: &str = "452 4.3.1 too much mail is coming in, try again later";
const DEFERRED: &str = "451 4.3.0 the mail cannot be accepted now, try again later";
const UNREADABLE: &str = "554 5.6.0 the mail cannot be read";

/// A connection with a client.
pub(super) struct Connection<S> {
    pub stream: S,
    pub peer: IpAddr,
}

struct Session<'a, S> {
    stream: BufReader<S>,
    receiver: &'a MailReceiver,
    peer: IpAddr,
    timeouts: Timeouts,
    /// The client speaks LMTP: it gets a reply for each recipient.
    local: bool,
    greeted: bool,
    sender: Option<String>,
    /// The size of the mail that the client has declared; 0 if it has not.
    size: usize,
    recipients: Vec<Recipient>,
    mails: usize,
    errors: usize,
}

/// Whether the session continues.
type Continues = Result<bool, Error>;

/// Serves a client until it quits, or until the process stops.
pub(super) async fn run<S: AsyncRead + AsyncWrite + Unpin>(
    connection: Connection<S>,
    receiver: &MailReceiver,
    stop: watch::Receiver<Stage>,
) -> Result<(), Error> {
    let mut session = Session::new(connection, receiver);
    session.write(READY).await?;
    match tokio::time::timeout(SESSION_TIMEOUT, session.serve(stop)).await {
        Ok(outcome) => outcome,
        Err(_) => session.write(CLOSING).await,
    }
}

/// Refuses a client because there are too many sessions.
pub(super) async fn refuse<S: AsyncRead + AsyncWrite + Unpin>(
    connection: Connection<S>,
    receiver: &MailReceiver,
) -> Result<(), Error> {
    Session::new(connection, receiver).write(BUSY).await
}

impl<'a, S: AsyncRead + AsyncWrite + Unpin> Session<'a, S> {
    fn new(connection: Connection<S>, receiver: &'a MailReceiver) -> Self {
        Self {
            stream: BufReader::new(connection.stream),
            receiver,
            peer: connection.peer,
            timeouts: Timeouts::default(),
            local: false,
            greeted: false,
            sender: None,
            size: 0,
            recipients: Vec::new(),
            mails: 0,
            errors: 0,
        }
    }

    async fn serve(&mut self, stop: watch::Receiver<Stage>) -> Result<(), Error> {
        loop {
            // A stop ends the session between two commands only, so that a mail is replied to once it is stored.
            let line = tokio::select! {
                line = read_line(&mut self.stream, self.timeouts) => line?,
                () = asked_to_stop(stop.clone()) => return self.write(CLOSING).await,
            };
            let continues = match line {
                Line::End => false,
                Line::TooLong => {
                    self.write("500 5.5.2 the line is too long").await?;
                    false
                }
                Line::NotText => self.reject("500 5.5.2 the line is not UTF-8 text").await?,
                Line::Text(text) => self.execute(parse(&text)).await?,
            };
            if !continues {
                return Ok(());
            }
        }
    }

    async fn execute(&mut self, command: Command) -> Continues {
        match command {
            Command::Hello { extended, local } => self.hello(extended, local).await,
            Command::Mail { from, size } => self.begin_mail(from, size).await,
            Command::Recipient(address) => self.add_recipient(&address).await,
            Command::Data => self.receive_mail().await,
            Command::Reset => {
                self.reset();
                self.reply(OK).await
            }
            Command::Noop => self.reply(OK).await,
            Command::Verify => self.reply("252 2.1.5 cannot verify, send a mail to find out").await,
            Command::Quit => {
                self.write("221 2.0.0 bye").await?;
                Ok(false)
            }
            Command::Malformed(detail) => self.reject(&format!("501 5.5.4 {detail}")).await,
            Command::Unrecognised => self.reject("500 5.5.1 unrecognised command").await,
        }
    }

    async fn hello(&mut self, extended: bool, local: bool) -> Continues {
        self.reset();
        self.greeted = true;
        self.local = local;
        if !extended {
            return self.reply("250 hello").await;
        }
        let size = self.receiver.max_bytes();
        let text = format!(
            "250-hello\r\n250-PIPELINING\r\n250-8BITMIME\r\n250-SMTPUTF8\r\n250-ENHANCEDSTATUSCODES\r\n250 SIZE {size}"
        );
        self.reply(&text).await
    }

    async fn begin_mail(&mut self, from: String, size: Option<u64>) -> Continues {
        if !self.greeted {
            return self.reject("503 5.5.1 send HELO first").await;
        }
        if self.sender.is_some() {
            return self.reject("503 5.5.1 the sender is set already").await;
        }
        if self.mails >= MAX_MAILS {
            self.write(CLOSING).await?;
            return Ok(false);
        }
        let size = usize::try_from(size.unwrap_or_default()).unwrap_or(usize::MAX);
        if size > self.receiver.max_bytes() {
            return self.reply(TOO_LARGE).await;
        }
        self.size = size;
        self.sender = Some(from);
        self.reply(OK).await
    }

    async fn add_recipient(&mut self, address: &str) -> Continues {
        if self.sender.is_none() {
            return self.reject("503 5.5.1 send MAIL first").await;
        }
        if self.recipients.len() >= MAX_RECIPIENTS {
            return self.reply("452 4.5.3 too many recipients").await;
        }
        match self.receiver.find(address).await {
            Ok(Some(recipient)) => {
                self.recipients.push(recipient);
                self.reply("250 2.1.5 ok").await
            }
            // Counted as an error, so that a client cannot guess addresses without end.
            Ok(None) => self.reject("550 5.1.1 there is no such mailbox here").await,
            Err(error) => {
                tracing::warn!(%error, "mail recipient lookup failed");
                self.reply(DEFERRED).await
            }
        }
    }

    async fn receive_mail(&mut self) -> Continues {
        let Some(sender) = self.sender.clone().filter(|_| !self.recipients.is_empty()) else {
            return self.reject("503 5.5.1 send MAIL and RCPT first").await;
        };
        let max = self.receiver.max_bytes();
        let accounts = self.recipients.iter().map(|recipient| Holder::Account(recipient.account));
        let holders = accounts.chain([Holder::Address(self.peer)]);
        let mut reservation = self.receiver.memory().reservation(holders);
        // The declared size is reserved before the data. Without one, the reservation grows with the data.
        let expected = self.size.max(MIN_GROWTH).min(max);
        if !reservation.wait_to_grow(expected, MEMORY_TIMEOUT).await {
            return self.reply(NO_MEMORY).await;
        }
        self.write("354 send the mail").await?;
        let data = read_data(&mut self.stream, max, self.timeouts, &mut reservation).await?;
        self.mails += 1;
        let recipients = std::mem::take(&mut self.recipients);
        self.reset();
        let dispositions = match data {
            Data::Mail(mail) => self.receiver.deliver(&sender, &recipients, Bytes::from(mail)).await,
            Data::TooLarge => vec![Disposition::TooLarge; recipients.len()],
            Data::NoMemory => vec![Disposition::NoMemory; recipients.len()],
        };
        drop(reservation);
        let text = if self.local {
            dispositions.iter().map(|disposition| reply_for(*disposition)).collect::<Vec<_>>().join("\r\n")
        } else {
            // SMTP has one reply for all recipients. After a failure the client sends the mail again, and
            // accounts that have it already recognise it by its message id.
            dispositions.iter().max().map_or(DEFERRED, |worst| reply_for(*worst)).to_owned()
        };
        self.reply(&text).await
    }

    /// Discards the mail that was begun.
    fn reset(&mut self) {
        self.sender = None;
        self.size = 0;
        self.recipients.clear();
    }

    /// Replies to a command that failed; too many of them end the session.
    async fn reject(&mut self, text: &str) -> Continues {
        self.errors += 1;
        if self.errors > MAX_ERRORS {
            self.write("421 4.7.0 too many errors").await?;
            return Ok(false);
        }
        self.reply(text).await
    }

    /// Replies, and continues.
    async fn reply(&mut self, text: &str) -> Continues {
        self.write(text).await?;
        Ok(true)
    }

    async fn write(&mut self, text: &str) -> Result<(), Error> {
        let line = format!("{text}\r\n");
        let writing = async {
            self.stream.write_all(line.as_bytes()).await?;
            self.stream.flush().await
        };
        let written = tokio::time::timeout(WRITE_TIMEOUT, writing).await;
        written.unwrap_or_else(|_| Err(std::io::ErrorKind::TimedOut.into()))
    }
}

fn reply_for(disposition: Disposition) -> &'static str {
    match disposition {
        Disposition::Accepted => ACCEPTED,
        Disposition::Unreadable => UNREADABLE,
        Disposition::TooLarge => TOO_LARGE,
        Disposition::NoMemory => NO_MEMORY,
        Disposition::Deferred => DEFERRED,
    }
}
