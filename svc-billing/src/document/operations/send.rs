//! Mailing a document.

use chassis_data::Tx;
use chassis_work::mail::{Attachment, Mail, Mailbox, Mailer, read_addresses};
use proto::api::Fault;
use proto::billing::{SendInput, SendResult, SendType};
use proto::{At, Faults};
use render::paper::Language;
use serde_json::json;

use super::family::Family;
use super::finalize::{before_final, make_final};
use super::{Known, audit, log};
use crate::document::letter::Letter;
use crate::document::{Kind, Record, attachment, events, store};
use crate::{Error, identity};

/// `to` and `cc` together.
const MOST_RECIPIENTS: usize = 20;

/// Queues the mail; a draft becomes final first.
pub async fn send(
    tx: &mut Tx<'_>,
    with: &(Known, Mailer),
    id: &str,
    given: &SendInput,
) -> Result<SendResult, Error> {
    let known = &with.0;
    let (to, cc) = recipients(given, &mut tx.faults);
    chassis_base::id::ignore_malformed(&mut tx.faults);
    let kind = known.kind;
    let Some(mut family) = Family::lock(tx, kind, id).await? else {
        tx.valid()?;
        return Err(Error::NotFound(kind.name()));
    };
    tx.valid()?;
    let from = before_final(family.target());
    if !family.target().is_final {
        make_final(tx, &mut family, known.client.as_ref()).await?;
    }
    let (account, now) = (tx.account(), tx.now());
    let record = family.target_mut();
    record.version += 1;
    record.updated_at = now;
    store::mark_sent(tx.db(), account, record).await?;
    audit(tx, &Record { sent_at: Some(now), ..record.clone() });
    events::status_changed(tx, record, &from).await?;

    let addresses: Vec<String> = to.iter().chain(&cc).map(|one| one.email.to_string()).collect();
    let mail = compose(tx, with, record, given, (to, cc)).await?;
    let mail_id = chassis_work::mail::queue(tx, &mail).await?;
    let send_type = send_type(given.send_type(), record);
    let data = json!({"recipients": addresses, "subject": given.subject, "send_type": send_type});
    log(tx, record.id, "sent", data, Some(mail_id)).await?;
    events::sent(tx, record, &send_type, &addresses);
    Ok(SendResult { success: true, recipients_list: addresses.join(", "), recipients: addresses })
}

/// The addresses, each checked; a fault names the bad one.
fn recipients(given: &SendInput, faults: &mut Faults) -> (Vec<Mailbox>, Vec<Mailbox>) {
    let root = At::ROOT;
    let at = root.name("mail");
    let to = read_addresses(&given.to, &at.name("to"), faults);
    let cc = read_addresses(&given.cc, &at.name("cc"), faults);
    if to.len() + cc.len() > MOST_RECIPIENTS {
        let detail = format!("to and cc can have {MOST_RECIPIENTS} addresses together");
        faults.add(&at.name(if to.len() > MOST_RECIPIENTS { "to" } else { "cc" }), Fault::TooMany, detail);
    }
    (to, cc)
}

/// What the mail is for, as the contract names it.
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
    (known, post): &(Known, Mailer),
    record: &Record,
    given: &SendInput,
    (to, cc): (Vec<Mailbox>, Vec<Mailbox>),
) -> Result<Mail, Error> {
    let account = tx.account();
    let seller = identity::seller(tx.db(), account).await?;
    let sender = post.sender(tx.db(), account, &seller.party.name, &seller.party.email).await?;
    let online = match record.language {
        Language::Nl => "Online bekijken",
        Language::En => "View online",
    };
    let letter = Letter { message: given.message.trim(), online, page: &known.links.page(account, record) };
    let mut mail = Mail::new(sender.from, to, given.subject.clone());
    mail.cc = cc;
    mail.reply_to = sender.reply_to;
    mail.text = Some(letter.text());
    mail.html = Some(letter.html());
    if given.include_pdf.unwrap_or(true) {
        mail.attachments.push(Attachment::Later { reference: attachment::reference(record) });
    }
    mail.reference = format!("document:{}", record.id);
    Ok(mail)
}
