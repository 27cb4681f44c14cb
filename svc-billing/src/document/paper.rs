//! Documents on paper: what PDF, e-invoice and page are made from.

use render::Paper;
use render::paper::{self, Look, Original};
use rust_decimal::Decimal;

use super::rules::amounts::{Row, two_places, vat_lines};
use super::{Kind, Parties, Record};
use crate::einvoice;

/// What a draft lacks for an e-invoice.
const FINALIZATION: &str = "finalization";

pub fn of(record: &Record, rows: &[Row], parties: &Parties, original: Option<Original>, look: Look) -> Paper {
    Paper {
        kind: match record.kind {
            Kind::Invoice if record.is_credit() => paper::Kind::Credit,
            Kind::Invoice => paper::Kind::Invoice,
            Kind::Quote => paper::Kind::Quote,
            Kind::Workorder => paper::Kind::Workorder,
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
        settlement: paper::Settlement::New,
        collection: None,
        look,
    }
}

fn row(row: &Row) -> paper::Row {
    paper::Row {
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

fn vat(rows: &[Row], vat: Decimal) -> Vec<paper::Vat> {
    let groups = vat_lines(rows, vat).into_iter();
    let vat = groups.map(|group| paper::Vat {
        rate: group.rate,
        category: group.category,
        taxable: two_places(group.taxable),
        vat: two_places(group.vat),
    });
    vat.collect()
}

/// The invoice that a credit takes back.
pub fn original(invoice: &Record) -> Original {
    Original { number: invoice.number.clone(), date: invoice.invoice_date }
}

/// What the e-invoice of a document lacks. Quotes and workorders have none, and lack nothing.
pub fn einvoice_missing(
    record: &Record,
    rows: &[Row],
    parties: Option<&Parties>,
    original: Option<Original>,
) -> Vec<String> {
    match (record.kind, parties.filter(|_| record.is_final)) {
        (Kind::Quote | Kind::Workorder, _) => Vec::new(),
        (Kind::Invoice, None) => vec![FINALIZATION.to_owned()],
        (Kind::Invoice, Some(parties)) => {
            let mut paper = of(record, rows, parties, original, Look::default());
            if paper.number.is_empty() {
                // It is given last of all, and every final document gets one.
                record.kind.name().clone_into(&mut paper.number);
            }
            einvoice::missing(&paper).into_iter().map(str::to_owned).collect()
        }
    }
}
