//! Sends mail over SMTP, or in development to files when no server is set, and decides the sender.

use std::path::{Path, PathBuf};
use std::time::Duration;

use chassis_base::error::chain;
use chassis_base::{AccountId, Environment, Error};
use lettre::address::Envelope;
use lettre::message::Mailbox;
use lettre::{Address, AsyncSmtpTransport, AsyncTransport, Tokio1Executor};
use sqlx::PgConnection;
use uuid::Uuid;

use super::keys;
use super::message::{mailbox, one_line};
use super::settings::MailSettings;
use crate::private;

/// For each command to the server.
const TIMEOUT: Duration = Duration::from_secs(30);

const NO_SERVER: &str = "SMTP_URL is not set, so mail waits until it is";

/// Sends mail.
#[derive(Clone)]
pub struct Mailer {
    transport: Transport,
    /// The sender of mail whose own domain cannot be signed.
    from: Address,
}

#[derive(Clone)]
enum Transport {
    Server(AsyncSmtpTransport<Tokio1Executor>),
    Files(PathBuf),
    /// No server is set in production, so mail stays in the queue.
    Unset,
}

/// The sender fields of a [`Mail`](super::Mail).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sender {
    pub from: Mailbox,
    pub reply_to: Option<Mailbox>,
}

impl Mailer {
    pub fn new(settings: &MailSettings, environment: Environment) -> Result<Self, String> {
        let from = settings
            .mail_from
            .parse()
            .map_err(|error| format!("MAIL_FROM must be an address such as no-reply@example.com: {error}"))?;
        if settings.smtp_url.is_empty() {
            let transport = match environment {
                Environment::Development => Transport::Files(settings.mail_dir.clone()),
                Environment::Production => Transport::Unset,
            };
            return Ok(Self { transport, from });
        }
        // The URL may contain a password, so the message does not repeat it.
        let builder = AsyncSmtpTransport::<Tokio1Executor>::from_url(&settings.smtp_url)
            .map_err(|error| format!("SMTP_URL is not usable: {error}"))?;
        Ok(Self { transport: Transport::Server(builder.timeout(Some(TIMEOUT)).build()), from })
    }

    /// Uses the wanted address as sender if the account has a key that signs mail of its domain. Otherwise the sender
    /// is the address of the installation with the same name, and replies go to the wanted address. Unsigned mail from
    /// the wanted domain would be treated as forged.
    pub async fn sender(
        &self,
        connection: &mut PgConnection,
        account: AccountId,
        name: &str,
        wanted: &str,
    ) -> Result<Sender, Error> {
        let wanted = mailbox(name, wanted);
        if let Some(from) = &wanted
            && keys::find(connection, account, from.email.domain()).await?.is_some()
        {
            return Ok(Sender { from: from.clone(), reply_to: None });
        }
        let name = Some(one_line(name)).filter(|name| !name.is_empty());
        Ok(Sender { from: Mailbox::new(name, self.from.clone()), reply_to: wanted })
    }

    /// Checks whether mail can be sent: connects to the server, or writes to the folder. Returns a description for
    /// operators.
    pub async fn probe(&self) -> Result<String, String> {
        match &self.transport {
            Transport::Server(server) => match server.test_connection().await {
                Ok(true) => Ok("the server greets back".to_owned()),
                Ok(false) => Err("the server does not take commands".to_owned()),
                Err(error) => Err(chain(&error)),
            },
            Transport::Unset => Err(NO_SERVER.to_owned()),
            Transport::Files(folder) => {
                // A random id, because services share the folder.
                let id = Uuid::new_v4();
                let written = to_file(folder, id, b"").await;
                let removed = tokio::fs::remove_file(folder.join(format!("{id}.eml"))).await;
                match written.and(removed) {
                    Ok(()) => Ok(format!("SMTP_URL is not set: mail goes to files in {}", folder.display())),
                    Err(error) => Err(format!("{} cannot be written to: {error}", folder.display())),
                }
            }
        }
    }

    pub(super) async fn send(
        &self,
        id: Uuid,
        sender: &str,
        recipients: &[&String],
        message: &[u8],
    ) -> Result<(), Failure> {
        match &self.transport {
            Transport::Server(server) => {
                let envelope = envelope(sender, recipients).map_err(Failure::Permanent)?;
                server.send_raw(&envelope, message).await.map(|_| ()).map_err(|error| failure(&error))
            }
            Transport::Unset => Err(Failure::Unreachable(NO_SERVER.to_owned())),
            Transport::Files(folder) => {
                to_file(folder, id, message).await.map_err(|error| Failure::Unreachable(error.to_string()))
            }
        }
    }
}

#[derive(Debug)]
pub(super) enum Failure {
    /// A temporary refusal, or a part of the mail that cannot be loaded now.
    Passing(String),
    /// No communication with the server is possible.
    Unreachable(String),
    /// A retry cannot succeed.
    Permanent(String),
}

fn failure(error: &lettre::transport::smtp::Error) -> Failure {
    let text = chain(error);
    // A client error means that the server lacks a feature, such as addresses with non-ASCII characters.
    if error.is_permanent() || error.is_client() {
        Failure::Permanent(text)
    } else if error.is_transient() {
        Failure::Passing(text)
    } else {
        Failure::Unreachable(text)
    }
}

fn envelope(sender: &str, recipients: &[&String]) -> Result<Envelope, String> {
    let address = |text: &str| text.parse::<Address>().map_err(|error| format!("{text}: {error}"));
    let to = recipients.iter().map(|recipient| address(recipient)).collect::<Result<_, _>>()?;
    Envelope::new(Some(address(sender)?), to).map_err(|error| error.to_string())
}

/// Writes a private file. It is named by the id, so that a retry replaces it, and written atomically, so that no reader
/// sees a part of it.
async fn to_file(folder: &Path, id: Uuid, message: &[u8]) -> std::io::Result<()> {
    let (folder, message) = (folder.to_owned(), message.to_owned());
    let written = tokio::task::spawn_blocking(move || {
        private::folder(&folder)?;
        private::replace(&folder.join(format!("{id}.eml")), &message)
    });
    written.await?
}
