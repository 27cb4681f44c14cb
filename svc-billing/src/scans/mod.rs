//! What billing tells because time passes: quotes without an answer, invoices that are late, clients that stay away,
//! subscriptions that come to their end, drafts that were forgotten. Owns when each of these is so; how and how often
//! that is looked at is the business of chassis.

mod clients;
mod documents;
mod subscriptions;

use chassis_work::scan::Scan;

/// All of them.
pub fn all() -> Vec<Scan> {
    vec![
        documents::silent_quotes(),
        documents::late_invoices(),
        documents::forgotten_drafts(),
        clients::inactive(),
        clients::overdue(),
        subscriptions::expiring(),
    ]
}

/// A condition on `d`, a document: an invoice of which something is still to be paid, by the client. A status that was
/// set by hand and means something else is respected.
macro_rules! owed {
    () => {
        "d.kind = 'invoice' and d.is_final and d.credits is null and d.open_amount > 0 \
         and d.payment_status in ('open', 'partially_paid', 'partially_credited')"
    };
}
use owed;
