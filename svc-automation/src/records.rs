//! The records of this service, for the pass that compares the log with them. A kind that is not here is not in the change
//! feed until it changes.

use chassis_base::Error;
use chassis_data::Tx;
use chassis_data::log::snapshot::{Key, RecordTable, Records, Shown};

use crate::{Automation, flow, run, webhook};

const FLOW: &str = "flow";
const RUN: &str = "run";
const WEBHOOK_ENDPOINT: &str = "webhook_endpoint";

const TABLES: &[RecordTable] = &[
    RecordTable::new(FLOW, "automation.flow", Key::Uuid("id")).only("not deleted"),
    RecordTable::new(WEBHOOK_ENDPOINT, "automation.webhook_endpoint", Key::Uuid("id")),
    RecordTable::new(RUN, "automation.run", Key::Uuid("id")),
];

#[tonic::async_trait]
impl Records for Automation {
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
            FLOW => flow::operations::show(tx, ids, shown).await?,
            WEBHOOK_ENDPOINT => webhook::operations::show(tx, ids, shown).await?,
            RUN => run::operations::show(tx, ids, shown).await?,
            other => return Err(Error::Internal(format!("there are no records of the kind {other}"))),
        }
        Ok(())
    }

    async fn raised(&self, tx: &mut Tx<'_>, kind: &str, ids: &[String]) -> Result<(), Error> {
        if kind == FLOW {
            flow::operations::copy_definitions(tx, ids).await?;
        }
        Ok(())
    }
}
