//! Makes the mail of a reply: from the channel, part of the thread, and with the reply address of the ticket. A file of
//! its own because the mail has its own rules, which come from RFC 5322 and from mail programs.

use chassis_data::Tx;
use chassis_work::mail::{self, AttachedFile, Mail, Mailbox};

use super::{Record, store};
use crate::address::OwnDomain;
use crate::channel::{self, Sender};
use crate::error::Error;
use crate::ticket;

/// The number of earlier mails that `References` names: enough for mail programs to find the thread.
const MAX_REFERENCES: i64 = 20;
/// The length of a message id that is repeated in a header. Longer ids would not fit on one line.
const MAX_ID_LENGTH: usize = 190;

#[derive(Clone)]
pub(crate) struct Mailer {
    pub mailer: mail::Mailer,
    pub own: OwnDomain,
}

/// A reply that is to be mailed.
pub(crate) struct OutgoingReply<'a> {
    pub ticket: &'a ticket::Record,
    pub channel: Option<&'a channel::Record>,
    pub to: Vec<Mailbox>,
    pub cc: Vec<Mailbox>,
    pub files: &'a [AttachedFile],
}

impl Mailer {
    /// Queues the mail of a reply and sets the ids of that mail in the reply. The queue is a table, so the mail is sent
    /// if and only if this transaction commits.
    pub(crate) async fn queue(
        &self,
        tx: &mut Tx<'_>,
        outgoing: OutgoingReply<'_>,
        reply: &mut Record,
    ) -> Result<(), Error> {
        let OutgoingReply { ticket, channel, to, cc, files } = outgoing;
        let account = tx.account();
        let Sender { name, email } = channel.map_or_else(Sender::default, channel::Record::sender);
        let sender = self.mailer.sender(tx.db(), account, name, email).await?;
        let thread = store::list_thread(tx.db(), account, ticket.id, MAX_REFERENCES).await?;
        let thread: Vec<String> =
            thread.iter().filter(|id| is_safe(id)).map(|id| format!("<{id}>")).collect();
        let mut message = Mail::new(sender.from, to, subject(ticket, !thread.is_empty()));
        message.cc = cc;
        let reply_address = self.own.reply(account, &ticket.reply_secret);
        message.reply_to =
            reply_address.and_then(|address| mail::mailbox(name, &address)).or(sender.reply_to);
        if let Some(last) = thread.last() {
            message.headers.push(("In-Reply-To", last.clone()));
            message.headers.push(("References", thread.join(" ")));
        }
        message.text = Some(reply.body.clone());
        message.html = Some(reply.html.clone()).filter(|html| !html.is_empty());
        message.attachments = files.iter().map(mail::Attachment::from).collect();
        message.reference = ticket::operations::mail_reference(ticket.id);
        let id = mail::queue(tx, &message).await?;
        reply.mail_id = Some(id);
        // Delivery makes the same message id from the id of the queued mail. Answers refer to it.
        reply.message_id = format!("{id}@{}", message.from.email.domain());
        Ok(())
    }
}

/// Whether the message id of somebody else's mail can be repeated in a header.
fn is_safe(id: &str) -> bool {
    id.len() <= MAX_ID_LENGTH && id.bytes().all(|byte| byte.is_ascii_graphic() && !b"<>".contains(&byte))
}

/// The subject contains the number of the ticket, because an answer may have lost every other reference to it.
fn subject(ticket: &ticket::Record, is_answer: bool) -> String {
    let subject = &ticket.values.subject;
    let number = &ticket.number;
    let has_prefix = subject.get(..3).is_some_and(|start| start.eq_ignore_ascii_case("re:"));
    let prefix = if is_answer && !has_prefix { "Re: " } else { "" };
    if subject.contains(number.as_str()) {
        format!("{prefix}{subject}")
    } else {
        format!("{prefix}{subject} [{number}]")
    }
}
