//! Delivers queued mail: composes it, sends it and records the outcome for each recipient.

use std::sync::Arc;
use std::time::Duration;

use chassis_base::Error;
use chassis_base::error::chain;
use chassis_data::write::Tx;
use chrono::{DateTime, TimeDelta, Utc};
use prost::Message as _;
use uuid::Uuid;

use super::mailer::{Failure, Mailer};
use super::message::AttachmentSource;
use super::outcome::{Refused, Status};
use super::stored::{Part, Stored};
use super::{compose, dkim, keys};
use crate::worker::{Due, Job, Next, Worker, backoff};

/// The number of attempts before a mail is dead, over about two hours.
pub const MAX_ATTEMPTS: i32 = 10;
/// The number of attempts to all recipients in one SMTP transaction. A temporary refusal is mostly about the mail or
/// the server. If it persists, it may be about one recipient, for whom the rest should not wait.
const MAX_JOINT_ATTEMPTS: i32 = 3;
const INITIAL_BACKOFF: TimeDelta = TimeDelta::seconds(15);
const MAX_BACKOFF: TimeDelta = TimeDelta::hours(1);
/// The wait before a mail is retried whose delivery was interrupted by a crash.
const RECOVERY_DELAY: TimeDelta = TimeDelta::minutes(1);
/// How many mails one job delivers.
const BATCH: usize = 20;
/// For creating or fetching one attachment.
const LOAD_TIMEOUT: Duration = Duration::from_mins(1);
/// The characters that are stored of a server's reply.
const MAX_REASON: usize = 1000;

/// Told of every attempt at a delivery, in the transaction that records it: a record that shows the state of its mail
/// changes with it.
#[tonic::async_trait]
pub trait DeliveryObserver: Send + Sync {
    /// `error` says why the last attempt failed; empty if it did not.
    async fn attempted(&self, tx: &mut Tx<'_>, mail: Uuid, status: Status, error: &str) -> Result<(), Error>;
}

struct Delivery {
    mailer: Mailer,
    source: Option<Arc<dyn AttachmentSource>>,
    observer: Option<Arc<dyn DeliveryObserver>>,
}

#[derive(chassis_derive::FromRow)]
struct Queued {
    id: Uuid,
    sender: String,
    recipients: Vec<String>,
    message: Option<Vec<u8>>,
    content: Option<Vec<u8>>,
    accepted: Vec<String>,
    refused: Refused,
    attempts: i32,
    created_at: DateTime<Utc>,
}

impl Queued {
    /// The recipients without an outcome.
    fn open(&self) -> Vec<&String> {
        let is_open = |to: &&String| !self.accepted.contains(to) && !self.refused.contains_key(*to);
        self.recipients.iter().filter(is_open).collect()
    }
}

/// The worker that delivers the queue.
pub fn worker(
    mailer: Mailer,
    source: Option<Arc<dyn AttachmentSource>>,
    observer: Option<Arc<dyn DeliveryObserver>>,
) -> Worker {
    let due = Due::new("mail work", "work.status = 'queued'", "work.next_at");
    let delivery = Arc::new(Delivery { mailer, source, observer });
    Worker::new("mail", due, move |job| {
        let delivery = Arc::clone(&delivery);
        async move { run(&job, &delivery).await }
    })
}

async fn run(job: &Job, delivery: &Delivery) -> Result<Next, Error> {
    for _ in 0..BATCH {
        let Some(mut mail) = job.write(&(), claim).await? else { return Ok(Next::WhenDue) };
        let failure = match delivery.message(job, &mail).await? {
            Ok(message) => delivery.deliver(job, &mut mail, &message).await?,
            Err(failure) => Some(failure),
        };
        let attempt = Attempt { mail, failure, observer: delivery.observer.clone() };
        job.write(&attempt, record_attempt).await?;
        if let Some(Failure::Unreachable(error)) = attempt.failure {
            return Err(Error::Internal(format!("mail cannot be delivered: {error}")));
        }
    }
    Ok(Next::Now)
}

/// One attempt at a delivery.
struct Attempt {
    mail: Queued,
    /// `None` when every recipient has an outcome.
    failure: Option<Failure>,
    observer: Option<Arc<dyn DeliveryObserver>>,
}

impl Delivery {
    /// The formatted message, signed if the account has a key for the sender's domain.
    async fn message(&self, job: &Job, mail: &Queued) -> Result<Result<Vec<u8>, Failure>, Error> {
        if mail.attempts > MAX_ATTEMPTS {
            return Ok(Err(Failure::Permanent("every attempt at delivery was interrupted".to_owned())));
        }
        let message = match self.compose(job, mail).await {
            Ok(message) => message,
            Err(failure) => return Ok(Err(failure)),
        };
        let domain = mail.sender.rsplit_once('@').map_or("", |(_, domain)| domain);
        let key =
            job.db().read(async |connection| keys::find(connection, job.account_id(), domain).await).await?;
        let Some(key) = key else { return Ok(Ok(message)) };
        let signed = dkim::Signer::new(&key.pem).map_err(str::to_owned).and_then(|signer| {
            let key = dkim::SigningKey { domain: &key.domain, selector: &key.selector, signer: &signer };
            dkim::sign(&message, &key, mail.created_at)
        });
        Ok(signed.map_err(Failure::Permanent))
    }

