//! What direct debit asks of subscriptions.

use chassis::Tx;
use proto::billing::ActivationStatus;
use uuid::Uuid;

use crate::Error;

/// Activates a subscription of a client.
#[expect(clippy::unused_async, reason = "there are no subscriptions to look for yet")]
pub async fn activate(
    _tx: &mut Tx<'_>,
    _client: Uuid,
    _subscription: Uuid,
) -> Result<ActivationStatus, Error> {
    Ok(ActivationStatus::NotFound)
}
