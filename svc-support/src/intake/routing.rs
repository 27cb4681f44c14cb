//! Which ticket a mail belongs to, and which channel it came through. A file of its own because it reads the stores of
//! tickets and messages and writes nothing.

use chassis_base::AccountId;
use chassis_data::Tx;
use uuid::Uuid;

use super::mail::Mail;
use crate::address::{OwnDomain, Target, without_subaddress};
use crate::error::Error;
use crate::{channel, message, ticket};

/// The ticket that a mail belongs to. The reply address comes first and the mails that it refers to second: both prove
/// that the sender has received a mail of that ticket. Anyone can write a ticket number into a subject, so that counts
/// only from an address that participates in the ticket.
pub(super) async fn find_ticket(
    tx: &mut Tx<'_>,
    own: &OwnDomain,
    mail: &Mail,
    recipients: &[String],
) -> Result<Option<Uuid>, Error> {
    let account = tx.account();
    for secret in targets(own, account, recipients).filter_map(|target| match target {
        Target::Ticket(secret) => Some(secret),
        Target::Channel(_) => None,
    }) {
        if let Some(found) = ticket::store::find_by_reply_secret(tx.db(), account, &secret).await? {
            return Ok(Some(found));
        }
    }
    if !mail.references.is_empty()
        && let Some(found) = message::store::find_ticket_of(tx.db(), account, &mail.references).await?
    {
        return Ok(Some(found));
    }
    let numbers = ticket::rules::numbers_in(&mail.subject);
    if numbers.is_empty() || mail.from_email.is_empty() {
        return Ok(None);
    }
    ticket::store::find_by_number(tx.db(), account, &numbers, &mail.from_email).await
}

/// The channel that one of the recipients is an address of.
pub(super) fn find_channel<'a>(
    own: &OwnDomain,
    account: AccountId,
    channels: &'a [channel::Record],
    recipients: &[String],
) -> Option<&'a channel::Record> {
    let by_key = targets(own, account, recipients).find_map(|target| match target {
        Target::Channel(key) => channels.iter().find(|channel| channel.inbound_key == key),
        Target::Ticket(_) => None,
    });
    let by_address = || {
        let plain = recipients.iter().map(|recipient| without_subaddress(recipient));
        plain.into_iter().find_map(|address| channels.iter().find(|channel| channel.has_address(&address)))
    };
    by_key.or_else(by_address)
}

/// The tickets and channels of this account whose addresses are among the recipients.
fn targets<'a>(
    own: &'a OwnDomain,
    account: AccountId,
    recipients: &'a [String],
) -> impl Iterator<Item = Target> + 'a {
    let destinations = recipients.iter().filter_map(|recipient| own.parse(recipient));
    destinations.filter(move |destination| destination.account == account).map(|found| found.target)
}
