//! `MailIntakeService`: reads a mail and stores its files, then hands it over to the transaction.

use std::sync::Arc;

use bytes::Bytes;
use chassis::call::Context;
use chassis::files::Key;
use chassis::{AccountId, Call, Db, Files, Tx};
use proto::At;
use proto::api::Fault;
use proto::support::mail_intake_service_server::MailIntakeService;
use proto::support::{IntakeOutcome, ReceiveMailRequest, ReceiveMailResponse};
use tokio::sync::Semaphore;
use tonic::{Request, Response, Status};

use super::MOST;
use super::mail::{self, Attached, Mail};
use super::operations::{self, Prepared};
use crate::Error;
use crate::address::OwnDomain;
use crate::clients::Clients;
use crate::message::{self, Attachment};

/// What kind of files attachments are.
pub const AREA: &str = "attachments";
/// How many mails are read at once: each may be large, and be taken apart into as much again.
const AT_ONCE: usize = 4;

#[derive(Clone)]
pub struct Intake {
    pub db: Db,
    pub files: Files,
    pub own: OwnDomain,
    pub clients: Clients,
    pub room: Arc<Semaphore>,
}

impl Intake {
    pub fn new(db: Db, files: Files, own: OwnDomain, clients: Clients) -> Self {
        Self { db, files, own, clients, room: Arc::new(Semaphore::new(AT_ONCE)) }
    }

    /// Reads a mail, stores its files, and looks who wrote it.
    async fn prepare(
        &self,
        context: &Context,
        input: &ReceiveMailRequest,
    ) -> Result<Option<Prepared>, Error> {
        let account = context.account_id();
        let (raw, sender) = (input.message.clone(), envelope_sender(&input.sender));
        let read = tokio::task::spawn_blocking(move || mail::read(&raw, sender.as_deref())).await;
        let read = read.map_err(|error| chassis::Error::Internal(format!("a mail was not read: {error}")))?;
        let Some(mut mail) = read else { return Ok(None) };
        let files = std::mem::take(&mut mail.attachments);
        let (mut attachments, mut client) = (Vec::new(), None);
        if self.is_wanted(account, &mail).await? {
            attachments = self.store(account, files).await?;
            client = self.clients.with_address(context, &mail.from_email).await;
        }
        Ok(Some(Prepared { mail, attachments, client, own: self.own.clone() }))
    }

    /// Whether it will be kept, as far as that can be said before the transaction.
    async fn is_wanted(&self, account: AccountId, mail: &Mail) -> Result<bool, Error> {
        if mail.automatic.is_some() || mail.from_email.is_empty() {
            return Ok(false);
        }
        let mut connection = self.db.read().await?;
        let known = message::store::find_by_message_id(&mut connection, account, &mail.message_id).await?;
        connection.done();
        Ok(known.is_none())
    }

    async fn store(&self, account: AccountId, files: Vec<Attached>) -> Result<Vec<Attachment>, Error> {
        let mut stored = Vec::with_capacity(files.len());
        for Attached { id, name, content_type, bytes } in files {
            let size = i64::try_from(bytes.len()).unwrap_or(i64::MAX);
            self.files.put(&Key::new(account, AREA, id), Bytes::from(bytes)).await?;
            stored.push(Attachment { id, name, content_type, size });
        }
        Ok(stored)
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
        let mut call = Call::open(request)?;
        let at = At::ROOT;
        if call.input.message.is_empty() {
            call.faults.add(&at.name("message"), Fault::Required, "message is required");
        } else if call.input.message.len() > MOST {
            let detail = format!("message must have at most {MOST} bytes");
            call.faults.add(&at.name("message"), Fault::TooLong, detail);
        }
        let place = self.room.acquire().await;
        let prepared =
            if call.faults.is_empty() { self.prepare(&call.context, &call.input).await? } else { None };
        if prepared.is_none() && call.faults.is_empty() {
            let detail = "message must be a mail as RFC 5322 describes it, with fewer parts";
            call.faults.add(&at.name("message"), Fault::BadFormat, detail);
        }
        drop(place);
        let prepared = prepared.unwrap_or_else(|| Prepared {
            mail: Mail::default(),
            attachments: Vec::new(),
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
