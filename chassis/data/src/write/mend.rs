//! Mends the versions of records that the log refused; see [`collision`](super::collision).

use chassis_base::{Account, Error};

use super::collision::Collision;
use super::operation::Of;
use super::run::nothing;
use crate::db::Db;
use crate::log::snapshot::{Collided, relog};
use crate::origin::Origin;

impl Db {
    /// Logs the records that the log refused, if they differ from it.
    pub(super) async fn mend(&self, account: &Account, collision: &Collision) -> Result<(), Error> {
        let (records, refused) = (self.records.get(), collision.take());
        let Some(records) = records.filter(|_| !refused.is_empty()) else { return Ok(()) };
        let input = Collided { records: records.clone(), refused };
        let operation = Of { input: &input, function: &relog };
        match self.attempt(account, Origin::Service, &operation, &nothing, &Collision::default(), true).await
        {
            // Somebody else changes them right now; the write finds out.
            Err(error) if error.is_repeatable() => Ok(()),
            mended => mended.map(|_| ()),
        }
    }
}
