//! Hears what becomes of the mails with which documents were sent.

use chassis_data::Tx;
use chassis_work::mail::{Attempted, DeliveryObserver};

use super::{Links, operations};

pub(crate) struct SentDocuments {
    pub links: Links,
}

#[tonic::async_trait]
impl DeliveryObserver for SentDocuments {
    async fn attempted(&self, tx: &mut Tx<'_>, attempted: &Attempted<'_>) -> Result<(), chassis_base::Error> {
        Ok(operations::record_delivery(tx, &self.links, attempted).await?)
    }
}
