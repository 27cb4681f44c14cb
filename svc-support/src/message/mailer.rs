//! The mail that a reply goes out as: from the channel, part of the thread, and with a way back to the ticket.

use chassis::Tx;
use chassis::mail::{Mail, Mailbox, Post};

use super::{Record, store};
use crate::Error;
use crate::address::OwnDomain;
use crate::{channel, ticket};

/// How many of the mails before are named: enough for every reader to find the thread.
const REFERENCES: i64 = 20;
/// Longer than any sensible one, and short enough for one line of a header.
const LONGEST_ID: usize = 190;

/// What mail is made with.
#[derive(Clone)]
pub struct Desk {
    pub post: Post,
    pub own: OwnDomain,
}

/// Puts the mail of a reply into the queue, and notes in the reply which one it is.
pub async fn queue(
    tx: &mut Tx<'_>,
    desk: &Desk,
    (ticket, channel): (&ticket::Record, Option<&channel::Record>),
    (to, cc): (Vec<Mailbox>, Vec<Mailbox>),
    reply: &mut Record,
) -> Result<(), Error> {
    let account = tx.account();
    let (name, address) = channel.map_or(("", ""), channel::Record::sender);
    let sender = desk.post.sender(tx.db(), account, name, address).await?;
    let thread = store::list_thread(tx.db(), account, ticket.id, REFERENCES).await?;
    let thread: Vec<String> = thread.iter().filter(|id| is_plain(id)).map(|id| format!("<{id}>")).collect();
    let mut mail = Mail::new(sender.from, to, subject(ticket, !thread.is_empty()));
    mail.cc = cc;
    let way_back = desk.own.reply(account, &ticket.reply_secret);
    mail.reply_to = way_back.and_then(|address| chassis::mail::mailbox(name, &address)).or(sender.reply_to);
    if let Some(last) = thread.last() {
        mail.headers.push(("In-Reply-To", last.clone()));
        mail.headers.push(("References", thread.join(" ")));
    }
    mail.text = Some(reply.body.clone());
    mail.html = Some(reply.html.clone()).filter(|html| !html.is_empty());
    mail.reference = format!("ticket:{}", ticket.id);
    let id = tx.queue_mail(&mail).await?;
    reply.mail_id = Some(id);
    // As the mail itself will say.
    reply.message_id = format!("{id}@{}", mail.from.email.domain());
    Ok(())
}

/// Ids of others are repeated only as they should be.
fn is_plain(id: &str) -> bool {
    id.len() <= LONGEST_ID && id.bytes().all(|byte| byte.is_ascii_graphic() && !b"<>".contains(&byte))
}

/// With the number, by which a mail without any other hint is still found to belong here.
fn subject(ticket: &ticket::Record, is_answer: bool) -> String {
    let (subject, number) = (&ticket.values.subject, &ticket.number);
    let has_prefix = subject.get(..3).is_some_and(|start| start.eq_ignore_ascii_case("re:"));
    let prefix = if is_answer && !has_prefix { "Re: " } else { "" };
    if subject.contains(number.as_str()) {
        format!("{prefix}{subject}")
    } else {
        format!("{prefix}{subject} [{number}]")
    }
}
