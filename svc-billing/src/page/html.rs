//! The page of a document. Every text is composed here and placed by the template, which escapes all of them.

use std::collections::BTreeSet;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use render::PrintedDocument;
use render::printed::{Kind, Logo, LogoFormat, Party};
use render::text::{self, Words};
use rust_decimal::Decimal;
use serde::Serialize;

use super::words::{self, pick};
use super::{Last, State, style, template};
use crate::error::Error;

/// A larger logo is left out, because the page would load slowly.
const MAX_LOGO_BYTES: usize = 2 << 20;

/// A page with the content security policy that it needs.
pub struct Page {
    pub html: String,
    pub policy: String,
}

/// The page of a document. `path` is its own path, on which its forms and files are found too.
pub fn page(printed: &PrintedDocument, state: &State, path: &str) -> Result<Page, Error> {
    let view = View::new(printed, state, path);
    let elsewhere = matches!(state, State::ToPay { pay, .. } if pay.elsewhere);
    let policy = style::policy(&view.colors, elsewhere);
    Ok(Page { html: template::render("page.html", &view)?, policy })
}

#[derive(Serialize)]
struct View {
    language: &'static str,
    sheet: &'static str,
    colors: String,
    /// Not escaped by the template. Base64 has no character that could end the attribute.
    logo: Option<String>,
    badge: Badge,
    heading: String,
    /// The main amount: what is asked, refunded or offered.
    amount: Fact,
    sentence: String,
    act: Option<Act>,
    payment: Option<Payment>,
    pdf: Pdf,
    subject: String,
    buyer: Address,
    seller: Address,
    facts: Vec<Fact>,
    words: Labels,
    rows: Vec<Row>,
    totals: Vec<Fact>,
    total: Fact,
    /// What was subtracted from the total, and what is left.
    after: Vec<Fact>,
    notes: Vec<&'static str>,
    footer: String,
    email: Option<String>,
    details: Vec<String>,
}

#[derive(Serialize)]
pub(super) struct Badge {
    pub label: &'static str,
    pub tone: &'static str,
}

#[derive(Serialize)]
pub(super) struct Fact {
    pub label: String,
    pub value: String,
}

/// A button, and what pressing it means.
#[derive(Serialize)]
struct Act {
    action: String,
    label: String,
    meaning: String,
}

#[derive(Serialize)]
struct Payment {
    heading: &'static str,
    facts: Vec<Fact>,
}

#[derive(Serialize)]
struct Pdf {
    href: String,
    label: &'static str,
}

#[derive(Serialize)]
struct Address {
    label: &'static str,
    name: String,
    lines: Vec<String>,
}

#[derive(Serialize)]
struct Labels {
    rows: &'static str,
    description: &'static str,
    quantity: &'static str,
    price: &'static str,
    vat: &'static str,
    amount: &'static str,
    questions: &'static str,
}

#[derive(Serialize)]
struct Row {
    name: String,
    description: String,
    quantity: String,
    unit: String,
    price: String,
    vat: String,
    amount: String,
}

impl View {
    fn new(printed: &PrintedDocument, state: &State, path: &str) -> Self {
        let words = Words::for_document(printed);
        let language = printed.language;
        let (label, tone) = words::badge(state, printed.kind, language);
        Self {
            language: pick(language, "nl", "en"),
            sheet: style::SHEET,
            colors: style::colors(&printed.look),
            logo: printed.look.logo.as_ref().and_then(data_uri),
            badge: Badge { label, tone: tone.class() },
            heading: format!("{} {}", words.document, printed.number),
            amount: amount(printed, state, &words),
            sentence: words::sentence(state, printed),
            act: act(printed, state, path),
            payment: payment(printed, state, &words),
            pdf: Pdf { href: format!("{path}/pdf"), label: pick(language, "PDF downloaden", "Download PDF") },
            subject: printed.title.clone(),
            buyer: buyer(printed, &words),
            seller: seller(printed, &words),
            facts: words.facts(printed).into_iter().map(|(label, value)| fact(label, value)).collect(),
            words: labels(&words),
            rows: printed.rows.iter().map(|row| Row::new(row, &words)).collect(),
            totals: totals(printed, &words),
            total: fact(total_label(printed.kind, &words), money(printed, printed.total_incl)),
            after: after(printed, state, &words),
            notes: notes(printed, &words),
            footer: printed.look.footer.trim().to_owned(),
            email: chassis_base::formats::email::normalise(&printed.seller.email),
            details: words.company_details(printed),
        }
    }
}

impl Row {
    fn new(row: &render::printed::Row, words: &Words) -> Self {
        let language = words.language;
        Self {
            name: row.name.clone(),
            description: row.description.trim().to_owned(),
            quantity: text::quantity(row.quantity, language),
            unit: row.unit.trim().to_owned(),
            price: text::plain_price(row.unit_price, language),
            vat: words.row_vat(row.vat_rate, row.category),
            amount: text::amount(row.total_excl, language),
        }
    }
}

fn fact(label: impl Into<String>, value: impl Into<String>) -> Fact {
    Fact { label: label.into(), value: value.into() }
}

fn money(printed: &PrintedDocument, amount: Decimal) -> String {
    text::money(amount, &printed.currency, printed.language)
}

/// The printed invoice ends with the amount due. On a page that may be less by now, and is shown beside the total.
fn total_label(kind: Kind, words: &Words) -> &'static str {
    match kind {
        Kind::Invoice => words.total_incl,
        Kind::Credit | Kind::Quote | Kind::Workorder => words.total,
    }
}

