//! Getting queued mail out: over SMTP, or into files while there is no server.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use chrono::TimeDelta;
use lettre::address::Envelope;
use lettre::{Address, AsyncSmtpTransport, AsyncTransport, Tokio1Executor};
use uuid::Uuid;

use crate::config::ServiceSettings;
use crate::error::Error;
use crate::service::chain;
use crate::worker::{Due, Job, Next, Worker, backoff};
use crate::write::Tx;

/// So often delivery is tried before a mail is dead: over about two hours.
pub const ATTEMPTS: i32 = 10;
const FIRST_WAIT: TimeDelta = TimeDelta::seconds(15);
const MOST_WAIT: TimeDelta = TimeDelta::hours(1);
/// When a mail is tried again whose delivery ended with the process.
const AFTER_A_CRASH: TimeDelta = TimeDelta::minutes(1);
/// How many mails one job delivers.
const BATCH: usize = 20;
/// For each step of the conversation with the server.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Where mail goes.
#[derive(Clone)]
pub enum Post {
    Server(AsyncSmtpTransport<Tokio1Executor>),
    Files(PathBuf),
}

impl Post {
    pub fn new(settings: &ServiceSettings) -> Result<Self, String> {
        if settings.smtp_url.is_empty() {
            return Ok(Self::Files(settings.mail_dir.clone()));
        }
        // The address may hold a password, so the cause says enough.
        let builder = AsyncSmtpTransport::<Tokio1Executor>::from_url(&settings.smtp_url)
            .map_err(|error| format!("SMTP_URL is not usable: {error}"))?;
        Ok(Self::Server(builder.timeout(Some(TIMEOUT)).build()))
    }

    async fn deliver(&self, mail: &Queued) -> Result<(), Failure> {
        match self {
            Self::Server(server) => {
                let envelope = envelope(mail).map_err(Failure::Permanent)?;
                server.send_raw(&envelope, &mail.message).await.map(|_| ()).map_err(|error| failure(&error))
            }
            Self::Files(folder) => {
                to_file(folder, mail).await.map_err(|error| Failure::Unreachable(error.to_string()))
            }
        }
    }
}

enum Failure {
    /// The server does not want it now.
    Passing(String),
    /// There is no talking to the server at all.
    Unreachable(String),
    /// Trying again would not help.
    Permanent(String),
}

fn failure(error: &lettre::transport::smtp::Error) -> Failure {
    let text = chain(error);
    if error.is_permanent() {
        Failure::Permanent(text)
    } else if error.is_transient() {
        Failure::Passing(text)
    } else {
        Failure::Unreachable(text)
    }
}

#[derive(sqlx::FromRow)]
struct Queued {
    id: Uuid,
    sender: String,
    recipients: Vec<String>,
    message: Vec<u8>,
    attempts: i32,
}

fn envelope(mail: &Queued) -> Result<Envelope, String> {
    let address = |text: &String| text.parse::<Address>().map_err(|error| format!("{text}: {error}"));
    let to = mail.recipients.iter().map(address).collect::<Result<_, _>>()?;
    Envelope::new(Some(address(&mail.sender)?), to).map_err(|error| error.to_string())
}

/// Under its id, so that a repeat replaces it; renamed when complete, so that nobody reads half of it.
async fn to_file(folder: &Path, mail: &Queued) -> std::io::Result<()> {
    tokio::fs::create_dir_all(folder).await?;
    let partial = folder.join(format!("{}.partial", mail.id));
    tokio::fs::write(&partial, &mail.message).await?;
    tokio::fs::rename(&partial, folder.join(format!("{}.eml", mail.id))).await
}

/// The worker that delivers the queue.
pub(crate) fn worker(post: Post) -> Worker {
    let due = Due {
        table: "mail",
        live: "work.status = 'queued'",
        due: "work.next_at <= $2",
        argument: String::new(),
    };
    let post = Arc::new(post);
    Worker::new("mail", due, move |job| {
        let post = Arc::clone(&post);
        async move { run(&job, &post).await }
    })
}

async fn run(job: &Job, post: &Post) -> Result<Next, Error> {
    for _ in 0..BATCH {
        let Some(mail) = job.write(&(), claim).await? else { return Ok(Next::WhenDue) };
        let tried = (post.deliver(&mail).await.err(), mail);
        job.write(&tried, note).await?;
        if let (Some(Failure::Unreachable(error)), _) = tried {
            return Err(Error::Internal(format!("mail cannot be delivered: {error}")));
        }
    }
    Ok(Next::Now)
}

/// Takes the next mail that is due. The attempt counts from here on, so that a mail that ends the process is not tried
/// for ever.
async fn claim(tx: &mut Tx<'_>, (): &()) -> Result<Option<Queued>, Error> {
    let (account, now) = (tx.account(), tx.now());
    let mail = sqlx::query_as(
        "update mail set attempts = attempts + 1, next_at = $3
         where account_id = $1 and id = (
            select id from mail where account_id = $1 and status = 'queued' and next_at <= $2
            order by next_at, id limit 1)
         returning id, sender, recipients, message, attempts",
    )
    .bind(account)
    .bind(now)
    .bind(now + AFTER_A_CRASH)
    .fetch_optional(tx.db())
    .await?;
    Ok(mail)
}

/// What became of it.
async fn note(tx: &mut Tx<'_>, (failure, mail): &(Option<Failure>, Queued)) -> Result<(), Error> {
    let (account, now) = (tx.account(), tx.now());
    let (status, error) = match failure {
        None => ("sent", ""),
        Some(Failure::Permanent(error)) => ("dead", error.as_str()),
        Some(Failure::Passing(error) | Failure::Unreachable(error)) => {
            (if mail.attempts >= ATTEMPTS { "dead" } else { "queued" }, error.as_str())
        }
    };
    match status {
        "dead" => tracing::error!(mail = %mail.id, attempts = mail.attempts, "a mail is a dead letter now"),
        "queued" => tracing::warn!(mail = %mail.id, attempts = mail.attempts, "a mail has to wait"),
        _ => tracing::info!(mail = %mail.id, "mail sent"),
    }
    metrics::counter!("mails_total", "outcome" => status).increment(1);
    let wait = backoff(mail.attempts.unsigned_abs(), FIRST_WAIT, MOST_WAIT);
    sqlx::query(
        "update mail set status = $3, last_error = $4, next_at = $5, done_at = $6
         where account_id = $1 and id = $2",
    )
    .bind(account)
    .bind(mail.id)
    .bind(status)
    // What the server says may be long.
    .bind(error.chars().take(1000).collect::<String>().replace('\0', ""))
    .bind(now + wait)
    .bind((status != "queued").then_some(now))
    .execute(tx.db())
    .await?;
    Ok(())
}
