//! The writes of messages: load, decide, store, record. Incoming mail adds its messages with [`add`] too.

use std::collections::HashMap;

use chassis_base::id;
use chassis_data::log::snapshot::{Shown, uuids};
use chassis_data::{LazyTx, Plan, Tx};
use chassis_work::mail::{self, AttachedFile, Attempted};
use proto::support::{CreateTicketMessageRequest, TicketMessageInput};
use uuid::Uuid;

use super::mailer::{Mailer, OutgoingReply};
use super::rules::{self, Checked, addresses};
use super::{Attachment, Record, content, events, store};
use crate::automatic::Automatic;
use crate::error::Error;
use crate::status::rules::{WAITING, next};
use crate::{channel, status, ticket};

const TICKET_NOT_FOUND: Error = Error::NotFound("ticket");
/// The kind of these records in the log.
pub(crate) const AUDIT_KIND: &str = "ticket_message";

/// What creating a message needs besides the request.
#[derive(Clone)]
pub(super) struct NewMessage {
    pub mailer: Mailer,
    /// The files that the request attaches.
    pub files: Vec<AttachedFile>,
}

/// Stores a message of ours, queues its mail when it is a reply, and gives the ticket the status that follows. Only a mail
/// needs a transaction.
pub(super) async fn create(
    tx: &mut LazyTx<'_>,
    input: &CreateTicketMessageRequest,
    NewMessage { mailer, files }: &NewMessage,
) -> Result<Record, Error> {
    let given = input.message.clone().unwrap_or_default();
    let checked = rules::check(&given, &mut tx.faults);
    id::ignore_malformed(&mut tx.faults);
    let account = tx.account();
    let found = ticket::find(tx, &input.id).await?;
    // Faults of the body are reported before an id that does not exist.
    tx.valid()?;
    let mut ticket = found.ok_or(TICKET_NOT_FOUND)?;
    let find =
        async |connection: &mut _| channel::store::find_for(connection, account, ticket.channel_id).await;
    let channel = tx.query(find).await?;
    let mut record = new_record(tx, &given, &checked, channel.as_ref());
    record.attachments = files.iter().map(Attachment::from).collect();
    let Checked { note, mut to, cc, .. } = checked;
    if !note {
        if to.is_empty() {
            to.extend(mail::mailbox(&ticket.values.client_name, &ticket.values.client_email));
        }
        record.to = addresses(&to);
        record.cc = addresses(&cc);
        let suppressed = answers_a_program(tx, &ticket, &record).await?;
        // A mail needs a recipient in `to`; a reply with `cc` only is not mailed.
        if !to.is_empty() && !suppressed {
            let outgoing = OutgoingReply { ticket: &ticket, channel: channel.as_ref(), to, cc, files };
            mailer.queue(open_for(tx, &ticket).await?, outgoing, &mut record).await?;
        }
    }
    let status = if note {
        ticket.status.clone()
    } else {
        let list = async |connection: &mut _| status::store::list_active_names(connection, account).await;
        next(WAITING, &ticket.status, &tx.query(list).await?).to_owned()
    };
    let since = ticket.version;
    ticket::count_change(tx, &mut ticket);
    let from = count_message(tx, &mut ticket, status);
    tx.write_last(store::insert(account, &ticket, since, &record))?;
    record_new(tx, &ticket, &record, &from);
    Ok(record)
}

/// The transaction, with a lock on the ticket that was read before it was open. The write runs again if it has changed.
async fn open_for<'t, 'a>(tx: &'t mut LazyTx<'a>, ticket: &ticket::Record) -> Result<&'t mut Tx<'a>, Error> {
    let account = tx.account();
    let open = tx.open().await?;
    match ticket::store::find_locked(open.db(), account, ticket.id).await? {
        Some(locked) if locked.event_version() == ticket.event_version() => Ok(open),
        _ => Err(chassis_base::Error::Raced.into()),
    }
}

/// Whether this is the reply of a flow to a program. Such a reply is stored but not mailed: two programs would write to
/// each other without end.
async fn answers_a_program(
    tx: &mut LazyTx<'_>,
    ticket: &ticket::Record,
    reply: &Record,
) -> Result<bool, Error> {
    if !reply.automatic.is_automatic() {
        return Ok(false);
    }
    let account = tx.account();
    let find = async |connection: &mut _| store::find_latest_author(connection, account, ticket.id).await;
    let latest = tx.query(find).await?;
    let Some(author) = latest.filter(|author| author.automatic.is_automatic()) else {
        return Ok(false);
    };
    // A reply that goes to a colleague only cannot start a loop.
    let goes_back = |address: &String| {
        address.eq_ignore_ascii_case(&author.email)
            || address.eq_ignore_ascii_case(&ticket.values.client_email)
    };
    Ok(reply.to.iter().chain(&reply.cc).any(goes_back))
}

