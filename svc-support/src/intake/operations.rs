//! Storing a mail: as a message of its ticket, or of a new one.

use chassis::{Event, Tx, id};
use proto::At;
use proto::api::Fault;
use proto::support::{IntakeOutcome, ReceiveMailRequest, ReceiveMailResponse, TicketPriority};
use serde_json::json;
use uuid::Uuid;

use super::find;
use super::mail::Mail;
use super::rpc::AREA;
use crate::address::OwnDomain;
use crate::clients::Client;
use crate::message::{self, Attachment, Automatic};
use crate::status::rules::OPEN;
use crate::{Error, channel, ticket};

/// What a mail without a subject is called.
const NO_SUBJECT: &str = "(no subject)";

/// A mail that was read, and whose files are stored.
#[derive(Clone)]
pub struct Prepared {
    pub mail: Mail,
    pub attachments: Vec<Attachment>,
    /// What the files of these are called.
    pub files: Vec<String>,
    /// The client who wrote it, if that is known.
    pub client: Option<Client>,
    pub own: OwnDomain,
}

pub async fn receive(
    tx: &mut Tx<'_>,
    (input, prepared): &(ReceiveMailRequest, Prepared),
) -> Result<ReceiveMailResponse, Error> {
    tx.valid()?;
    let (account, Prepared { mail, own, .. }) = (tx.account(), prepared);
    if mail.from_email.is_empty() {
        return Ok(ignored("it does not say whom it comes from"));
    }
    if let Some(known) = message::store::find_by_message_id(tx.db(), account, &mail.message_id).await? {
        return Ok(if known.inbound {
            answer(IntakeOutcome::Duplicate, known.ticket_id, known.id)
        } else {
            ignored("it is one of our own")
        });
    }
    // What a flow caused, in this account or another, goes on from where it was.
    tx.caused_at(mail.depth);
    let recipients = recipients(input, mail);
    let found = match find::ticket(tx, own, mail, &recipients).await? {
        Some(id) => ticket::store::find_locked(tx.db(), account, id).await?,
        None => None,
    };
    let (mut ticket, outcome) = match found {
        Some(ticket) => (ticket, IntakeOutcome::Added),
        None => (open(tx, input, prepared, &recipients).await?, IntakeOutcome::Opened),
    };
    let message = message(tx, prepared);
    // A ticket that was opened for this message stays new, and what a program says opens none again.
    let opens = outcome == IntakeOutcome::Added && mail.automatic != Automatic::Program;
    message::add(tx, &mut ticket, &message, opens.then_some(OPEN)).await?;
    tx.list_files(&prepared.files).await?;
    for attachment in &message.attachments {
        tell_of_file(tx, &ticket, &message, attachment);
    }
    Ok(answer(outcome, ticket.id, message.id))
}

fn ignored(reason: &str) -> ReceiveMailResponse {
    ReceiveMailResponse {
        outcome: IntakeOutcome::Ignored.into(),
        reason: reason.to_owned(),
        ..ReceiveMailResponse::default()
    }
}

fn answer(outcome: IntakeOutcome, ticket: Uuid, message: Uuid) -> ReceiveMailResponse {
    ReceiveMailResponse {
        outcome: outcome.into(),
        ticket_id: ticket.to_string(),
        message_id: message.to_string(),
        reason: String::new(),
    }
}

/// Whom the mail was handed over for, or whom it says that it is for.
fn recipients(input: &ReceiveMailRequest, mail: &Mail) -> Vec<String> {
    if input.recipients.is_empty() {
        mail.delivered_to.iter().chain(&mail.to).chain(&mail.cc).cloned().collect()
    } else {
        input.recipients.clone()
    }
}

/// Opens a ticket for a mail, in the channel that it came through.
async fn open(
    tx: &mut Tx<'_>,
    input: &ReceiveMailRequest,
    prepared: &Prepared,
    recipients: &[String],
) -> Result<ticket::Record, Error> {
    let (account, mail) = (tx.account(), &prepared.mail);
    let channels = channel::store::list(tx.db(), account, true).await?;
    let named = id::parse(&input.channel_id);
    let named = channels.iter().find(|channel| Some(channel.id) == named);
    if named.is_none() && !input.channel_id.is_empty() {
        let detail = "channel_id must be the id of an active channel of this account";
        tx.faults.add(&At::ROOT.name("channel_id"), Fault::UnknownReference, detail);
        tx.valid()?;
    }
    let through = find::channel(&prepared.own, account, &channels, recipients);
    let channel = through.or(named).or(channels.first()).map(|channel| channel.id);
    let subject = if mail.subject.is_empty() { NO_SUBJECT } else { &mail.subject };
    let client_email = if mail.reply_to.is_empty() { &mail.from_email } else { &mail.reply_to };
    let client = prepared.client.as_ref();
    let known_name = || client.map(|client| client.name.clone()).unwrap_or_default();
    let values = ticket::Values {
        subject: subject.to_owned(),
        priority: TicketPriority::Normal,
        client_name: if mail.from_name.is_empty() { known_name() } else { mail.from_name.clone() },
        client_email: client_email.clone(),
        client_id: client.map(|client| client.id),
    };
    ticket::insert(tx, values, (ticket::Source::Email, mail.automatic), channel).await
}

fn message(tx: &Tx<'_>, prepared: &Prepared) -> message::Record {
    let mail = &prepared.mail;
    message::Record {
        id: tx.id(),
        inbound: true,
        note: false,
        body: mail.text.clone(),
        html: mail.html.clone(),
        author_name: mail.from_name.clone(),
        author_email: mail.from_email.clone(),
        author_user_id: None,
        to: mail.to.clone(),
        cc: mail.cc.clone(),
        message_id: mail.message_id.clone(),
        mail_id: None,
        attachments: prepared.attachments.clone(),
        automatic: mail.automatic,
        created_at: tx.now(),
    }
}

/// Whoever keeps the list of the account's files hears of this one.
fn tell_of_file(
    tx: &mut Tx<'_>,
    ticket: &ticket::Record,
    message: &message::Record,
    attachment: &Attachment,
) {
    let Attachment { id, name, content_type, size } = attachment;
    let data = json!({
        "id": id,
        "name": name,
        "content_type": content_type,
        "size": size,
        "service": "support",
        "area": AREA,
        "key": id.simple().to_string(),
        "source": {
            "type": "ticket_message",
            "id": message.id,
            "parent_type": "ticket",
            "parent_id": ticket.id,
        },
        "client_id": ticket.values.client_id,
        "created_at": message.created_at.to_rfc3339_opts(chrono::SecondsFormat::Millis, true),
    });
    tx.emit(&Event {
        kind: "file.stored",
        entity_type: "file",
        entity_id: *id,
        version: 1,
        data: data.to_string(),
    });
}
