//! The records of this service, for the pass that compares the log with them. A kind that is not here is not in the change
//! feed until it changes.

use chassis_base::Error;
use chassis_data::Tx;
use chassis_data::log::snapshot::{Key, RecordTable, Records, Shown};

use crate::Support;
use crate::channel::operations as channel;
use crate::domain::operations as domain;
use crate::message::operations as message;
use crate::status::operations as status;
use crate::ticket::operations as ticket;

const TABLES: &[RecordTable] = &[
    RecordTable::new(status::AUDIT_KIND, "support.status", Key::Uuid("id")),
    RecordTable::new(channel::AUDIT_KIND, "support.channel", Key::Uuid("id")),
    RecordTable::new(domain::AUDIT_KIND, "support.domain", Key::Text("host")),
    RecordTable::new(ticket::AUDIT_KIND, "support.ticket", Key::Uuid("id")),
    RecordTable::new(message::AUDIT_KIND, "support.message", Key::Uuid("id")),
];

#[tonic::async_trait]
impl Records for Support {
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
            status::AUDIT_KIND => status::show(tx, ids, shown).await?,
            channel::AUDIT_KIND => channel::show(tx, &self.own, ids, shown).await?,
            domain::AUDIT_KIND => domain::show(tx, ids, shown).await?,
            ticket::AUDIT_KIND => ticket::show(tx, ids, shown).await?,
            message::AUDIT_KIND => message::show(tx, ids, shown).await?,
            other => return Err(Error::Internal(format!("there are no records of the kind {other}"))),
        }
        Ok(())
    }
}
