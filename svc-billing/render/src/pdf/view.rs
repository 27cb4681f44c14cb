//! The input of the template: every text as it is shown, every width and colour already computed. The template only
//! places them.

use std::collections::BTreeSet;

use rust_decimal::Decimal;
use serde::Serialize;

use super::attachment::Attachment;
use super::fit::{breakable, line, metadata, width};
use super::palette::Palette;
use super::parties::{Seller, buyer, seller, sender};
use super::rows::{Columns, GUTTER, LETTER, PAGE, Row};
use crate::printed::PrintedDocument;
use crate::printed::{Kind, PrintedState};
use crate::text::{self, Words};

/// Totals with more lines than this may continue on a next page.
const WHOLE_TOTALS: usize = 16;

#[derive(Serialize)]
pub(super) struct View {
    language: &'static str,
    title: String,
    author: String,
    draft: Option<String>,
    heading: &'static str,
    subject: String,
    running: String,
    logo: Option<&'static str>,
    seller: Seller,
    sender: String,
    buyer: Vec<String>,
    facts: Vec<Labelled>,
    /// Whether all facts fit on one line.
    strip: bool,
    columns: Columns,
    head: Head,
    rows: Vec<Row>,
    totals: Vec<Labelled>,
    total: Labelled,
    /// What was subtracted from the total, and what is left.
    after: Vec<Labelled>,
    /// Whether the totals stay on one page with the last row.
    whole: bool,
    notes: Vec<String>,
    closing: Closing,
    footer: String,
    details: Vec<String>,
    page: &'static str,
    of: &'static str,
    palette: Palette,
    attachment: Option<Embedded>,
}

#[derive(Serialize)]
struct Labelled {
    label: String,
    value: String,
}

#[derive(Serialize)]
struct Head {
    description: &'static str,
    quantity: &'static str,
    price: &'static str,
    vat: &'static str,
    amount: &'static str,
}

#[derive(Serialize)]
struct Closing {
    heading: &'static str,
    sentence: String,
    facts: Vec<Labelled>,
    /// The caption of the QR code, when there is one.
    scan: Option<&'static str>,
    /// The fields to fill in by hand.
    sign: Vec<&'static str>,
}

#[derive(Serialize)]
struct Embedded {
    name: String,
    description: String,
}

impl View {
    pub(super) fn new(
        printed: &PrintedDocument,
        logo: Option<&'static str>,
        code: bool,
        attachment: Option<&Attachment<'_>>,
    ) -> Self {
        let words = Words::for_document(printed);
        let number = line(&printed.number);
        let mut rows: Vec<Row> = printed.rows.iter().map(|row| Row::new(row, &words)).collect();
        let columns = Columns::new(&rows, &words);
        for row in &mut rows {
            row.fit(&columns);
        }
        let totals = totals(printed, &words);
        let facts = labelled(words.facts(printed), 11.5);
        Self {
            language: printed.language.code(),
            title: metadata(&format!("{} {}", words.document, printed.number)),
            author: metadata(&printed.seller.name),
            draft: printed.draft.then(|| words.draft.to_uppercase()),
            heading: words.document,
            subject: breakable(&line(&printed.title), PAGE / 11.0),
            running: breakable(format!("{} {number}", words.document).trim(), 26.0),
            logo,
            seller: seller(printed, &words),
            sender: sender(&printed.seller),
            buyer: buyer(printed, &words),
            strip: is_strip(&facts),
            facts,
            columns,
            head: Head {
                description: words.description,
                quantity: words.quantity,
                price: words.unit_price,
                vat: words.vat,
                amount: words.amount,
            },
            rows,
            whole: totals.len() <= WHOLE_TOTALS,
            totals,
            total: Labelled {
                label: words.total_label(printed).to_owned(),
                value: text::money(printed.total_incl, &line(&printed.currency), printed.language),
            },
            after: after(printed, &words),
            notes: notes(printed, &words),
            closing: closing(printed, &words, code),
            footer: breakable(&line(&printed.look.footer), 50.0),
            details: words
                .company_details(printed)
                .iter()
                .map(|detail| breakable(&line(detail), 50.0))
                .collect(),
            page: words.page,
            of: words.of,
            palette: Palette::new(&printed.look.primary_color, &printed.look.secondary_color),
            attachment: attachment.map(|attachment| Embedded {
                name: text::file_name(attachment.name),
                description: metadata(&format!("{} {} (XML)", words.document, printed.number)),
            }),
        }
    }
}

fn labelled(pairs: Vec<(&'static str, String)>, room: f64) -> Vec<Labelled> {
    pairs
        .into_iter()
        .map(|(label, value)| Labelled { label: label.to_owned(), value: breakable(&line(&value), room) })
        .collect()
}

/// Whether the facts fit on one line with space between them.
fn is_strip(facts: &[Labelled]) -> bool {
    let used: f64 =
        facts.iter().map(|fact| (width(&fact.value) * LETTER).max(width(&fact.label) * 7.5) + GUTTER).sum();
    used <= PAGE + GUTTER
}

fn totals(printed: &PrintedDocument, words: &Words) -> Vec<Labelled> {
    let currency = line(&printed.currency);
    let money = |amount: Decimal| text::money(amount, &currency, printed.language);
    let subtotal = Labelled { label: words.subtotal.to_owned(), value: money(printed.total_excl) };
    let vat = printed.vat.iter().map(|vat| Labelled {
        label: words.vat_over(vat.rate, vat.category, vat.taxable, &currency),
        value: money(vat.vat),
    });
    std::iter::once(subtotal).chain(vat).collect()
}

fn after(printed: &PrintedDocument, words: &Words) -> Vec<Labelled> {
    let money = |amount: Decimal| text::money(amount, &line(&printed.currency), printed.language);
    let lines = words.after(&printed.shown_state(), printed.total_incl).into_iter();
    lines.map(|(label, amount)| Labelled { label: label.to_owned(), value: money(amount) }).collect()
}

/// The statements that the law requires, once for each category on the document.
fn notes(printed: &PrintedDocument, words: &Words) -> Vec<String> {
    let categories: BTreeSet<_> = printed
        .vat
        .iter()
        .map(|vat| vat.category)
        .chain(printed.rows.iter().map(|row| row.category))
        .collect();
    categories.into_iter().filter_map(|category| words.legal(category)).map(str::to_owned).collect()
}

fn closing(printed: &PrintedDocument, words: &Words, code: bool) -> Closing {
    let facts = if printed.to_transfer().is_some() && !printed.bank.iban.trim().is_empty() {
        let holder =
            [&printed.bank.holder, &printed.seller.name].into_iter().find(|name| !name.trim().is_empty());
        let facts = vec![
            (words.account, text::iban(&printed.bank.iban).replace(' ', "\u{a0}")),
            (words.bic, printed.bank.bic.clone()),
            (words.holder, holder.cloned().unwrap_or_default()),
            (words.payment_reference, printed.number.clone()),
        ];
        labelled(facts.into_iter().filter(|(_, value)| !value.trim().is_empty()).collect(), 24.0)
    } else {
        Vec::new()
    };
    Closing {
        heading: words.closing,
        sentence: breakable(&line(&words.closing_sentence(printed)), 38.0),
        facts,
        scan: code.then_some(words.scan),
        sign: match printed.kind {
            Kind::Quote if matches!(printed.state, PrintedState::Accepted { .. }) => Vec::new(),
            Kind::Quote | Kind::Workorder => vec![words.name, words.place_and_date, words.signature],
            Kind::Invoice | Kind::Credit => Vec::new(),
        },
    }
}
