//! The names of a client in its drafts, which follow those of the client.

use chassis_data::Tx;

use super::log_changed;
use crate::clients::Client;
use crate::document::{Links, store};
use crate::error::Error;

/// How many drafts are changed at a time.
const PAGE: usize = 200;

/// Stores the new names of a client in its drafts. To be called once for a client in a transaction: each draft gets one new
/// version.
pub(crate) async fn follow_client(tx: &mut Tx<'_>, links: &Links, client: &Client) -> Result<(), Error> {
    let (account, now) = (tx.account(), tx.now());
    let limit = i64::try_from(PAGE).unwrap_or(i64::MAX);
    loop {
        let drafts = store::follow_client(tx.db(), account, client, now, limit).await?;
        log_changed(tx, links, &drafts).await?;
        if drafts.len() < PAGE {
            return Ok(());
        }
    }
}
