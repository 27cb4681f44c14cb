//! Long pages of lists, and lists without pages that are as long. One is memory until it is sent, several times over: only so many are on their way at once, and
//! one account has half of them at max.

use std::sync::{Arc, LazyLock};

use chassis_base::error::status::unavailable;
use chassis_base::shares::{Share, Shares};
use chassis_base::{AccountId, Error};
use chassis_rpc::scope;
use sqlx::Row;
use sqlx::postgres::PgRow;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// From so many bytes on a page is long.
const LONG: usize = 256 << 10;
/// In one process.
const MAX_AT_ONCE: usize = 8;

/// A permit among them.
struct Permit {
    _of_all: OwnedSemaphorePermit,
    _of_account: Share,
}

struct Permits {
    all: Arc<Semaphore>,
    accounts: Shares,
}

impl Permits {
    fn new(max: usize) -> Self {
        Self { all: Arc::new(Semaphore::new(max)), accounts: Shares::new(max.div_ceil(2)) }
    }

    fn enter(&self, account: AccountId) -> Option<Permit> {
        let of_account = self.accounts.enter(account)?;
        let of_all = Arc::clone(&self.all).try_acquire_owned().ok()?;
        Some(Permit { _of_all: of_all, _of_account: of_account })
    }
}

/// Counts the bytes of a page while its rows are read. When it becomes long, it gets one of the permits until it is sent.
pub struct PageBytes {
    account: AccountId,
    bytes: usize,
}

impl PageBytes {
    pub fn new(account: AccountId) -> Self {
        Self { account, bytes: 0 }
    }

    /// Adds a row; tells how many bytes the page has with it.
    ///
    /// # Errors
    /// When it becomes long and there is no permit for it.
    pub fn add(&mut self, row: &PgRow) -> Result<usize, Error> {
        let before = self.bytes;
        self.bytes += size(row);
        if before <= LONG && self.bytes > LONG {
            enter(self.account)?;
        }
        Ok(self.bytes)
    }
}

/// What a row has in bytes.
fn size(row: &PgRow) -> usize {
    let columns = (0..row.len()).filter_map(|index| row.try_get_raw(index).ok());
    columns.map(|value| value.as_bytes().map_or(0, <[u8]>::len)).sum()
}

/// A permit for the page of the present call. Whoever finds none is asked to come back; waiting here would keep a
/// connection to the database from others.
fn enter(account: AccountId) -> Result<(), Error> {
    static PERMITS: LazyLock<Permits> = LazyLock::new(|| Permits::new(MAX_AT_ONCE));
    let permit = PERMITS.enter(account).ok_or_else(|| {
        metrics::counter!("shed_total").increment(1);
        let detail = "Too many long answers are on their way. Repeat the request in a moment, or ask for fewer \
                      entries where the list has pages.";
        Error::Peer(Box::new(unavailable(detail)))
    })?;
    scope::keep(permit);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_account_has_half_of_the_places_and_all_together_have_them_all() {
        let permits = Permits::new(4);
        let [one, other, third] = [1, 2, 3].map(|id| AccountId::trust(uuid::Uuid::from_u128(id)));
        let of_one: Vec<Permit> = std::iter::from_fn(|| permits.enter(one)).collect();
        let of_other: Vec<Permit> = std::iter::from_fn(|| permits.enter(other)).collect();
        assert_eq!((of_one.len(), of_other.len()), (2, 2));
        assert!(permits.enter(third).is_none());
        drop(of_one);
        assert!(permits.enter(third).is_some());
    }
}
