//! Gives an account its defaults, and locks the setup of an account.

use chassis_data::Tx;
use proto::crm::{DealSource, Phase, Pipeline};

use super::{Defaults, Initial, store};
use crate::error::Error;
use crate::kind;

/// Creates the defaults of an account that has none. `false` when they were created before: later changes and
/// removals stay.
pub(crate) async fn ensure_defaults(tx: &mut Tx<'_>) -> Result<bool, Error> {
    let account = tx.account();
    let now = tx.now();
    // The row comes first: of two concurrent transactions, the second waits for the first and then finds its row.
    if !store::insert(tx.db(), account, now).await? {
        return Ok(false);
    }
    let defaults = Defaults::for_country(&tx.settings().country);
    let initial = Initial::new(&defaults, now, || tx.id());
    store::insert_defaults(tx.db(), account, &initial).await?;
    tx.changed(kind::PIPELINE, initial.pipeline_id, &Pipeline::from(&initial));
    for phase in Vec::<Phase>::from(&initial) {
        tx.changed(kind::PHASE, &phase.id, &phase);
    }
    for source in Vec::<DealSource>::from(&initial) {
        tx.changed(kind::DEAL_SOURCE, &source.name, &source);
    }
    Ok(true)
}

/// Makes every other transaction that changes pipelines or sources of this account wait until this one ends. Call it
/// before reading what is to be changed: positions have no gaps and the last pipeline stays only because nobody else
/// writes in between. It is the first row that these operations lock, so they cannot block each other.
pub(crate) async fn lock(tx: &mut Tx<'_>) -> Result<(), Error> {
    let account = tx.account();
    // A row that this transaction has just inserted is locked already. A row that another transaction inserted in the
    // meantime has to be locked by a second attempt.
    if !store::lock(tx.db(), account).await? && !ensure_defaults(tx).await? {
        store::lock(tx.db(), account).await?;
    }
    Ok(())
}
