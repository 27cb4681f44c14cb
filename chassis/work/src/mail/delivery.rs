//! Delivers queued mail: composes it, sends it and records the outcome for each recipient.

use std::sync::Arc;
use std::time::Duration;

use chassis_base::Error;
use chassis_base::error::chain;
use chassis_data::write::Tx;
use chrono::{DateTime, TimeDelta, Utc};
use prost::Message as _;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use uuid::Uuid;

use super::account_files::{AccountFiles, FileReference};
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
/// How many KiB of files of accounts are read into memory at the same time: what two of the largest mails have.
const MAX_LOADED_KIB: u32 = 20 << 10;
/// The characters that are stored of a server's reply.
const MAX_REASON: usize = 1000;

/// What became of an attempt at a delivery.
pub struct Attempted<'a> {
    pub mail: Uuid,
    pub status: Status,
    /// Why the last attempt failed; empty if it did not.
    pub error: &'a str,
    /// The files that the mail goes without, because they have been deleted.
    pub left_out: &'a [Uuid],
}

/// Told of every attempt at a delivery, in the transaction that records it: a record that shows the state of its mail
/// changes with it.
#[tonic::async_trait]
pub trait DeliveryObserver: Send + Sync {
    async fn attempted(&self, tx: &mut Tx<'_>, attempted: &Attempted<'_>) -> Result<(), Error>;
}

struct Delivery {
    mailer: Mailer,
    files: AccountFiles,
    /// Limits the files that are in memory; a permit for each KiB.
    memory: Arc<Semaphore>,
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
    files: AccountFiles,
    source: Option<Arc<dyn AttachmentSource>>,
    observer: Option<Arc<dyn DeliveryObserver>>,
) -> Worker {
    let due = Due::new("mail work", "work.status = 'queued'", "work.next_at");
    let memory = Arc::new(Semaphore::new(MAX_LOADED_KIB as usize));
    let delivery = Arc::new(Delivery { mailer, files, memory, source, observer });
    Worker::new("mail", due, move |job| {
        let delivery = Arc::clone(&delivery);
        async move { run(&job, &delivery).await }
    })
}

