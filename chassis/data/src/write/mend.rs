//! Mends the versions of records that the log refused; see [`collision`](super::collision).

use chassis_base::{Account, Error};

use super::attempts::{self, Attempts};
use super::collision::Collision;
use super::finish::Kept;
use crate::db::Db;
use crate::log::snapshot::{Collided, relog};
use crate::origin::Origin;

impl Db {
    /// Logs the records that the log refused, if they differ from it.
    pub(super) async fn mend(&self, account: &Account, collision: &Collision) -> Result<(), Error> {
        let (records, refused) = (self.records.get(), collision.take());
        let Some(records) = records.filter(|_| !refused.is_empty()) else { return Ok(()) };
        let input = Collided { records: records.clone(), refused };
        let (mut tx, begun) = Attempts::new(self, account, Origin::Service).begin().await?;
        let relogged = async {
            begun?;
            relog(tx.open().await?, &input).await?;
            Ok(Kept::default())
        };
        let relogged = relogged.await;
        match attempts::end(tx, relogged).await {
            // Somebody else changes them right now; the write finds out.
            Err(error) if error.is_repeatable() => Ok(()),
            mended => mended.map(|_| ()),
        }
    }
}
