//! What the template is given: every text as it is shown, every width and colour worked out. The template only places.

use std::collections::BTreeSet;

use rust_decimal::Decimal;
use serde::Serialize;

use super::Attachment;
use super::fit::{breakable, line, line_count, lines, metadata, width};
use super::palette::Palette;
use crate::Paper;
use crate::paper::{Kind, Language, Party, Row as PaperRow};
use crate::text::{self, Words};

/// The width of the text on the page, and sizes of letters, in points; the template has the same.
const PAGE: f64 = 467.7;
const LETTER: f64 = 9.0;
const SMALL: f64 = 8.0;
const GUTTER: f64 = 14.0;
/// Between a quantity and its unit.
const UNIT_GUTTER: f64 = 5.0;
/// A row with more lines than this may continue on a next page.
const WHOLE_ROW: usize = 24;
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
struct Seller {
    name: String,
    lines: Vec<String>,
}

#[derive(Serialize)]
struct Labelled {
    label: String,
    value: String,
}

/// Widths in points; a column of no width is left out.
#[derive(Serialize)]
struct Columns {
    quantity: f64,
    unit: f64,
    price: f64,
    vat: f64,
    amount: f64,
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
struct Row {
    name: String,
    description: Vec<String>,
    quantity: String,
    unit: String,
    price: String,
    vat: String,
    amount: String,
    whole: bool,
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
                label: words.total.to_owned(),
                value: text::money(paper.total_incl, &line(&paper.currency), paper.language),
            },
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
                name: file_name(attachment.name),
                description: metadata(&format!("{} {} (XML)", words.document, paper.number)),
            }),
        }
    }
}

impl Row {
    fn new(row: &PaperRow, words: &Words) -> Self {
        let language = words.language;
        Self {
            name: line(&row.name),
            description: lines(&row.description),
            quantity: text::quantity(row.quantity, language),
            unit: line(&row.unit),
            price: text::plain_price(row.unit_price, language),
            vat: words.row_vat(row.vat_rate, row.category),
            amount: text::amount(row.total_excl, language),
            whole: true,
        }
    }

    fn fit(&mut self, columns: &Columns) {
        let room = columns.description();
        let count = line_count(&self.name, room / LETTER)
            + self.description.iter().map(|line| line_count(line, room / SMALL)).sum::<usize>();
        self.whole = count <= WHOLE_ROW;
        self.name = breakable(&self.name, room / LETTER);
        for line in &mut self.description {
            *line = breakable(line, room / SMALL);
        }
        self.quantity = breakable(&self.quantity, columns.quantity / LETTER);
        self.unit = breakable(&self.unit, columns.unit / LETTER);
        self.price = breakable(&self.price, columns.price / LETTER);
        self.amount = breakable(&self.amount, columns.amount / LETTER);
    }
}

impl Columns {
    /// As wide as what is in them, within bounds: amounts stay in line and descriptions get what is left.
    fn new(rows: &[Row], words: &Words) -> Self {
        let widest = |head: &str, cell: fn(&Row) -> &str, limit: f64| {
            let cells = rows.iter().map(|row| width(cell(row)) * LETTER).fold(0.0, f64::max);
            // A little more, so that rounding never breaks a line.
            if cells > 0.0 { (cells.max(width(head) * 7.5) + 0.5).min(limit) } else { 0.0 }
        };
        Self {
            quantity: widest(words.quantity, |row| &row.quantity, 74.0),
            unit: widest("", |row| &row.unit, 48.0),
            price: widest(words.unit_price, |row| &row.price, 84.0),
            vat: widest(words.vat, |row| &row.vat, 48.0),
            amount: widest(words.amount, |row| &row.amount, 96.0).max(52.0),
        }
    }

