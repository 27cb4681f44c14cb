//! Queues mail in the transaction that causes it.

use chassis_base::Error;
use chassis_data::Tx;
use prost::Message as _;
use uuid::Uuid;

use super::automatic;
use super::message::Mail;
use super::stored::Stored;

/// Queues a mail, which is delivered after the commit. Returns its id, which is also in its `Message-ID`. Mail that
/// automation sends is marked, so that no program answers it.
pub async fn queue(tx: &mut Tx<'_>, mail: &Mail) -> Result<Uuid, Error> {
    let recipients = mail.recipients();
    if recipients.is_empty() || (mail.text.is_none() && mail.html.is_none()) {
        return Err(Error::Internal("a mail needs a recipient, and text or html".to_owned()));
    }
    let (id, account, now) = (tx.id(), tx.account(), tx.now());
    let mut stored = Stored::of(mail);
    let depth = tx.depth();
    if depth > 0 || tx.caller().is_none() {
        let marks = automatic::headers(&stored, depth);
        stored.headers.extend(marks);
    }
    sqlx::query(
        "insert into mail (account_id, id, sender, recipients, content, reference, status, next_at, created_at)
         values ($1, $2, $3, $4, $5, $6, 'queued', $7, $7)",
    )
    .bind(account)
    .bind(id)
    .bind(mail.from.email.to_string())
    .bind(recipients)
    .bind(stored.encode_to_vec())
    .bind(&mail.reference)
    .bind(now)
    .execute(tx.db())
    .await?;
    Ok(id)
}
