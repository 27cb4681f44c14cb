//! Activating a draft.

use chassis_data::Tx;
use proto::billing::SubscriptionItem;
use uuid::Uuid;

use super::{NOT_FOUND, lock, save};
use crate::error::Error;
use crate::subscription::Full;
use crate::subscription::rules::plan::Status;

/// The outcome of an activation on behalf of another operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Activation {
    /// It is active now, or was active before.
    Activated,
    /// The client has no such subscription.
    NotFound,
    /// It has ended, or has no lines.
    UpdateFailed,
}

/// Activates a subscription. An active one stays as it is.
pub(crate) async fn activate(tx: &mut Tx<'_>, id: &str) -> Result<SubscriptionItem, Error> {
    chassis_base::id::ignore_malformed(&mut tx.faults);
    tx.valid()?;
    let mut full = lock(tx, id).await?.ok_or(NOT_FOUND)?;
    start(tx, &mut full).await?;
    Ok((&full.record).into())
}

/// Activates the subscription of a client as part of another operation, which goes on whatever the outcome is.
pub(crate) async fn activate_for_client(
    tx: &mut Tx<'_>,
    client: Uuid,
    subscription: &str,
) -> Result<Activation, Error> {
    let found = lock(tx, subscription).await?.filter(|full| full.record.client == Some(client));
    let Some(mut full) = found else { return Ok(Activation::NotFound) };
    match start(tx, &mut full).await {
        Ok(()) => Ok(Activation::Activated),
        Err(Error::Ended | Error::Incomplete(_)) => Ok(Activation::UpdateFailed),
        Err(error) => Err(error),
    }
}

/// Checks everything before the first write, so that the transaction can go on after a refusal.
async fn start(tx: &mut Tx<'_>, full: &mut Full) -> Result<(), Error> {
    let record = &mut full.record;
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
    save(tx, full).await
}
