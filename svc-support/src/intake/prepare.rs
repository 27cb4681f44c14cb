//! `MailIntakeService`: reads a mail and stores its files, then hands it over to the transaction. The bytes of the mail
//! end when it has been read, those of its files as they are stored.

use std::sync::Arc;

use bytes::Bytes;
use chassis::call::Context;
use chassis::files::Key;
use chassis::{AccountId, Call, Db, Files, Tx};
use proto::At;
use proto::api::Fault;
use proto::support::mail_intake_service_server::MailIntakeService;
use proto::support::{IntakeOutcome, ReceiveMailRequest, ReceiveMailResponse};
use sha2::{Digest, Sha256};
use tokio::sync::Semaphore;
use tonic::{Request, Response, Status};
use uuid::Uuid;

use super::bounded::Held;
use super::mail::{self, Attached, Mail};
use super::max_bytes;
use super::memory::Memory;
use super::operations::{self, Prepared};
use crate::Error;
use crate::address::OwnDomain;
use crate::clients::Clients;
use crate::message::{self, Attachment};

/// What kind of files attachments are.
pub const AREA: &str = "attachments";
/// How many mails are read at once: while that lasts, the files of a mail are there twice, as they came and as they are.
const MAX_READING: usize = 2;

#[derive(Clone)]
pub struct Intake {
    pub db: Db,
    pub files: Files,
    pub own: OwnDomain,
    pub clients: Clients,
    pub memory: Arc<Memory>,
    reading: Arc<Semaphore>,
}

impl Intake {
    pub fn new(db: Db, files: Files, own: OwnDomain, clients: Clients, memory: Arc<Memory>) -> Self {
        Self { db, files, own, clients, memory, reading: Arc::new(Semaphore::new(MAX_READING)) }
    }

    /// Reads a mail, stores its files, and looks who wrote it.
    async fn prepare(
        &self,
        context: &Context,
        (raw, sender): (Bytes, &str),
    ) -> Result<Option<Prepared>, Error> {
        let account = context.account_id();
        let Some(mut mail) = self.read(raw, envelope_sender(sender)).await? else { return Ok(None) };
        let (files, max) = (std::mem::take(&mut mail.attachments), self.files.max_bytes());
        if let Some(file) = files.iter().find(|file| file.bytes.len() > max) {
            return Err(Error::AttachmentTooLarge { name: file.name.clone(), max });
        }
        let (mut attachments, mut client) = (Vec::new(), None);
        if self.is_wanted(account, &mail).await? {
            attachments = self.store(context, files).await?;
            client = self.clients.with_address(context, &mail.from_email).await;
        }
        let files = self.names(account, &attachments);
        Ok(Some(Prepared { mail, attachments, files, client, own: self.own.clone() }))
    }

    async fn read(&self, raw: Bytes, sender: Option<String>) -> Result<Option<Mail>, Error> {
        let turn = Arc::clone(&self.reading).acquire_owned().await;
        let read = tokio::task::spawn_blocking(move || {
            let _turn = turn;
            mail::read(&raw, sender.as_deref())
        });
        let read = read.await;
        Ok(read.map_err(|error| chassis::Error::Internal(format!("a mail was not read: {error}")))?)
    }

    /// Whether it will be kept, as far as that can be said before the transaction.
    async fn is_wanted(&self, account: AccountId, mail: &Mail) -> Result<bool, Error> {
        if mail.from_email.is_empty() {
            return Ok(false);
        }
        let mut connection = self.db.read().await?;
        let known = message::store::find_by_message_id(&mut connection, account, &mail.message_id).await?;
        connection.done();
        Ok(known.is_none())
    }

    /// Keeps the bytes of files, which the transaction lists. Each has a new id: a mail that comes again finds its files
    /// listed already, and what it brought is removed.
    async fn store(&self, context: &Context, files: Vec<Attached>) -> Result<Vec<Attachment>, Error> {
        let (account, ids) = (context.account(), files.iter().map(|_| context.clock.id()));
        let keys: Vec<(Uuid, Key)> = ids.map(|id| (id, Key::new(account.id, AREA, id))).collect();
        let new: Vec<Key> = keys.iter().map(|(_, key)| key.clone()).collect();
        self.db.expect_files(&self.files, account, &new).await?;
        let mut stored = Vec::with_capacity(files.len());
        for ((id, key), Attached { name, content_type, bytes }) in keys.into_iter().zip(files) {
            let size = i64::try_from(bytes.len()).unwrap_or(i64::MAX);
            self.files.put(&key, Bytes::from(bytes)).await?;
            stored.push(Attachment { id, name, content_type, size });
        }
        Ok(stored)
    }

    /// What the files of attachments are called.
    fn names(&self, account: AccountId, attachments: &[Attachment]) -> Vec<String> {
        let name = |file: &Attachment| self.files.reference(&Key::new(account, AREA, file.id));
        attachments.iter().map(name).collect()
    }
}

/// `None` when it is not known, `""` when there is none.
fn envelope_sender(text: &str) -> Option<String> {
    match text.trim() {
        "" => None,
        "<>" => Some(String::new()),
        sender => Some(sender.to_owned()),
    }
}

#[tonic::async_trait]
impl MailIntakeService for Intake {
    async fn receive_mail(
        &self,
        request: Request<ReceiveMailRequest>,
    ) -> Result<Response<ReceiveMailResponse>, Status> {
        let held = request.extensions().get::<Held>().cloned();
        let mut call = Call::open(request)?;
        let raw = std::mem::take(&mut call.input.message);
        if let Some(held) = &held {
            held.shrink_to(raw.len());
        }
        // What makes two calls the same is what they bring.
        if call.context.idempotency_key.is_some() {
            call.input.message = Sha256::digest(&raw).to_vec().into();
        }
        let (at, max) = (At::ROOT, max_bytes(&self.memory));
        if raw.is_empty() {
            call.faults.add(&at.name("message"), Fault::Required, "message is required");
        } else if raw.len() > max {
            let detail = format!("message must have at most {max} bytes");
            call.faults.add(&at.name("message"), Fault::TooLong, detail);
        }
        let prepared = if call.faults.is_empty() {
            self.prepare(&call.context, (raw, &call.input.sender)).await?
        } else {
            None
        };
        if prepared.is_none() && call.faults.is_empty() {
            let detail = "message must be a mail as RFC 5322 describes it, with fewer parts";
            call.faults.add(&at.name("message"), Fault::BadFormat, detail);
        }
        let prepared = prepared.unwrap_or_else(|| Prepared {
            mail: Mail::default(),
            attachments: Vec::new(),
            files: Vec::new(),
            client: None,
            own: self.own.clone(),
        });
        let answer = self.db.write_with(call, prepared, receive).await?;
        note(answer.get_ref());
        Ok(answer)
    }
}

async fn receive(
    tx: &mut Tx<'_>,
    with: &(ReceiveMailRequest, Prepared),
) -> Result<ReceiveMailResponse, Error> {
    operations::receive(tx, with).await
}

fn note(answer: &ReceiveMailResponse) {
    let outcome = match answer.outcome() {
        IntakeOutcome::Opened => "opened",
        IntakeOutcome::Added => "added",
        IntakeOutcome::Duplicate => "duplicate",
        IntakeOutcome::Ignored | IntakeOutcome::Unspecified => "ignored",
    };
    metrics::counter!("mails_in_total", "outcome" => outcome).increment(1);
    tracing::info!(outcome, ticket = answer.ticket_id, reason = answer.reason, "mail taken in");
}
