//! What direct debit asks of subscriptions.

use chassis::Tx;
use proto::billing::ActivationStatus;
use uuid::Uuid;

use crate::Error;

/// Activates a subscription of a client.
pub async fn activate(
    _tx: &mut Tx<'_>,
    _client: Uuid,
    _subscription: Uuid,
) -> Result<ActivationStatus, Error> {
    Ok(ActivationStatus::NotFound)
}