fn amount(printed: &PrintedDocument, state: &State, words: &Words) -> Fact {
    let (label, amount) = match state {
        State::ToPay { open, .. } if *open == printed.total_incl => (words.total, *open),
        State::ToPay { open, .. } => (words.left, *open),
        State::ToRefund { open, .. } => (words.receives, *open),
        _ => (total_label(printed.kind, words), printed.total_incl),
    };
    fact(label, money(printed, amount))
}

fn after(printed: &PrintedDocument, state: &State, words: &Words) -> Vec<Fact> {
    let lines = words.after(&state.printed(), printed.total_incl).into_iter();
    lines.map(|(label, amount)| fact(label, money(printed, amount))).collect()
}

/// What the reader can do on this page.
fn act(printed: &PrintedDocument, state: &State, path: &str) -> Option<Act> {
    match state {
        State::Offered => {
            let (label, meaning) = words::accept(printed);
            Some(Act { action: format!("{path}/accept"), label: label.to_owned(), meaning })
        }
        State::ToPay { open, pay, .. } if pay.last != Last::Processing && !pay.closed => {
            let (label, meaning) = words::pay(printed, *open);
            Some(Act { action: format!("{path}/pay"), label, meaning })
        }
        _ => None,
    }
}

/// How to pay by bank transfer, while something is open and the seller has a bank account.
fn payment(printed: &PrintedDocument, state: &State, words: &Words) -> Option<Payment> {
    let State::ToPay { open, pay, .. } = state else { return None };
    if pay.last == Last::Processing || printed.bank.iban.trim().is_empty() {
        return None;
    }
    let holder =
        [&printed.bank.holder, &printed.seller.name].into_iter().find(|name| !name.trim().is_empty());
    let facts = [
        (words.amount, money(printed, *open)),
        (words.account, text::iban(&printed.bank.iban)),
        (words.bic, printed.bank.bic.trim().to_owned()),
        (words.holder, holder.cloned().unwrap_or_default()),
        (words.payment_reference, printed.number.clone()),
    ];
    let facts = facts.into_iter().filter(|(_, value)| !value.is_empty());
    Some(Payment {
        heading: pick(printed.language, "Betalen per overschrijving", "Pay by bank transfer"),
        facts: facts.map(|(label, value)| fact(label, value)).collect(),
    })
}

fn labels(words: &Words) -> Labels {
    Labels {
        rows: pick(words.language, "Regels", "Lines"),
        description: words.description,
        quantity: words.quantity,
        price: words.unit_price,
        vat: words.vat,
        amount: words.amount,
        questions: pick(words.language, "Vragen?", "Questions?"),
    }
}

fn totals(printed: &PrintedDocument, words: &Words) -> Vec<Fact> {
    let vat = printed.vat.iter().map(|vat| {
        fact(words.vat_over(vat.rate, vat.category, vat.taxable, &printed.currency), money(printed, vat.vat))
    });
    std::iter::once(fact(words.subtotal, money(printed, printed.total_excl))).chain(vat).collect()
}

/// The statements that the law requires, once for each category on the document.
fn notes(printed: &PrintedDocument, words: &Words) -> Vec<&'static str> {
    let of_rows = printed.rows.iter().map(|row| row.category);
    let categories: BTreeSet<_> = printed.vat.iter().map(|vat| vat.category).chain(of_rows).collect();
    categories.into_iter().filter_map(|category| words.legal(category)).collect()
}

fn buyer(printed: &PrintedDocument, words: &Words) -> Address {
    let buyer = &printed.buyer;
    let contact = buyer.contact.trim();
    let contact = if contact.is_empty() { String::new() } else { format!("{} {contact}", words.attention) };
    let mut lines = vec![contact];
    lines.extend(address_lines(printed, buyer));
    Address { label: pick(printed.language, "Aan", "To"), name: buyer.name.clone(), lines: present(lines) }
}

fn seller(printed: &PrintedDocument, words: &Words) -> Address {
    let seller = &printed.seller;
    let phone = seller.phone.trim();
    let mut lines = Vec::from(address_lines(printed, seller));
    lines.push(if phone.is_empty() {
        String::new()
    } else {
        format!("{} {}", words.phone, phone.replace(' ', "\u{a0}"))
    });
    Address { label: pick(printed.language, "Van", "From"), name: seller.name.clone(), lines: present(lines) }
}

/// The lines of an address. The country is shown only when seller and buyer are in different ones.
fn address_lines(printed: &PrintedDocument, party: &Party) -> [String; 3] {
    let abroad = !printed.seller.country.trim().eq_ignore_ascii_case(printed.buyer.country.trim());
    let country = if abroad { text::country_name(party.country.trim(), printed.language) } else { "" };
    let city = format!("{} {}", party.zipcode.trim(), party.city.trim());
    [party.address.trim().to_owned(), city.trim().to_owned(), country.to_owned()]
}

fn present(mut lines: Vec<String>) -> Vec<String> {
    lines.retain(|line| !line.is_empty());
    lines
}

/// The logo as part of the page. In an `img` element, an SVG can neither run scripts nor load anything.
pub(super) fn data_uri(logo: &Logo) -> Option<String> {
    let kind = match logo.format {
        LogoFormat::Png => "png",
        LogoFormat::Jpeg => "jpeg",
        LogoFormat::Svg => "svg+xml",
    };
    (1..=MAX_LOGO_BYTES)
        .contains(&logo.bytes.len())
        .then(|| format!("data:image/{kind};base64,{}", STANDARD.encode(&logo.bytes)))
}
