//! Stores a mail as a message of its ticket, or of a new ticket: load, decide, store, record.

use chassis_base::id;
use chassis_data::Tx;
use proto::At;
use proto::api::Fault;
use proto::support::{IntakeOutcome, ReceiveMailRequest, ReceiveMailResponse, TicketPriority};
use uuid::Uuid;

use super::mail::Mail;
use super::{Prepared, events, routing};
use crate::automatic::Automatic;
use crate::error::Error;
use crate::status::rules::OPEN;
use crate::ticket::{self, NewTicket};
use crate::{channel, message};

/// The subject of a ticket whose mail has none.
const NO_SUBJECT: &str = "(no subject)";

/// Stores a mail once: the same mail that comes again finds its message. Two transactions that store it at the same time
/// meet at the unique index of the message ids; the second runs again and finds it.
pub(super) async fn receive(
    tx: &mut Tx<'_>,
    input: &ReceiveMailRequest,
    prepared: &Prepared,
) -> Result<ReceiveMailResponse, Error> {
    tx.valid()?;
    let account = tx.account();
    let Prepared { mail, own, .. } = prepared;
    if mail.from_email.is_empty() {
        return Ok(ignored("it does not say whom it comes from"));
    }
    if let Some(stored) = message::store::find_by_message_id(tx.db(), account, &mail.message_id).await? {
        return Ok(if stored.inbound {
            answer(IntakeOutcome::Duplicate, stored.ticket_id, stored.id)
        } else {
            ignored("it is one of our own")
        });
    }
    // A mail that a flow caused, in this account or another, continues that chain of events; the depth says how long it is.
    tx.caused_at(mail.depth);
    let recipients = recipients(input, mail);
    let found = match routing::find_ticket(tx, own, mail, &recipients).await? {
        Some(id) => ticket::store::find_locked(tx.db(), account, id).await?,
        None => None,
    };
    let (mut ticket, outcome) = match found {
        Some(ticket) => (ticket, IntakeOutcome::Added),
        None => (open(tx, input, prepared, &recipients).await?, IntakeOutcome::Opened),
    };
    let since = ticket.version;
    if outcome == IntakeOutcome::Added {
        ticket::count_change(tx, &mut ticket);
    }
    let message = new_message(tx, prepared);
    // A ticket that was created for this message keeps its first status. Mail of a program does not reopen a ticket.
    let opens = outcome == IntakeOutcome::Added && mail.automatic != Automatic::Program;
    message::add(tx, &mut ticket, since, &message, opens.then_some(OPEN)).await?;
    chassis_work::files::list(tx, &prepared.files).await?;
    for attachment in &message.attachments {
        events::file_stored(tx, &ticket, &message, attachment);
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

/// The recipients of the envelope. Without an envelope, the recipients that the headers name.
fn recipients(input: &ReceiveMailRequest, mail: &Mail) -> Vec<String> {
    if input.recipients.is_empty() {
        mail.delivered_to.iter().chain(&mail.to).chain(&mail.cc).cloned().collect()
    } else {
        input.recipients.clone()
    }
}

/// Creates a ticket for a mail, in the channel that the mail came through.
async fn open(
    tx: &mut Tx<'_>,
    input: &ReceiveMailRequest,
    prepared: &Prepared,
    recipients: &[String],
) -> Result<ticket::Record, Error> {
    let account = tx.account();
    let mail = &prepared.mail;
    let channels = channel::store::list(tx.db(), account, true).await?;
    let requested = id::parse(&input.channel_id);
    let requested = channels.iter().find(|channel| Some(channel.id) == requested);
    if requested.is_none() && !input.channel_id.is_empty() {
        let detail = "channel_id must be the id of an active channel of this account";
        tx.faults.add(&At::ROOT.name("channel_id"), Fault::UnknownReference, detail);
        tx.valid()?;
    }
    let addressed = routing::find_channel(&prepared.own, account, &channels, recipients);
    let channel = addressed.or(requested).or(channels.first());
    let subject = if mail.subject.is_empty() { NO_SUBJECT } else { &mail.subject };
    let client_email = if mail.reply_to.is_empty() { &mail.from_email } else { &mail.reply_to };
    let client = prepared.client.as_ref();
    let name_of_client = || client.map(|client| client.name.clone()).unwrap_or_default();
    let values = ticket::Values {
        subject: subject.to_owned(),
        priority: TicketPriority::Normal,
        client_name: if mail.from_name.is_empty() { name_of_client() } else { mail.from_name.clone() },
        client_email: client_email.clone(),
        client_id: client.map(|client| client.id),
    };
    let new = NewTicket {
        values,
        source: ticket::Source::Email,
        automatic: mail.automatic,
        channel_id: channel.map(|channel| channel.id),
    };
    ticket::insert(tx, new).await
}

fn new_message(tx: &Tx<'_>, prepared: &Prepared) -> message::Record {
    let mail = &prepared.mail;
    message::Record {
        id: tx.id(),
        version: 1,
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
        updated_at: tx.now(),
    }
}
