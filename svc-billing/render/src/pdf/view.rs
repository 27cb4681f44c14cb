//! What the template is given: every text as it is shown, every width and colour worked out. The template only places.

use std::collections::BTreeSet;

use rust_decimal::Decimal;
use serde::Serialize;

use super::Attachment;
use super::fit::{breakable, line, metadata, width};
use super::palette::Palette;
use super::parties::{Seller, buyer, seller, sender};
use super::rows::{Columns, GUTTER, LETTER, PAGE, Row};
use crate::Paper;
use crate::paper::{Kind, Language, Settlement};
use crate::text::{self, Words};

/// Totals with more lines than this may continue on a next page.
const WHOLE_TOTALS: usize = 16;

#[derive(Serialize)]
pub struct View {
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
    /// Whether all facts fit beside each other.
    strip: bool,
    columns: Columns,
    head: Head,
    rows: Vec<Row>,
    totals: Vec<Labelled>,
    total: Labelled,
    /// What has gone off the total, and what is left.
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
    pub fn new(
        paper: &Paper,
        logo: Option<&'static str>,
        code: bool,
        attachment: Option<&Attachment<'_>>,
    ) -> Self {
        let words = Words::for_paper(paper);
        let number = line(&paper.number);
        let mut rows: Vec<Row> = paper.rows.iter().map(|row| Row::new(row, &words)).collect();
        let columns = Columns::new(&rows, &words);
        for row in &mut rows {
            row.fit(&columns);
        }
        let totals = totals(paper, &words);
        let facts = labelled(words.facts(paper), 11.5);
        Self {
            language: language(paper.language),
            title: metadata(&format!("{} {}", words.document, paper.number)),
            author: metadata(&paper.seller.name),
            draft: paper.draft.then(|| words.draft.to_uppercase()),
            heading: words.document,
            subject: breakable(&line(&paper.title), PAGE / 11.0),
            running: breakable(format!("{} {number}", words.document).trim(), 26.0),
            logo,
            seller: seller(paper, &words),
            sender: sender(&paper.seller),
            buyer: buyer(paper, &words),
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
                label: words.total_label(paper).to_owned(),
                value: text::money(paper.total_incl, &line(&paper.currency), paper.language),
            },
            after: after(paper, &words),
            notes: notes(paper, &words),
            closing: closing(paper, &words, code),
            footer: breakable(&line(&paper.look.footer), 50.0),
            details: words
                .company_details(paper)
                .iter()
                .map(|detail| breakable(&line(detail), 50.0))
                .collect(),
            page: words.page,
            of: words.of,
            palette: Palette::new(&paper.look.primary_color, &paper.look.secondary_color),
            attachment: attachment.map(|attachment| Embedded {
                name: text::file_name(attachment.name),
                description: metadata(&format!("{} {} (XML)", words.document, paper.number)),
            }),
        }
    }
}

fn language(language: Language) -> &'static str {
    match language {
        Language::Nl => "nl",
        Language::En => "en",
    }
}

fn labelled(pairs: Vec<(&'static str, String)>, room: f64) -> Vec<Labelled> {
    pairs
        .into_iter()
        .map(|(label, value)| Labelled { label: label.to_owned(), value: breakable(&line(&value), room) })
        .collect()
}

/// Whether the facts fit on one line with some air between them.
fn is_strip(facts: &[Labelled]) -> bool {
    let used: f64 =
        facts.iter().map(|fact| (width(&fact.value) * LETTER).max(width(&fact.label) * 7.5) + GUTTER).sum();
    used <= PAGE + GUTTER
}

fn totals(paper: &Paper, words: &Words) -> Vec<Labelled> {
    let currency = line(&paper.currency);
    let money = |amount: Decimal| text::money(amount, &currency, paper.language);
    let subtotal = Labelled { label: words.subtotal.to_owned(), value: money(paper.total_excl) };
    let vat = paper.vat.iter().map(|vat| Labelled {
        label: words.vat_over(vat.rate, vat.category, vat.taxable, &currency),
        value: money(vat.vat),
    });
    std::iter::once(subtotal).chain(vat).collect()
}

fn after(paper: &Paper, words: &Words) -> Vec<Labelled> {
    let money = |amount: Decimal| text::money(amount, &line(&paper.currency), paper.language);
    let lines = words.after(&paper.settled(), paper.total_incl).into_iter();
    lines.map(|(label, amount)| Labelled { label: label.to_owned(), value: money(amount) }).collect()
}

/// What the law wants said, once for each category that is on the document.
fn notes(paper: &Paper, words: &Words) -> Vec<String> {
    let categories: BTreeSet<_> =
        paper.vat.iter().map(|vat| vat.category).chain(paper.rows.iter().map(|row| row.category)).collect();
    categories.into_iter().filter_map(|category| words.legal(category)).map(str::to_owned).collect()
}

fn closing(paper: &Paper, words: &Words, code: bool) -> Closing {
    let facts = if paper.to_transfer().is_some() && !paper.bank.iban.trim().is_empty() {
        let holder =
            [&paper.bank.holder, &paper.seller.name].into_iter().find(|name| !name.trim().is_empty());
        let facts = vec![
            (words.account, text::iban(&paper.bank.iban).replace(' ', "\u{a0}")),
            (words.bic, paper.bank.bic.clone()),
            (words.holder, holder.cloned().unwrap_or_default()),
            (words.payment_reference, paper.number.clone()),
        ];
        labelled(facts.into_iter().filter(|(_, value)| !value.trim().is_empty()).collect(), 24.0)
    } else {
        Vec::new()
    };
    Closing {
        heading: words.closing,
        sentence: breakable(&line(&words.closing_sentence(paper)), 38.0),
        facts,
        scan: code.then_some(words.scan),
        sign: match paper.kind {
            Kind::Quote if matches!(paper.settlement, Settlement::Accepted { .. }) => Vec::new(),
            Kind::Quote | Kind::Workorder => vec![words.name, words.place_and_date, words.signature],
            Kind::Invoice | Kind::Credit => Vec::new(),
        },
    }
}
