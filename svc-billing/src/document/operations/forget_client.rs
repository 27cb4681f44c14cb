//! Forgets to whom the documents of a client were sent, and what was written. The documents stay: the law asks to keep them as
//! they were issued.

use chassis_data::Tx;
use uuid::Uuid;

use super::log_changed;
use super::send::mail_reference;
use crate::document::{Kind, Links, store};
use crate::error::Error;

/// How many documents are changed at a time.
const PAGE: usize = 200;

/// To be called once for a client in a transaction: each document gets one new version.
pub(crate) async fn forget_client(tx: &mut Tx<'_>, links: &Links, client: Uuid) -> Result<(), Error> {
    let (account, now, mut after) = (tx.account(), tx.now(), Uuid::nil());
    loop {
        let sent = store::list_sent_locked(tx.db(), account, client, after, PAGE).await?;
        let (is_full, last) = (sent.len() == PAGE, sent.last().map(|document| document.id));
        let references: Vec<String> = sent.iter().map(|document| mail_reference(document.id)).collect();
        chassis_work::mail::forget(tx, &references).await?;
        let ids: Vec<Uuid> = sent.iter().map(|document| document.id).collect();
        let changed = store::forget_recipients(tx.db(), account, &ids, now).await?;
        for kind in [Kind::Invoice, Kind::Quote, Kind::Workorder] {
            let of_kind = sent.iter().filter(|it| it.kind == kind.name() && changed.contains(&it.id));
            let ids: Vec<String> = of_kind.map(|document| document.id.to_string()).collect();
            tx.forget_history(kind.name(), &ids).await?;
        }
        log_changed(tx, links, &changed).await?;
        after = last.unwrap_or(after);
        if !is_full {
            return Ok(tx.forget_mentions(client).await?);
        }
    }
}
