//! Electronic invoices: a document on paper as UBL 2.1 that follows Peppol BIS Billing 3.0.
//!
//! [`ubl::write`] always makes XML from what is known; [`missing`] names what the official rules (EN 16931, Peppol and
//! the countries' own) still want. Neither computes an amount: all of them come from the paper.

mod codes;
mod identity;
mod missing;
pub mod ubl;
mod xml;

use render::paper::{Category, Kind, Paper};

pub use missing::missing;

fn is_credit(paper: &Paper) -> bool {
    paper.kind == Kind::Credit
}

/// Only rows outside the scope of VAT: then nobody's VAT number may be on it.
fn is_outside_scope(paper: &Paper) -> bool {
    !paper.rows.is_empty() && paper.rows.iter().all(|row| row.category == Category::O)
}
