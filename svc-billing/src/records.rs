//! The records of this service, for the pass that compares the log with them. A kind that is not here is not in the change
//! feed until it changes.

use chassis_base::Error;
use chassis_data::Tx;
use chassis_data::log::snapshot::{Key, RecordTable, Records, Shown};

use crate::document::operations as document;
use crate::subscription::operations as subscription;
use crate::{Billing, identity, mandate, payment, payment_term, product, tax_rate};

const DOCUMENT: &str = "billing.document";

const TABLES: &[RecordTable] = &[
    // An account has few rates and terms.
    RecordTable::new("tax_rate", "billing.tax_rate", Key::Text("(context || '/' || code)")),
    RecordTable::new("payment_term", "billing.payment_term", Key::Text("code")),
    RecordTable::new("corporate_identity", "billing.identity", Key::Uuid("id")),
    RecordTable::new("product", "billing.product", Key::Uuid("id")),
    RecordTable::new("subscription", "billing.subscription", Key::Uuid("id")),
    RecordTable::new("quote", DOCUMENT, Key::Uuid("id")).only("kind = 'quote'"),
    RecordTable::new("workorder", DOCUMENT, Key::Uuid("id")).only("kind = 'workorder'"),
    RecordTable::new("invoice", DOCUMENT, Key::Uuid("id")).only("kind = 'invoice'"),
    RecordTable::new("payment", "billing.payment", Key::Uuid("id")),
    RecordTable::new("mandate", "billing.debtor", Key::Uuid("client_id")),
];

#[tonic::async_trait]
impl Records for Billing {
    fn tables(&self) -> &'static [RecordTable] {
        TABLES
    }

    async fn show(
        &self,
        tx: &mut Tx<'_>,
        kind: &str,
        ids: &[String],
        shown: &mut Shown,
    ) -> Result<(), Error> {
        match kind {
            "tax_rate" => tax_rate::operations::show(tx, ids, shown).await?,
            "payment_term" => payment_term::operations::show(tx, ids, shown).await?,
            "corporate_identity" => identity::operations::show(tx, ids, shown).await?,
            "product" => product::operations::show(tx, ids, shown).await?,
            "subscription" => subscription::show(tx, ids, shown).await?,
            "quote" | "workorder" | "invoice" => {
                document::show(tx, &self.shared.links, ids, shown).await?;
            }
            "payment" => payment::operations::show(tx, ids, shown).await?,
            "mandate" => mandate::operations::show(tx, ids, shown).await?,
            other => return Err(Error::Internal(format!("there are no records of the kind {other}"))),
        }
        Ok(())
    }
}
