//! Compares the log with the records, and logs what it lacks: records that are older than the log, and what programs of the
//! release before, which know neither log nor versions, have changed or removed beside this one. So reading the log from
//! the beginning always rebuilds the account.
//!
//! A service declares where its records are and how it shows them ([`Records`]). A pass walks through an account kind by
//! kind, a page in each transaction ([`pass`]), and remembers its place ([`place`]). Records are locked while they are
//! compared ([`table`]), so that nobody changes them in between. No event is told: nothing has happened to the records.

mod pass;
mod place;
mod table;

use std::fmt::Display;
use std::sync::Arc;

use chassis_base::{Error, id};
use prost::{Message, Name};
use uuid::Uuid;

use super::image::Image;
use crate::write::Tx;

pub(crate) use pass::{Collided, relog};
pub use pass::{Progress, advance, restart, resume};
pub use place::skip_new_account;
pub use table::{Key, RecordTable};

/// The records of a service.
#[tonic::async_trait]
pub trait Records: Send + Sync + 'static {
    /// Where the records of each kind are, and so which kinds there are. What others refer to comes first.
    fn tables(&self) -> &'static [RecordTable];

    /// Adds the records of this kind with these ids as their GET shows them, which is how operations report them with
    /// [`Plan::changed`](crate::Plan::changed). Their rows are locked. An id without a record is left out.
    async fn show(&self, tx: &mut Tx<'_>, kind: &str, ids: &[String], shown: &mut Shown)
    -> Result<(), Error>;

    /// Does what has to go with a new version of these records. It is stored already.
    async fn raised(&self, _tx: &mut Tx<'_>, _kind: &str, _ids: &[String]) -> Result<(), Error> {
        Ok(())
    }
}

struct NoRecords;

#[tonic::async_trait]
impl Records for NoRecords {
    fn tables(&self) -> &'static [RecordTable] {
        &[]
    }

    async fn show(&self, _: &mut Tx<'_>, _: &str, _: &[String], _: &mut Shown) -> Result<(), Error> {
        Ok(())
    }
}

/// The records of a service, as the operations of a pass take them.
#[derive(Clone)]
pub struct SharedRecords(Arc<dyn Records>);

impl SharedRecords {
    pub fn new(records: Arc<dyn Records>) -> Self {
        Self(records)
    }

    /// Those of a program whose log has no records, only what was done.
    pub fn none() -> Self {
        Self::new(Arc::new(NoRecords))
    }

    /// Where the records are.
    pub fn tables(&self) -> &'static [RecordTable] {
        self.0.tables()
    }

    fn get(&self) -> &dyn Records {
        &*self.0
    }
}

/// Records as they are shown now.
#[derive(Default)]
pub struct Shown {
    records: Vec<(String, Image)>,
    bytes: usize,
}

impl Shown {
    /// Adds a record. `id` is its id in the log.
    pub fn add<M: Message + Name>(&mut self, id: impl Display, message: &M) {
        let image = Image::of(message);
        self.bytes += image.bytes.len();
        self.records.push((id.to_string(), image));
    }
}

/// The ids as UUIDs. Those of a table whose key is a UUID all are.
pub fn uuids(ids: &[String]) -> Vec<Uuid> {
    ids.iter().filter_map(|text| id::parse(text)).collect()
}
