//! Mailing a document.

use chassis_data::Tx;
use chassis_work::mail::{AttachedFile, Attachment, Mail, Mailbox, Mailer, read_addresses};
use proto::api::Fault;
use proto::billing::{SendInput, SendResult, SendType};
use proto::{At, Faults};
use render::printed::Language;
use serde_json::json;
use uuid::Uuid;

use super::family::Family;
use super::finalize::{make_final, status_before};
use super::{OperationContext, record_history};
use crate::document::mailer::{DocumentMail, PdfReference};
use crate::document::{Kind, Record, attachment, events, store};
use crate::error::Error;
use crate::identity;

/// The limit of `to` and `cc` together.
const MAX_RECIPIENTS: usize = 20;

/// What sending needs besides the request.
#[derive(Clone)]
pub(crate) struct SendContext {
    pub operation: OperationContext,
    pub mailer: Mailer,
    /// The files that the request attaches.
    pub files: Vec<AttachedFile>,
}

struct Recipients {
    to: Vec<Mailbox>,
    cc: Vec<Mailbox>,
}

/// Queues the mail; a draft becomes final first. The mail is queued in this transaction and delivered after the commit.
pub(crate) async fn send(
    tx: &mut Tx<'_>,
    context: &SendContext,
    id: &str,
    given: &SendInput,
) -> Result<SendResult, Error> {
    let recipients = recipients(given, &mut tx.faults);
    chassis_base::id::ignore_malformed(&mut tx.faults);
    let kind = context.operation.kind;
    let Some(mut family) = Family::lock(tx, &context.operation.links, kind, id).await? else {
        tx.valid()?;
        return Err(Error::NotFound(kind.name()));
    };
    tx.valid()?;
    let from = status_before(family.target());
    if !family.target().is_final {
        make_final(tx, &mut family, context.operation.client.as_ref()).await?;
    }
    let (account, now) = (tx.account(), tx.now());
    let record = family.raise(family.target, now);
    store::mark_sent(tx.db(), account, record).await?;
    events::status_changed(tx, record, &from).await?;

    let everyone = recipients.to.iter().chain(&recipients.cc);
    let addresses: Vec<String> = everyone.map(|mailbox| mailbox.email.to_string()).collect();
    let mail = compose(tx, context, record, given, recipients).await?;
    let mail_id = chassis_work::mail::queue(tx, &mail).await?;
    let send_type = send_type(given.send_type(), record);
    let mut data = json!({"recipients": addresses, "subject": given.subject, "send_type": send_type});
    if !context.files.is_empty() {
        data["attachments"] = attachment::listed(&context.files);
    }
    record_history(tx, record.id, "sent", data, Some(mail_id)).await?;
    events::sent(tx, record, &send_type, &addresses);
    family.log_target(tx).await?;
    Ok(SendResult { success: true, recipients_list: addresses.join(", "), recipients: addresses })
}

/// The addresses, each checked; a fault names the invalid one.
fn recipients(given: &SendInput, faults: &mut Faults) -> Recipients {
    let root = At::ROOT;
    let at = root.name("mail");
    let to = read_addresses(&given.to, &at.name("to"), faults);
    let cc = read_addresses(&given.cc, &at.name("cc"), faults);
    if to.len() + cc.len() > MAX_RECIPIENTS {
        let detail = format!("to and cc can have {MAX_RECIPIENTS} addresses together");
        faults.add(&at.name(if to.len() > MAX_RECIPIENTS { "to" } else { "cc" }), Fault::TooMany, detail);
    }
    Recipients { to, cc }
}

/// The purpose of the mail, as the contract names it.
fn send_type(given: SendType, record: &Record) -> String {
    let given = match (given, record.kind) {
        (SendType::Unspecified, Kind::Invoice) if record.is_credit() => SendType::Credit,
        (SendType::Unspecified, Kind::Invoice) => SendType::Invoice,
        (SendType::Unspecified, Kind::Quote) => SendType::Quote,
        (SendType::Unspecified, Kind::Workorder) => SendType::Workorder,
        (given, _) => given,
    };
    given.as_str_name().trim_start_matches("SEND_TYPE_").to_ascii_lowercase()
}

async fn compose(
    tx: &mut Tx<'_>,
    context: &SendContext,
    record: &Record,
    given: &SendInput,
    recipients: Recipients,
) -> Result<Mail, Error> {
    let account = tx.account();
    let seller = identity::seller(tx.db(), account).await?;
    let sender = context.mailer.sender(tx.db(), account, &seller.party.name, &seller.party.email).await?;
    let link_text = match record.language {
        Language::Nl => "Online bekijken",
        Language::En => "View online",
    };
    let page_url = context.operation.links.page(account, record);
    let body = DocumentMail { message: given.message.trim(), link_text, page_url: &page_url };
    let mut mail = Mail::new(sender.from, recipients.to, given.subject.clone());
    mail.cc = recipients.cc;
    mail.reply_to = sender.reply_to;
    mail.text = Some(body.text());
    mail.html = Some(body.html());
    if given.include_pdf.unwrap_or(true) {
        mail.attachments.push(Attachment::Later { reference: PdfReference::from(record).to_string() });
    }
    mail.attachments.extend(context.files.iter().map(Attachment::from));
    mail.reference = mail_reference(record.id);
    Ok(mail)
}

/// What the mails of a document have as their reference.
pub(super) fn mail_reference(document: Uuid) -> String {
    format!("document:{document}")
}
