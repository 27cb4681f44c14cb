//! How a read tells the database object that a list should be prepared: reads have only a connection.

use std::cell::RefCell;

use super::Preparation;

tokio::task_local! {
    static NOTICED: RefCell<Vec<Preparation>>;
}

/// Runs a read. Returns with its result what it has noticed.
pub(crate) async fn noticing<T>(read: impl Future<Output = T>) -> (T, Vec<Preparation>) {
    let read = async {
        let result = read.await;
        (result, NOTICED.with(RefCell::take))
    };
    NOTICED.scope(RefCell::default(), read).await
}

/// Notes that a list should be prepared. Has no effect outside [`noticing`]: some other read will notice it.
pub(crate) fn notice(preparation: Preparation) {
    let _ = NOTICED.try_with(|noticed| noticed.borrow_mut().push(preparation));
}