    fn description(&self) -> f64 {
        let others = [self.quantity, self.unit, self.price, self.vat, self.amount];
        let used: f64 = others.iter().filter(|width| **width > 0.0).map(|width| width + GUTTER).sum();
        if self.unit > 0.0 { PAGE - used + GUTTER - UNIT_GUTTER } else { PAGE - used }
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

fn present(texts: impl IntoIterator<Item = String>) -> Vec<String> {
    texts.into_iter().filter(|text| !text.is_empty()).collect()
}

/// The place of a party as an envelope has it: postal code before the city, with a wider space.
fn place(party: &Party) -> String {
    let (zipcode, city) = (line(&party.zipcode), line(&party.city));
    format!("{zipcode}  {city}").trim().to_owned()
}

/// The country is of use only across a border.
fn country(paper: &Paper, party: &Party) -> String {
    let abroad = !paper.seller.country.trim().eq_ignore_ascii_case(paper.buyer.country.trim());
    if abroad { line(text::country_name(party.country.trim(), paper.language)) } else { String::new() }
}

fn seller(paper: &Paper, words: &Words) -> Seller {
    let seller = &paper.seller;
    let phone = line(&seller.phone);
    let phone = if phone.is_empty() { phone } else { format!("{} {phone}", words.phone) };
    let website = line(&seller.website);
    let website =
        ["https://", "http://"].iter().find_map(|scheme| website.strip_prefix(scheme)).unwrap_or(&website);
    let contact = present([phone, line(&seller.email), website.trim_end_matches('/').to_owned()]);
    let mut lines = present([line(&seller.address), place(seller), country(paper, seller)]);
    if !lines.is_empty() && !contact.is_empty() {
        lines.push(String::new());
    }
    lines.extend(contact);
    Seller {
        name: breakable(&line(&seller.name), 17.0),
        lines: lines.iter().map(|line| breakable(line, 17.5)).collect(),
    }
}

/// One line above the address of the buyer, so that post can find its way back.
fn sender(seller: &Party) -> String {
    let parts = present([line(&seller.name), line(&seller.address), place(seller)]);
    let text = parts.join(" · ");
    // Two lines would push the address out of the window.
    let mut shown = String::new();
    for char in text.chars() {
        if width(&shown) > 33.0 {
            shown.push('…');
            break;
        }
        shown.push(char);
    }
    shown
}

fn buyer(paper: &Paper, words: &Words) -> Vec<String> {
    let buyer = &paper.buyer;
    let contact = line(&buyer.contact);
    let contact = if contact.is_empty() { contact } else { format!("{} {contact}", words.attention) };
    present([
        line(&buyer.name),
        contact,
        line(&buyer.address),
        place(buyer),
        country(paper, buyer).to_uppercase(),
    ])
    .iter()
    .map(|line| breakable(line, 22.0))
    .collect()
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

/// What the law wants said, once for each category that is on the document.
fn notes(paper: &Paper, words: &Words) -> Vec<String> {
    let categories: BTreeSet<_> =
        paper.vat.iter().map(|vat| vat.category).chain(paper.rows.iter().map(|row| row.category)).collect();
    categories.into_iter().filter_map(|category| words.legal(category)).map(str::to_owned).collect()
}

fn closing(paper: &Paper, words: &Words, code: bool) -> Closing {
    let to_pay = paper.kind == Kind::Invoice && paper.total_incl > Decimal::ZERO;
    let facts = if to_pay && !paper.bank.iban.trim().is_empty() {
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
            Kind::Quote | Kind::Workorder => vec![words.name, words.place_and_date, words.signature],
            Kind::Invoice | Kind::Credit => Vec::new(),
        },
    }
}

/// A name that every system can save: it may hold no path.
fn file_name(name: &str) -> String {
    let clean: String = name
        .chars()
        .take(100)
        .map(|char| if char.is_ascii_alphanumeric() || "._-".contains(char) { char } else { '-' })
        .collect();
    let clean = clean.trim_matches(['.', '-']);
    if clean.is_empty() { "document.xml".to_owned() } else { clean.to_owned() }
}
