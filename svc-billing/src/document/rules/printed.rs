//! The printed form of a document, from which PDF, e-invoice and page are made.

use render::PrintedDocument;
use render::printed::{self, Look, Original};
use rust_decimal::Decimal;

use super::amounts::{Row, vat_lines};
use crate::document::{Kind, Parties, Record};
use crate::einvoice;
use crate::money::two_places;

/// What a draft lacks for an e-invoice.
const FINALIZATION: &str = "finalization";

/// `original` is the invoice that a credit is for. The state is left as new; it depends on when the document is shown.
pub(crate) fn printed_document(
    record: &Record,
    rows: &[Row],
    parties: &Parties,
    original: Option<Original>,
    look: Look,
) -> PrintedDocument {
    PrintedDocument {
        kind: match record.kind {
            Kind::Invoice if record.is_credit() => printed::Kind::Credit,
            Kind::Invoice => printed::Kind::Invoice,
            Kind::Quote => printed::Kind::Quote,
            Kind::Workorder => printed::Kind::Workorder,
        },
        language: record.language,
        draft: !record.is_final,
        number: record.number.clone(),
        title: record.title.clone(),
        reference: record.external_id.clone(),
        date: record.invoice_date,
        due_date: record.due_date,
        currency: record.currency.clone(),
        seller: parties.seller.party.clone(),
        buyer: parties.buyer.clone(),
        bank: parties.seller.bank.clone(),
        rows: rows.iter().map(row).collect(),
        vat: vat(rows, record.vat_amount),
        total_excl: record.total_excl,
        total_vat: record.vat_amount,
        total_incl: record.total_incl,
        credits: original,
        prepaid: record.prepaid_amount,
        state: printed::PrintedState::New,
        collection: None,
        look,
    }
}

fn row(row: &Row) -> printed::Row {
    printed::Row {
        name: row.name.clone(),
        description: row.description.clone(),
        quantity: row.quantity,
        unit: row.unit.clone(),
        unit_price: row.unit_price,
        vat_rate: row.vat_rate,
        category: row.category,
        total_excl: two_places(row.total_excl()),
    }
}

fn vat(rows: &[Row], vat: Decimal) -> Vec<printed::Vat> {
    let groups = vat_lines(rows, vat).into_iter();
    let vat = groups.map(|group| printed::Vat {
        rate: group.rate,
        category: group.category,
        taxable: two_places(group.taxable),
        vat: two_places(group.vat),
    });
    vat.collect()
}

/// The invoice that a credit is for.
pub(crate) fn original(invoice: &Record) -> Original {
    Original { number: invoice.number.clone(), date: invoice.invoice_date }
}

/// What the e-invoice of a document lacks. Quotes and workorders have none, and lack nothing.
pub(crate) fn einvoice_missing(
    record: &Record,
    rows: &[Row],
    parties: Option<&Parties>,
    original: Option<Original>,
) -> Vec<String> {
    match (record.kind, parties.filter(|_| record.is_final)) {
        (Kind::Quote | Kind::Workorder, _) => Vec::new(),
        (Kind::Invoice, None) => vec![FINALIZATION.to_owned()],
        (Kind::Invoice, Some(parties)) => {
            let mut printed = printed_document(record, rows, parties, original, Look::default());
            if printed.number.is_empty() {
                // The number is assigned last, and every final document gets one. Any text passes the check for it.
                record.kind.name().clone_into(&mut printed.number);
            }
            einvoice::missing(&printed).into_iter().map(str::to_owned).collect()
        }
    }
}
