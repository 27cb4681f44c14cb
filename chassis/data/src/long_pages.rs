//! A limit on long responses: pages of lists, and lists without pages. A long response is in memory several times until
//! it is sent, so a process serves a fixed number of them at a time, and one account at most half of that number.

use std::sync::{Arc, LazyLock};

use chassis_base::error::status::unavailable;
use chassis_base::shares::{Share, Shares};
use chassis_base::{AccountId, Error};
use chassis_rpc::scope;
use sqlx::Row;
use sqlx::postgres::PgRow;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// A page with more bytes than this is long.
const LONG: usize = 256 << 10;
/// The most long pages that one process serves at a time.
const MAX_AT_ONCE: usize = 8;

/// The right to serve one long page.
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

/// Counts the bytes of a page while its rows are read. A page that becomes long takes a permit until it is sent.
pub struct PageBytes {
    account: AccountId,
    bytes: usize,
}

impl PageBytes {
    pub fn new(account: AccountId) -> Self {
        Self { account, bytes: 0 }
    }

    /// Adds a row and returns the bytes of the page so far.
    ///
    /// # Errors
    /// When the page becomes long and there is no permit for it.
    pub fn add(&mut self, row: &PgRow) -> Result<usize, Error> {
        let before = self.bytes;
        self.bytes += size(row);
        if before <= LONG && self.bytes > LONG {
            enter(self.account)?;
        }
        Ok(self.bytes)
    }
}

/// The size of a row in bytes, as the server sent it: its values are in memory one behind the other, so that the first and
/// the last one suffice.
pub(crate) fn size(row: &PgRow) -> usize {
    let value = |index| row.try_get_raw(index).ok()?.as_bytes().ok().map(<[u8]>::as_ptr_range);
    let (first, last) = ((0..row.len()).find_map(value), (0..row.len()).rev().find_map(value));
    first.zip(last).map_or(0, |(first, last)| last.end.addr().saturating_sub(first.start.addr()))
}

/// Takes a permit for the page of the current call. If none is free, the call fails with a retryable error; waiting
/// here would occupy a database connection.
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
