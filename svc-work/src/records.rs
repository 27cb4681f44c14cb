//! The records of this service, for the pass that compares the log with them. A kind that is not here is not in the change
//! feed until it changes.

use chassis_base::Error;
use chassis_data::Tx;
use chassis_data::log::snapshot::{Key, RecordTable, Records, Shown};

use crate::Work;
use crate::file::operations as file;
use crate::hour::operations as hour;
use crate::note::operations as note;
use crate::project::operations as project;
use crate::task::operations as task;

/// The field `url` of a file.
const FILE_URL: &[u32] = &[4];

const TABLES: &[RecordTable] = &[
    RecordTable::new(project::AUDIT_KIND, "work.project", Key::Uuid("id")),
    RecordTable::new(hour::AUDIT_KIND, "work.hour", Key::Uuid("id")),
    RecordTable::new(task::AUDIT_KIND, "work.task", Key::Uuid("id")),
    RecordTable::new(note::AUDIT_KIND, "work.note", Key::Uuid("id")),
    RecordTable::new(file::AUDIT_KIND, "work.file", Key::Uuid("id"))
        .only("deleted_at is null")
        .volatile(FILE_URL),
];

#[tonic::async_trait]
impl Records for Work {
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
            project::AUDIT_KIND => project::show(tx, ids, shown).await?,
            hour::AUDIT_KIND => hour::show(tx, ids, shown).await?,
            task::AUDIT_KIND => task::show(tx, ids, shown).await?,
            note::AUDIT_KIND => note::show(tx, ids, shown).await?,
            file::AUDIT_KIND => file::show(tx, &self.links, ids, shown).await?,
            other => return Err(Error::Internal(format!("there are no records of the kind {other}"))),
        }
        Ok(())
    }
}