    async fn compose(&self, job: &Job, mail: &Queued) -> Result<Vec<u8>, Failure> {
        // Mails that an earlier version of the program queued are stored as a complete message.
        if let Some(message) = &mail.message {
            return Ok(message.clone());
        }
        let content =
            mail.content.as_deref().ok_or_else(|| Failure::Permanent("the mail is empty".to_owned()))?;
        let mut stored = Stored::decode(content).map_err(|error| Failure::Permanent(error.to_string()))?;
        for part in &mut stored.parts {
            if let Some(reference) = part.later.take() {
                *part = self.load(job, &reference).await?;
            }
        }
        let message = compose::compose(&stored, mail.id, mail.created_at).map_err(Failure::Permanent)?;
        Ok(message.formatted())
    }

    async fn load(&self, job: &Job, reference: &str) -> Result<Part, Failure> {
        let Some(source) = &self.source else {
            return Err(Failure::Permanent(format!("nothing here makes the attachment {reference}")));
        };
        match tokio::time::timeout(LOAD_TIMEOUT, source.load(job.account(), reference)).await {
            Ok(Ok(Some(attached))) => Ok(attached.into()),
            Ok(Ok(None)) => Err(Failure::Permanent(format!("the attachment {reference} no longer exists"))),
            Ok(Err(error)) => Err(Failure::Passing(format!("the attachment {reference}: {}", chain(&error)))),
            Err(_) => Err(Failure::Passing(format!("the attachment {reference} took too long"))),
        }
    }

