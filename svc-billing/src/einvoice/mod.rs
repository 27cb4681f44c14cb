//! Electronic invoices: a printed document as UBL 2.1 that follows Peppol BIS Billing 3.0.
//!
//! [`ubl::write`] always writes XML from what is known; [`missing`] names what the official rules (EN 16931, Peppol and
//! those of single countries) still require. Neither computes an amount: all amounts come from the printed document.

mod codes;
mod identity;
mod missing;
pub mod ubl;
mod xml;

use render::printed::{Category, Kind, PrintedDocument};

pub use missing::missing;

fn is_credit(printed: &PrintedDocument) -> bool {
    printed.kind == Kind::Credit
}

/// Whether all rows are outside the scope of VAT. Then the rules forbid VAT numbers on the document.
fn is_outside_scope(printed: &PrintedDocument) -> bool {
    !printed.rows.is_empty() && printed.rows.iter().all(|row| row.category == Category::O)
}
