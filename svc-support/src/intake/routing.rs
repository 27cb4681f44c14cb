//! Which ticket a mail belongs to, and which channel it came through.

use chassis::{AccountId, Tx};
use uuid::Uuid;

use super::mail::Mail;
use crate::address::{OwnDomain, Place};
use crate::{Error, channel, message, ticket};

/// The ticket that a mail belongs to. What only we can have told comes first: the address of a reply, then the mails it
/// refers to; then the number in its subject, which anyone can write, from those who have part in that ticket.
pub async fn ticket(
    tx: &mut Tx<'_>,
    own: &OwnDomain,
    mail: &Mail,
    recipients: &[String],
) -> Result<Option<Uuid>, Error> {
    let account = tx.account();
    for secret in places(own, account, recipients).filter_map(|place| match place {
        Place::Ticket(secret) => Some(secret),
        Place::Channel(_) => None,
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

/// The channel that a mail came through, if one of its recipients is one's address.
pub fn channel<'a>(
    own: &OwnDomain,
    account: AccountId,
    channels: &'a [channel::Record],
    recipients: &[String],
) -> Option<&'a channel::Record> {
    let by_key = places(own, account, recipients).find_map(|place| match place {
        Place::Channel(key) => channels.iter().find(|channel| channel.inbound_key == key),
        Place::Ticket(_) => None,
    });
    let by_address = || {
        let plain = recipients.iter().map(|recipient| without_detail(recipient));
        plain.into_iter().find_map(|address| channels.iter().find(|channel| channel.has_address(&address)))
    };
    by_key.or_else(by_address)
}

/// Where those of the recipients lead that are addresses of ours, in this account.
fn places<'a>(
    own: &'a OwnDomain,
    account: AccountId,
    recipients: &'a [String],
) -> impl Iterator<Item = Place> + 'a {
    let ours = recipients.iter().filter_map(|recipient| own.parse(recipient));
    ours.filter(move |(of, _)| *of == account).map(|(_, place)| place)
}

/// An address without what may follow a `+` in it.
pub fn without_detail(address: &str) -> String {
    let Some((local, domain)) = address.rsplit_once('@') else { return address.to_lowercase() };
    let local = local.split('+').next().unwrap_or_default();
    format!("{local}@{domain}").to_lowercase()
}