    /// Sends the message to all recipients without an outcome, in one SMTP transaction if possible. A permanent refusal
    /// may be about one recipient only, so the message is then sent to each recipient separately.
    async fn deliver(&self, job: &Job, mail: &mut Queued, message: &[u8]) -> Result<Option<Failure>, Error> {
        let open: Vec<String> = mail.open().into_iter().cloned().collect();
        if open.is_empty() {
            return Ok(None);
        }
        if mail.attempts <= MAX_JOINT_ATTEMPTS || open.len() == 1 {
            let all: Vec<&String> = open.iter().collect();
            match self.mailer.send(mail.id, &mail.sender, &all, message).await {
                Ok(()) => {
                    mail.accepted.extend(open);
                    // Recorded apart from what follows from it, which may fail: the mail must not be sent again for that.
                    job.write(&*mail, progress).await?;
                    return Ok(None);
                }
                Err(Failure::Permanent(_)) if open.len() > 1 => {}
                Err(failure) => return Ok(refused(mail, open.first(), failure)),
            }
        }
        let mut last = None;
        for recipient in &open {
            match self.mailer.send(mail.id, &mail.sender, &[recipient], message).await {
                Ok(()) => {
                    mail.accepted.push(recipient.clone());
                    // Recorded before the next recipient, so that a crash does not cause a duplicate.
                    job.write(&*mail, progress).await?;
                }
                Err(failure @ Failure::Unreachable(_)) => return Ok(Some(failure)),
                Err(failure) => last = refused(mail, Some(recipient), failure).or(last),
            }
        }
        Ok(last)
    }
}

/// Records a permanent refusal of one recipient; returns any other failure.
fn refused(mail: &mut Queued, recipient: Option<&String>, failure: Failure) -> Option<Failure> {
    match (failure, recipient) {
        (Failure::Permanent(said), Some(recipient)) => {
            mail.refused.insert(recipient.clone(), storable(&said));
            None
        }
        (failure, _) => Some(failure),
    }
}

/// Makes a server's reply fit the column: no NUL, limited length.
fn storable(text: &str) -> String {
    text.chars().filter(|character| *character != '\0').take(MAX_REASON).collect()
}

/// Claims the next mail that is due. The attempt is counted and committed first, so that a mail that crashes the
/// process is not retried forever.
async fn claim(tx: &mut Tx<'_>, (): &()) -> Result<Option<Queued>, Error> {
    let (account, now) = (tx.account(), tx.now());
    let mail = sqlx::query_as(
        "update mail set attempts = attempts + 1, next_at = $3
         where account_id = $1 and id = (
            select id from mail where account_id = $1 and status = 'queued' and next_at <= $2
            order by next_at, id limit 1)
         returning id, sender, recipients, message, content, accepted, refused, attempts, created_at",
    )
    .bind(account)
    .bind(now)
    .bind(now + RECOVERY_DELAY)
    .fetch_optional(tx.db())
    .await?;
    Ok(mail)
}

/// Records the outcomes so far.
async fn progress(tx: &mut Tx<'_>, mail: &Queued) -> Result<(), Error> {
    let account = tx.account();
    sqlx::query("update mail set accepted = $3, refused = $4 where account_id = $1 and id = $2")
        .bind(account)
        .bind(mail.id)
        .bind(&mail.accepted)
        .bind(&mail.refused)
        .execute(tx.db())
        .await?;
    Ok(())
}

async fn record_attempt(tx: &mut Tx<'_>, attempt: &Attempt) -> Result<(), Error> {
    let Attempt { mail, failure, observer } = attempt;
    let (account, now) = (tx.account(), tx.now());
    let status = attempt.status();
    let name = match status {
        Status::Dead => {
            tracing::error!(mail = %mail.id, attempts = mail.attempts, "mail given up, now a dead letter");
            "dead"
        }
        Status::Queued => {
            tracing::warn!(mail = %mail.id, attempts = mail.attempts, "mail delivery deferred");
            "queued"
        }
        Status::Sent => {
            tracing::info!(mail = %mail.id, "mail sent");
            "sent"
        }
    };
    metrics::counter!("mails_total", "outcome" => name).increment(1);
    let wait = backoff(mail.attempts.unsigned_abs(), INITIAL_BACKOFF, MAX_BACKOFF);
    let error = explanation(failure.as_ref(), mail);
    sqlx::query(
        "update mail set status = $3, last_error = $4, next_at = $5, done_at = $6, accepted = $7, refused = $8
         where account_id = $1 and id = $2",
    )
    .bind(account)
    .bind(mail.id)
    .bind(status)
    .bind(&error)
    .bind(now + wait)
    .bind((status != Status::Queued).then_some(now))
    .bind(&mail.accepted)
    .bind(&mail.refused)
    .execute(tx.db())
    .await?;
    match observer {
        Some(observer) => observer.attempted(tx, mail.id, status, &error).await,
        None => Ok(()),
    }
}

impl Attempt {
    /// The status of the mail after the attempt.
    fn status(&self) -> Status {
        let Self { mail, failure, .. } = self;
        match failure {
            Some(Failure::Permanent(_)) => Status::Dead,
            _ if mail.open().is_empty() && mail.refused.is_empty() => Status::Sent,
            _ if mail.open().is_empty() || mail.attempts >= MAX_ATTEMPTS => Status::Dead,
            _ => Status::Queued,
        }
    }
}

fn explanation(failure: Option<&Failure>, mail: &Queued) -> String {
    let mut said: Vec<String> = mail.refused.iter().map(|(to, said)| format!("{to}: {said}")).collect();
    if let Some(Failure::Passing(error) | Failure::Unreachable(error) | Failure::Permanent(error)) = failure {
        said.push(error.clone());
    }
    storable(&said.join("; "))
}
