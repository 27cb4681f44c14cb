//! Adding a message of ours to a ticket.

use std::collections::HashMap;

use chassis::mail::Mailbox;
use chassis::{Tx, id, mail};
use proto::api::Fault;
use proto::support::{CreateTicketMessageRequest, TicketMessageInput, TicketMessageType};
use proto::{At, Faults};
use uuid::Uuid;

use super::letter::{self, Desk};
use super::{Automatic, Record, content, store};
use crate::status::rules::{WAITING, after};
use crate::{Error, channel, status, ticket};

/// Of `to` and `cc` together.
const MOST_RECIPIENTS: usize = 20;

/// What a request says, taken apart.
struct Wanted {
    note: bool,
    to: Vec<Mailbox>,
    cc: Vec<Mailbox>,
    author_email: String,
}

/// Stores a message, mails it when it is a reply, and moves its ticket on.
pub async fn create(
    tx: &mut Tx<'_>,
    (input, desk): &(CreateTicketMessageRequest, Desk),
) -> Result<Record, Error> {
    let given = input.message.clone().unwrap_or_default();
    let wanted = read(&given, &mut tx.faults);
    id::forgive(&mut tx.faults);
    let account = tx.account();
    let found = match id::parse(&input.id) {
        Some(id) => ticket::store::find_locked(tx.db(), account, id).await?,
        None => None,
    };
    // The faults of the body come before an unknown id.
    tx.valid()?;
    let mut ticket = found.ok_or(Error::NotFound("ticket"))?;
    let channel = channel::store::find_for(tx.db(), account, ticket.channel_id).await?;
    let mut record = message(tx, &given, &wanted, channel.as_ref());
    let Wanted { note, mut to, cc, .. } = wanted;
    if !note {
        if to.is_empty() {
            to.extend(mail::mailbox(&ticket.values.client_name, &ticket.values.client_email));
        }
        (record.to, record.cc) = (addresses(&to), addresses(&cc));
        let is_answered = is_answer_to_a_program(tx, &ticket, &record).await?;
        // Somebody must be addressed: a mail to copies only is for nobody.
        if !to.is_empty() && !is_answered {
            letter::queue(tx, desk, (&ticket, channel.as_ref()), (to, cc), &mut record).await?;
        }
    }
    add(tx, &mut ticket, &record, (!note).then_some(WAITING)).await?;
    Ok(record)
}

/// Whether a flow answers what no person wrote: that is kept, and not mailed.
async fn is_answer_to_a_program(
    tx: &mut Tx<'_>,
    ticket: &ticket::Record,
    reply: &Record,
) -> Result<bool, Error> {
    if !reply.automatic.is_automatic() {
        return Ok(false);
    }
    let account = tx.account();
    let latest = store::find_latest_author(tx.db(), account, ticket.id).await?;
    let Some((author, _)) = latest.filter(|(_, automatic)| automatic.is_automatic()) else {
        return Ok(false);
    };
    // A colleague may be told of it.
    let is_theirs = |address: &String| {
        address.eq_ignore_ascii_case(&author) || address.eq_ignore_ascii_case(&ticket.values.client_email)
    };
    Ok(reply.to.iter().chain(&reply.cc).any(is_theirs))
}

/// Stores a message of a ticket, moves the ticket to the status that follows from it, and tells of both.
pub async fn add(
    tx: &mut Tx<'_>,
    ticket: &mut ticket::Record,
    message: &Record,
    wanted: Option<&str>,
) -> Result<(), Error> {
    let (account, now) = (tx.account(), tx.now());
    store::insert(tx.db(), account, ticket.id, message).await?;
    ticket.version += 1;
    ticket.updated_at = now;
    ticket.message_count += 1;
    ticket.last_message_at = Some(now);
    let status = match wanted {
        Some(wanted) => {
            let active = status::store::list_active_names(tx.db(), account).await?;
            after(wanted, &ticket.status, &active).to_owned()
        }
        None => ticket.status.clone(),
    };
    let from = ticket::move_to(ticket, status);
    ticket::store::update(tx.db(), account, ticket).await?;
    ticket::events::message(tx, ticket, message);
    ticket::events::status_changed(tx, ticket, &from, message.automatic);
    ticket::audit(tx, ticket);
    audit(tx, message);
    Ok(())
}

/// Keeps in the audit log that a message was added, without what it says: a message never changes.
fn audit(tx: &mut Tx<'_>, message: &Record) {
    let silent = Record { body: String::new(), html: String::new(), ..message.clone() };
    tx.changed("ticket_message", message.id, &silent.shown(&queued(message)));
}

fn read(given: &TicketMessageInput, faults: &mut Faults) -> Wanted {
    let root = At::ROOT;
    let at = root.name("message");
    let is_covered = ["body", "html"].iter().any(|field| faults.cover(&at.name(field)));
    if given.body.trim().is_empty() && given.html.trim().is_empty() && !is_covered {
        faults.add(&at.name("body"), Fault::Required, "body or html is required");
    }
    let mut author_email = given.author_email.clone();
    chassis::formats::Form::Email.check(&mut author_email, "", &at.name("author_email"), faults);
    let to = mail::read_addresses(&given.to, &at.name("to"), faults);
    let cc = mail::read_addresses(&given.cc, &at.name("cc"), faults);
    if to.len() + cc.len() > MOST_RECIPIENTS {
        let detail = format!("to and cc can have {MOST_RECIPIENTS} addresses together");
        faults.add(&at.name(if to.len() > MOST_RECIPIENTS { "to" } else { "cc" }), Fault::TooMany, detail);
    }
    Wanted { note: given.r#type() == TicketMessageType::Note, to, cc, author_email }
}

fn message(
    tx: &Tx<'_>,
    given: &TicketMessageInput,
    wanted: &Wanted,
    channel: Option<&channel::Record>,
) -> Record {
    let (body, html) = content::both(&given.body, &given.html, given.plain_text_body.unwrap_or_default());
    let caller = tx.caller().map(|caller| caller.identity.actor_name.clone()).unwrap_or_default();
    let or = |given: &str, other: &str| if given.is_empty() { other.to_owned() } else { given.to_owned() };
    let channel_email = channel.map_or("", |channel| channel.sender().1);
    Record {
        id: tx.id(),
        inbound: false,
        note: wanted.note,
        body,
        html,
        author_name: or(&given.author_name, &caller),
        author_email: or(&wanted.author_email, channel_email),
        author_user_id: given.author_user_id,
        to: addresses(&wanted.to),
        cc: addresses(&wanted.cc),
        message_id: String::new(),
        mail_id: None,
        attachments: Vec::new(),
        automatic: if tx.depth() > 0 { Automatic::Program } else { Automatic::No },
        created_at: tx.now(),
    }
}

/// In lower case, as they are looked for.
fn addresses(mailboxes: &[Mailbox]) -> Vec<String> {
    mailboxes.iter().map(|mailbox| mailbox.email.to_string().to_lowercase()).collect()
}

/// Where the mail of a message stands that was put into the queue just now.
pub fn queued(record: &Record) -> HashMap<Uuid, mail::Status> {
    record.mail_id.map(|id| (id, mail::Status::Queued)).into_iter().collect()
}