async fn run(job: &Job, delivery: &Delivery) -> Result<Next, Error> {
    for _ in 0..BATCH {
        let Some(mut mail) = job.write(&(), claim).await? else { return Ok(Next::WhenDue) };
        let (failure, left_out) = match delivery.message(job, &mail).await? {
            Ok(Composed { message, left_out, memory: _memory }) => {
                (delivery.deliver(job, &mut mail, &message).await?, left_out)
            }
            Err(failure) => (Some(failure), Vec::new()),
        };
        let attempt = Attempt { mail, failure, left_out, observer: delivery.observer.clone() };
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
    /// The deleted files that the message does not have.
    left_out: Vec<Uuid>,
    observer: Option<Arc<dyn DeliveryObserver>>,
}

/// A formatted message.
struct Composed {
    message: Vec<u8>,
    left_out: Vec<Uuid>,
    /// The share of the memory for files, until the message is sent.
    memory: Option<OwnedSemaphorePermit>,
}

/// An attachment that was to be loaded.
enum Loaded {
    Part(Part),
    /// The file with this id has been deleted.
    Deleted(Uuid),
}

impl Delivery {
    /// The formatted message, signed if the account has a key for the sender's domain.
    async fn message(&self, job: &Job, mail: &Queued) -> Result<Result<Composed, Failure>, Error> {
        if mail.attempts > MAX_ATTEMPTS {
            return Ok(Err(Failure::Permanent("every attempt at delivery was interrupted".to_owned())));
        }
        let composed = match self.compose(job, mail).await {
            Ok(composed) => composed,
            Err(failure) => return Ok(Err(failure)),
        };
        let domain = mail.sender.rsplit_once('@').map_or("", |(_, domain)| domain);
        let key =
            job.db().read(async |connection| keys::find(connection, job.account_id(), domain).await).await?;
        let Some(key) = key else { return Ok(Ok(composed)) };
        let signed = dkim::Signer::new(&key.pem).map_err(str::to_owned).and_then(|signer| {
            let key = dkim::SigningKey { domain: &key.domain, selector: &key.selector, signer: &signer };
            dkim::sign(&composed.message, &key, mail.created_at)
        });
        Ok(signed.map(|message| Composed { message, ..composed }).map_err(Failure::Permanent))
    }

    async fn compose(&self, job: &Job, mail: &Queued) -> Result<Composed, Failure> {
        // Mails that an earlier version of the program queued are stored as a complete message.
        if let Some(message) = &mail.message {
            return Ok(Composed { message: message.clone(), left_out: Vec::new(), memory: None });
        }
        let content =
            mail.content.as_deref().ok_or_else(|| Failure::Permanent("the mail is empty".to_owned()))?;
        let mut stored = Stored::decode(content).map_err(|error| Failure::Permanent(error.to_string()))?;
        let memory = self.reserve(job, &stored.parts).await;
        let mut left_out = Vec::new();
        for part in std::mem::take(&mut stored.parts) {
            match self.load(job, part).await? {
                Loaded::Part(part) => stored.parts.push(part),
                Loaded::Deleted(file) => {
                    tracing::warn!(mail = %mail.id, %file, "mail goes without a file that was deleted");
                    left_out.push(file);
                }
            }
        }
        // Encoding many megabytes would hold up what else this thread does.
        let (id, queued_at) = (mail.id, mail.created_at);
        let composing = tokio::task::spawn_blocking(move || {
            compose::compose(stored, id, queued_at).map(|message| message.formatted())
        });
        let message = composing.await.map_err(|error| Failure::Passing(error.to_string()))?;
        Ok(Composed { message: message.map_err(Failure::Permanent)?, left_out, memory })
    }

    /// Waits for the memory that the files of a mail take. Meanwhile the mail of other accounts goes on.
    async fn reserve(&self, job: &Job, parts: &[Part]) -> Option<OwnedSemaphorePermit> {
        let bytes = parts.iter().fold(0_u64, |sum, part| sum.saturating_add(part.size));
        if bytes == 0 {
            return None;
        }
        let kib = u32::try_from(bytes.div_ceil(1024)).unwrap_or(u32::MAX).min(MAX_LOADED_KIB);
        if let Ok(permit) = Arc::clone(&self.memory).try_acquire_many_owned(kib) {
            return Some(permit);
        }
        job.release_slot();
        // The semaphore is never closed, so acquiring cannot fail.
        let permit = Arc::clone(&self.memory).acquire_many_owned(kib).await.ok();
        job.reacquire_slot().await;
        permit
    }

    async fn load(&self, job: &Job, part: Part) -> Result<Loaded, Failure> {
        let Some(reference) = &part.later else { return Ok(Loaded::Part(part)) };
        let file = FileReference::parse(reference, part.size);
        let loading = async {
            match (&file, &self.source) {
                (Some(file), _) => Ok(self.files.read(job.account(), file).await),
                (None, Some(source)) => Ok(source.load(job.account(), reference).await),
                (None, None) => {
                    Err(Failure::Permanent(format!("nothing here makes the attachment {reference}")))
                }
            }
        };
        let loaded = tokio::time::timeout(LOAD_TIMEOUT, loading).await;
        match loaded.map_err(|_| Failure::Passing(format!("the attachment {reference} took too long")))?? {
            Ok(Some(attached)) => Ok(Loaded::Part(attached.into())),
            Ok(None) => match file {
                Some(file) => Ok(Loaded::Deleted(file.id)),
                None => Err(Failure::Permanent(format!("the attachment {reference} no longer exists"))),
            },
            Err(error) => Err(Failure::Passing(format!("the attachment {reference}: {}", chain(&error)))),
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
    let Attempt { mail, failure, left_out, observer } = attempt;
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
        Some(observer) => {
            observer.attempted(tx, &Attempted { mail: mail.id, status, error: &error, left_out }).await
        }
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
