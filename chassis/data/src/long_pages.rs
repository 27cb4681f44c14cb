//! A limit on long responses: pages of lists, and lists without pages. A long response is in memory several times until
//! it is sent, so a process serves a fixed number of them at a time, and one account at most half of that number.

use std::sync::LazyLock;

use chassis_base::error::status::unavailable;
use chassis_base::shares::Places;
use chassis_base::{AccountId, Error};
use chassis_rpc::scope;
use sqlx::Row;
use sqlx::postgres::PgRow;

/// A page with more bytes than this is long.
const LONG: usize = 256 << 10;
/// The most long pages that one process serves at a time.
const MAX_AT_ONCE: usize = 8;

/// Counts the bytes of a page while its rows are read. A page that becomes long takes a place until it is sent.
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
    /// When the page becomes long and there is no place for it.
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

/// Takes a place for the page of the current call. If none is free, the call fails with a retryable error; waiting
/// here would occupy a database connection.
fn enter(account: AccountId) -> Result<(), Error> {
    static PLACES: LazyLock<Places> = LazyLock::new(|| Places::new(MAX_AT_ONCE, MAX_AT_ONCE / 2));
    let place = PLACES.enter(account).ok_or_else(|| {
        metrics::counter!("shed_total").increment(1);
        let detail = "Too many long answers are on their way. Repeat the request in a moment, or ask for fewer \
                      entries where the list has pages.";
        Error::Peer(Box::new(unavailable(detail)))
    })?;
    scope::keep(place);
    Ok(())
}