/// Stores a message that came in, updates its ticket and emits the events of both. `wanted` is the status that the message
/// leads to; without it, the status stays. The caller has locked the ticket and counted the change, or has just created the
/// ticket for this message, which is then part of its first version; `since` is the version that is stored.
pub(crate) async fn add(
    tx: &mut Tx<'_>,
    ticket: &mut ticket::Record,
    since: i64,
    message: &Record,
    wanted: Option<&str>,
) -> Result<(), Error> {
    let account = tx.account();
    let status = match wanted {
        Some(wanted) => {
            let active = status::store::list_active_names(tx.db(), account).await?;
            next(wanted, &ticket.status, &active).to_owned()
        }
        None => ticket.status.clone(),
    };
    let from = count_message(tx, ticket, status);
    store::insert(account, ticket, since, message).execute(tx.db()).await?;
    record_new(tx, ticket, message, &from);
    Ok(())
}

/// Counts a new message in its ticket, and gives the ticket the status that follows. Returns its former status.
fn count_message(plan: &mut Plan<'_>, ticket: &mut ticket::Record, status: String) -> String {
    ticket.message_count += 1;
    ticket.last_message_at = Some(plan.now());
    ticket::set_status(plan, ticket, status)
}

/// Records a new message in events and in the log. `from` is the former status of its ticket.
fn record_new(plan: &mut Plan<'_>, ticket: &ticket::Record, message: &Record, from: &str) {
    events::added(plan, ticket, message);
    ticket::events::status_changed(plan, ticket, from, message.automatic);
    ticket::record_change(plan, ticket);
    plan.changed(AUDIT_KIND, message.id, &message.clone().into_proto(&message.queued_mail()));
}

/// Records how the mail of a message stands after an attempt to deliver it. Most attempts that fail leave it queued, which
/// changes nothing; a file that the mail goes without is marked with the next status.
pub(super) async fn record_delivery(tx: &mut Tx<'_>, attempted: &Attempted<'_>) -> Result<(), Error> {
    let Attempted { mail, status, left_out, .. } = *attempted;
    let (account, now) = (tx.account(), tx.now());
    let changed = store::set_mail_status(tx.db(), account, mail, status, now).await?;
    let Some(mut message) = changed else { return Ok(()) };
    if !left_out.is_empty() {
        for attachment in &mut message.attachments {
            attachment.left_out |= left_out.contains(&attachment.id);
        }
        store::set_attachments(tx.db(), account, &message).await?;
    }
    tx.changed(AUDIT_KIND, message.id, &message.into_proto(&[(mail, status)].into()));
    Ok(())
}

fn new_record(
    plan: &Plan<'_>,
    given: &TicketMessageInput,
    checked: &Checked,
    channel: Option<&channel::Record>,
) -> Record {
    let content = content::complete(&given.body, &given.html, given.plain_text_body.unwrap_or_default());
    let caller = plan.caller().map(|caller| caller.identity.actor_name.clone()).unwrap_or_default();
    let or = |given: &str, other: &str| if given.is_empty() { other.to_owned() } else { given.to_owned() };
    let channel_email = channel.map_or("", |channel| channel.sender().email);
    Record {
        id: plan.id(),
        version: 1,
        inbound: false,
        note: checked.note,
        body: content.text,
        html: content.html,
        author_name: or(&given.author_name, &caller),
        author_email: or(&checked.author_email, channel_email),
        author_user_id: given.author_user_id,
        to: addresses(&checked.to),
        cc: addresses(&checked.cc),
        message_id: String::new(),
        mail_id: None,
        attachments: Vec::new(),
        // A call that an event caused comes from a flow, not from a person.
        automatic: if plan.depth() > 0 { Automatic::Program } else { Automatic::No },
        created_at: plan.now(),
        updated_at: plan.now(),
    }
}

/// Forgets what the client of a locked ticket wrote and was written: all messages but notes, which are for colleagues. The
/// name of the client is this now.
pub(crate) async fn forget_client(tx: &mut Tx<'_>, ticket: Uuid, name: &str) -> Result<(), Error> {
    let (account, now) = (tx.account(), tx.now());
    loop {
        let told = store::list_telling_locked(tx.db(), account, ticket, name).await?;
        if told.is_empty() {
            return Ok(());
        }
        let ids: Vec<Uuid> = told.iter().map(|message| message.id).collect();
        // Files that came by mail have no other owner.
        let received = told.iter().filter(|message| message.inbound).flat_map(|message| &message.attachments);
        for attachment in received {
            events::file_removed(tx, attachment.id);
        }
        let texts: Vec<String> = ids.iter().map(Uuid::to_string).collect();
        tx.forget_history(AUDIT_KIND, &texts).await?;
        for record in store::forget(tx.db(), account, &ids, name, now).await? {
            // The mail is forgotten too.
            tx.changed(AUDIT_KIND, record.id, &record.into_proto(&HashMap::new()));
        }
    }
}

/// Shows the messages with these ids, with the states of their mails.
pub(crate) async fn show(tx: &mut Tx<'_>, ids: &[String], shown: &mut Shown) -> Result<(), Error> {
    let account = tx.account();
    let messages = store::list_by_ids(tx.db(), account, &uuids(ids)).await?;
    let mails: Vec<Uuid> = messages.iter().filter_map(|message| message.mail_id).collect();
    let statuses = mail::statuses(tx.db(), account, &mails).await?;
    for message in messages {
        shown.add(message.id, &message.into_proto(&statuses));
    }
    Ok(())
}
