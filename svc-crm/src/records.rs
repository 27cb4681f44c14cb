//! The records of this service, for the pass that compares the log with them. A kind that is not here is not in the change
//! feed until it changes.

use chassis_base::Error;
use chassis_data::Tx;
use chassis_data::log::snapshot::{Key, RecordTable, Records, Shown};

use crate::{Crm, deal, kind, pipeline, source};

const TABLES: &[RecordTable] = &[
    RecordTable::new(kind::PIPELINE, "crm.pipeline", Key::Uuid("id")),
    RecordTable::new(kind::PHASE, "crm.phase", Key::Uuid("id")),
    RecordTable::new(kind::DEAL_SOURCE, "crm.source", Key::Text("name")),
    RecordTable::new(kind::DEAL, "crm.deal", Key::Uuid("id")),
];

#[tonic::async_trait]
impl Records for Crm {
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
            kind::PIPELINE => pipeline::operations::show(tx, ids, shown).await?,
            kind::PHASE => pipeline::operations::show_phases(tx, ids, shown).await?,
            kind::DEAL_SOURCE => source::operations::show(tx, ids, shown).await?,
            kind::DEAL => deal::operations::show(tx, ids, shown).await?,
            other => return Err(Error::Internal(format!("there are no records of the kind {other}"))),
        }
        Ok(())
    }
}
