//! Where mail goes, over SMTP or in development into files while there is no server, and whom it comes from.

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

/// For each step of the conversation with the server.
const TIMEOUT: Duration = Duration::from_secs(30);

const NO_SERVER: &str = "SMTP_URL is not set, so mail waits until it is";

/// Where mail goes.
#[derive(Clone)]
pub struct Mailer {
    way: Way,
    /// For those who cannot send in their own name.
    from: Address,
}

#[derive(Clone)]
enum Way {
    Server(AsyncSmtpTransport<Tokio1Executor>),
    Files(PathBuf),
    /// There is no server, and files are for development only: mail waits.
    Nowhere,
}

/// Whom a mail comes from, for [`Mail`](super::Mail).
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
            let way = match environment {
                Environment::Development => Way::Files(settings.mail_dir.clone()),
                Environment::Production => Way::Nowhere,
            };
            return Ok(Self { way, from });
        }
        // The address may hold a password, so the cause says enough.
        let builder = AsyncSmtpTransport::<Tokio1Executor>::from_url(&settings.smtp_url)
            .map_err(|error| format!("SMTP_URL is not usable: {error}"))?;
        Ok(Self { way: Way::Server(builder.timeout(Some(TIMEOUT)).build()), from })
    }

    /// The wanted address itself when mail from its domain can be signed, because the account has put a key for it.
    /// Otherwise the mail comes from the address of the installation, under the same name, and answers go to the
    /// wanted one: mail in the name of a domain that does not vouch for it would be taken for a forgery.
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

    /// Whether mail can leave: greets the server, or writes to the folder. Says where it goes, or what went wrong.
    pub async fn probe(&self) -> Result<String, String> {
        match &self.way {
            Way::Server(server) => match server.test_connection().await {
                Ok(true) => Ok("the server greets back".to_owned()),
                Ok(false) => Err("the server does not take commands".to_owned()),
                Err(error) => Err(chain(&error)),
            },
            Way::Nowhere => Err(NO_SERVER.to_owned()),
            Way::Files(folder) => {
                // Services share the folder.
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
        match &self.way {
            Way::Server(server) => {
                let envelope = envelope(sender, recipients).map_err(Failure::Permanent)?;
                server.send_raw(&envelope, message).await.map(|_| ()).map_err(|error| failure(&error))
            }
            Way::Nowhere => Err(Failure::Unreachable(NO_SERVER.to_owned())),
            Way::Files(folder) => {
                to_file(folder, id, message).await.map_err(|error| Failure::Unreachable(error.to_string()))
            }
        }
    }
}

#[derive(Debug)]
pub(super) enum Failure {
    /// The server does not want it now, or a part of the mail cannot be had now.
    Passing(String),
    /// There is no talking to the server at all.
    Unreachable(String),
    /// Trying again would not help.
    Permanent(String),
}

fn failure(error: &lettre::transport::smtp::Error) -> Failure {
    let text = chain(error);
    // A client's error is about what this server cannot do, such as addresses with other than ASCII letters.
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

/// Under its id, so that a repeat replaces it; whole, so that nobody reads half of it; and for nobody else to read.
async fn to_file(folder: &Path, id: Uuid, message: &[u8]) -> std::io::Result<()> {
    let (folder, message) = (folder.to_owned(), message.to_owned());
    let written = tokio::task::spawn_blocking(move || {
        private::folder(&folder)?;
        private::replace(&folder.join(format!("{id}.eml")), &message)
    });
    written.await?
}
