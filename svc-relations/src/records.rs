//! The records of this service, for the pass that compares the log with them. A kind that is not here is not in the change
//! feed until it changes.

use chassis_base::Error;
use chassis_data::Tx;
use chassis_data::log::snapshot::{Key, RecordTable, Records, Shown};

use crate::relation::Role;
use crate::relation::operations as relations;
use crate::{Relations, custom_field};

const CUSTOM_FIELD: &str = custom_field::operations::AUDIT_KIND;
const TABLE: &str = "relations.relation";

const TABLES: &[RecordTable] = &[
    RecordTable::new("client", TABLE, Key::Uuid("id")).only("role = 'client'"),
    RecordTable::new("supplier", TABLE, Key::Uuid("id")).only("role = 'supplier'"),
    // An account has few.
    RecordTable::new(CUSTOM_FIELD, "relations.custom_field", Key::Text("(entity || '/' || key)")),
];

#[tonic::async_trait]
impl Records for Relations {
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
            "client" => relations::show(tx, Role::Client, ids, shown).await?,
            "supplier" => relations::show(tx, Role::Supplier, ids, shown).await?,
            CUSTOM_FIELD => custom_field::operations::show(tx, ids, shown).await?,
            other => return Err(Error::Internal(format!("there are no records of the kind {other}"))),
        }
        Ok(())
    }
}
