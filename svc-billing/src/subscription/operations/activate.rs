//! A draft starts.

use chassis_data::Tx;
use proto::billing::SubscriptionItem;

use super::{UNKNOWN, lock, save};
use crate::Error;
use crate::subscription::rules::plan::Status;
use crate::subscription::{Record, answer};

/// What became of an activation that somebody else asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Activation {
    /// It is active now, or was before.
    Activated,
    /// There is no such subscription of this client.
    NotFound,
    /// It has ended, or lacks its lines.
    UpdateFailed,
}

/// Activates a subscription, as its own route does. An active one stays as it is.
pub async fn activate_draft(tx: &mut Tx<'_>, id: &str) -> Result<SubscriptionItem, Error> {
    chassis_base::id::ignore_malformed(&mut tx.faults);
    tx.valid()?;
    let mut full = lock(tx, id).await?.ok_or(UNKNOWN)?;
    start(tx, &mut full.record).await?;
    Ok(answer::item(&full.record))
}

/// Activates the subscription of a client for whom something else made that possible, such as a mandate.
pub async fn activate(tx: &mut Tx<'_>, client: &str, subscription: &str) -> Result<Activation, Error> {
    let client = chassis_base::id::parse(client);
    let found = lock(tx, subscription).await?.filter(|full| client.is_some() && full.record.client == client);
    let Some(mut full) = found else { return Ok(Activation::NotFound) };
    match start(tx, &mut full.record).await {
        Ok(()) => Ok(Activation::Activated),
        Err(Error::Ended | Error::Incomplete(_)) => Ok(Activation::UpdateFailed),
        Err(error) => Err(error),
    }
}

/// Decides before it writes: after a refusal the transaction can go on.
async fn start(tx: &mut Tx<'_>, record: &mut Record) -> Result<(), Error> {
    match record.plan.status {
        Status::Active => return Ok(()),
        Status::Ended => return Err(Error::Ended),
        Status::Draft => {}
    }
    if record.client.is_none() {
        let detail = "The subscription has no client; make a new one with client_id.";
        return Err(Error::Incomplete(detail.to_owned()));
    }
    if record.line_count == 0 {
        let detail = "The subscription has no lines; add them with PATCH first.";
        return Err(Error::Incomplete(detail.to_owned()));
    }
    record.plan.activate(tx.today());
    save(tx, record).await
}
