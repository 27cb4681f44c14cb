//! Follows the delivery of replies: a message shows how its mail stands.

use chassis_data::Tx;
use chassis_work::mail::{Attempted, DeliveryObserver};

use super::operations;

pub(crate) struct DeliveryRecorder;

#[tonic::async_trait]
impl DeliveryObserver for DeliveryRecorder {
    async fn attempted(&self, tx: &mut Tx<'_>, attempted: &Attempted<'_>) -> Result<(), chassis_base::Error> {
        Ok(operations::record_delivery(tx, attempted).await?)
    }
}
