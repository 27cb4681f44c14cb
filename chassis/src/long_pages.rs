//! Long pages of lists, and lists without pages that are as long. One is memory until it is sent, several times over: only so many are on their way at once, and
//! one account has half of them at most.

use std::sync::{Arc, LazyLock};

use sqlx::Row;
use sqlx::postgres::PgRow;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::account::AccountId;
use crate::error::{Error, unavailable};
use crate::scope;
use crate::shares::{Share, Shares};

/// From so many bytes on a page is long.
const LONG: usize = 256 << 10;
/// In one process.
const MAX_AT_ONCE: usize = 8;

/// A place among them.
struct Place {
    _of_all: OwnedSemaphorePermit,
    _of_account: Share,
}

struct Places {
    all: Arc<Semaphore>,
    accounts: Shares,
}

impl Places {
    fn new(most: usize) -> Self {
        Self { all: Arc::new(Semaphore::new(most)), accounts: Shares::new(most.div_ceil(2)) }
    }

    fn enter(&self, account: AccountId) -> Option<Place> {
        let of_account = self.accounts.enter(account)?;
        let of_all = Arc::clone(&self.all).try_acquire_owned().ok()?;
        Some(Place { _of_all: of_all, _of_account: of_account })
    }
}

/// Counts the bytes of a page while its rows are read. When it becomes long, it gets one of the places until it is sent.
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
    /// When it becomes long and there is no place for it.
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

/// A place for the page of the present call. Whoever finds none is asked to come back; waiting here would keep a
/// connection to the database from others.
fn enter(account: AccountId) -> Result<(), Error> {
    static PLACES: LazyLock<Places> = LazyLock::new(|| Places::new(MAX_AT_ONCE));
    let place = PLACES.enter(account).ok_or_else(|| {
        metrics::counter!("shed_total").increment(1);
        let detail = "Too many long answers are on their way. Repeat the request in a moment, or ask for fewer \
                      entries where the list has pages.";
        Error::Peer(Box::new(unavailable(detail)))
    })?;
    scope::keep(place);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_account_has_half_of_the_places_and_all_together_have_them_all() {
        let places = Places::new(4);
        let [one, other, third] = [1, 2, 3].map(|id| AccountId::trust(uuid::Uuid::from_u128(id)));
        let of_one: Vec<Place> = std::iter::from_fn(|| places.enter(one)).collect();
        let of_other: Vec<Place> = std::iter::from_fn(|| places.enter(other)).collect();
        assert_eq!((of_one.len(), of_other.len()), (2, 2));
        assert!(places.enter(third).is_none());
        drop(of_one);
        assert!(places.enter(third).is_some());
    }
}
