//! What is on the pages: every text as it is shown, every width and colour already computed. The layout only places them.

use std::collections::BTreeSet;

use rust_decimal::Decimal;

use super::attachment::Attachment;
use super::clean::{Cleaner, metadata};
use super::palette::Palette;
use super::parties::{Seller, buyer, seller, sender};
use super::rows::{Columns, Row};
use crate::printed::PrintedDocument;
use crate::printed::{Kind, PrintedState};
use crate::text::{self, Words};

pub(super) struct View {
    pub language: &'static str,
    pub title: String,
    pub author: String,
    pub draft: Option<String>,
    pub heading: &'static str,
    pub subject: String,
    pub running: String,
    pub seller: Seller,
    pub sender: String,
    pub buyer: Vec<String>,
    pub facts: Vec<Labelled>,
    pub columns: Columns,
    pub head: Head,
    pub rows: Vec<Row>,
    pub totals: Vec<Labelled>,
    pub total: Labelled,
    /// What was subtracted from the total, and what is left.
    pub after: Vec<Labelled>,
    pub notes: Vec<String>,
    pub closing: Closing,
    pub footer: String,
    pub details: Vec<String>,
    pub page: &'static str,
    pub of: &'static str,
    pub palette: Palette,
    pub attachment: Option<Embedded>,
}

pub(super) struct Labelled {
    pub label: String,
    pub value: String,
}

pub(super) struct Head {
    pub description: &'static str,
    pub quantity: &'static str,
    pub price: &'static str,
    pub vat: &'static str,
    pub amount: &'static str,
}

pub(super) struct Closing {
    pub heading: &'static str,
    pub sentence: String,
    pub facts: Vec<Labelled>,
    /// The caption of the QR code, when there is one.
    pub scan: Option<&'static str>,
    /// The fields to fill in by hand.
    pub sign: Vec<&'static str>,
}

pub(super) struct Embedded {
    pub name: String,
    pub description: String,
}

impl View {
    pub(super) fn new(
        printed: &PrintedDocument,
        code: bool,
        attachment: Option<&Attachment<'_>>,
        texts: &Cleaner,
    ) -> Self {
        let words = Words::for_document(printed);
        let number = texts.line(&printed.number);
        let rows: Vec<Row> = printed.rows.iter().map(|row| Row::new(row, &words, texts)).collect();
        Self {
            language: printed.language.code(),
            title: metadata(&format!("{} {}", words.document, printed.number)),
            author: metadata(&printed.seller.name),
            draft: printed.draft.then(|| words.draft.to_uppercase()),
            heading: words.document,
            subject: texts.line(&printed.title),
            running: format!("{} {number}", words.document).trim().to_owned(),
            seller: seller(printed, &words, texts),
            sender: sender(&printed.seller, texts),
            buyer: buyer(printed, &words, texts),
            facts: labelled(words.facts(printed), texts),
            columns: Columns::new(&rows, &words),
            head: Head {
                description: words.description,
                quantity: words.quantity,
                price: words.unit_price,
                vat: words.vat,
                amount: words.amount,
            },
            rows,
            totals: totals(printed, &words, texts),
            total: Labelled {
                label: words.total_label(printed).to_owned(),
                value: text::money(printed.total_incl, &texts.line(&printed.currency), printed.language),
            },
            after: after(printed, &words, texts),
            notes: notes(printed, &words),
            closing: closing(printed, &words, code, texts),
            footer: texts.line(&printed.look.footer),
            details: words.company_details(printed).iter().map(|detail| texts.line(detail)).collect(),
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

fn labelled(pairs: Vec<(&'static str, String)>, texts: &Cleaner) -> Vec<Labelled> {
    pairs
        .into_iter()
        .map(|(label, value)| Labelled { label: label.to_owned(), value: texts.line(&value) })
        .collect()
}

fn totals(printed: &PrintedDocument, words: &Words, texts: &Cleaner) -> Vec<Labelled> {
    let currency = texts.line(&printed.currency);
    let money = |amount: Decimal| text::money(amount, &currency, printed.language);
    let subtotal = Labelled { label: words.subtotal.to_owned(), value: money(printed.total_excl) };
    let vat = printed.vat.iter().map(|vat| Labelled {
        label: words.vat_over(vat.rate, vat.category, vat.taxable, &currency),
        value: money(vat.vat),
    });
    std::iter::once(subtotal).chain(vat).collect()
}

fn after(printed: &PrintedDocument, words: &Words, texts: &Cleaner) -> Vec<Labelled> {
    let currency = texts.line(&printed.currency);
    let money = |amount: Decimal| text::money(amount, &currency, printed.language);
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

fn closing(printed: &PrintedDocument, words: &Words, code: bool, texts: &Cleaner) -> Closing {
    let facts = if printed.to_transfer().is_some() && !printed.bank.iban.trim().is_empty() {
        let holder =
            [&printed.bank.holder, &printed.seller.name].into_iter().find(|name| !name.trim().is_empty());
        let facts = vec![
            (words.account, text::iban(&printed.bank.iban).replace(' ', "\u{a0}")),
            (words.bic, printed.bank.bic.clone()),
            (words.holder, holder.cloned().unwrap_or_default()),
            (words.payment_reference, printed.number.clone()),
        ];
        labelled(facts.into_iter().filter(|(_, value)| !value.trim().is_empty()).collect(), texts)
    } else {
        Vec::new()
    };
    Closing {
        heading: words.closing,
        sentence: texts.line(&words.closing_sentence(printed)),
        facts,
        scan: code.then_some(words.scan),
        sign: match printed.kind {
            Kind::Quote if matches!(printed.state, PrintedState::Accepted { .. }) => Vec::new(),
            Kind::Quote | Kind::Workorder => vec![words.name, words.place_and_date, words.signature],
            Kind::Invoice | Kind::Credit => Vec::new(),
        },
    }
}
