//! The page itself. Every text is worked out here and placed by the template, which escapes all of them.

use std::collections::BTreeSet;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use render::Paper;
use render::paper::{Kind, Logo, LogoFormat, Party};
use render::text::{self, Words};
use rust_decimal::Decimal;
use serde::Serialize;

use super::words::{self, pick};
use super::{Last, State, style, template};
use crate::Error;

/// A page with a larger logo would be slow to come in; it goes without.
const MAX_LOGO: usize = 2 << 20;

/// A page with the content security policy that it needs.
pub struct Page {
    pub html: String,
    pub policy: String,
}

/// The page of a document. `path` is its own path, on which its forms and files are found too.
pub fn page(paper: &Paper, state: &State, path: &str) -> Result<Page, Error> {
    let view = View::new(paper, state, path);
    let elsewhere = matches!(state, State::ToPay { pay, .. } if pay.elsewhere);
    let policy = style::policy(&view.colors, elsewhere);
    Ok(Page { html: template::render("page.html", &view)?, policy })
}

#[derive(Serialize)]
struct View {
    language: &'static str,
    sheet: &'static str,
    colors: String,
    /// Not escaped again: it has nothing that could end an attribute.
    logo: Option<String>,
    badge: Badge,
    heading: String,
    /// What it is about: the amount that is asked, given or offered.
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
    /// What has gone off the total, and what is left.
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
    fn new(paper: &Paper, state: &State, path: &str) -> Self {
        let words = Words::for_paper(paper);
        let language = paper.language;
        let (label, tone) = words::badge(state, paper.kind, language);
        Self {
            language: pick(language, "nl", "en"),
            sheet: style::SHEET,
            colors: style::colors(&paper.look),
            logo: paper.look.logo.as_ref().and_then(data_uri),
            badge: Badge { label, tone: tone.class() },
            heading: format!("{} {}", words.document, paper.number),
            amount: amount(paper, state, &words),
            sentence: words::sentence(state, paper),
            act: act(paper, state, path),
            payment: payment(paper, state, &words),
            pdf: Pdf { href: format!("{path}/pdf"), label: pick(language, "PDF downloaden", "Download PDF") },
            subject: paper.title.clone(),
            buyer: buyer(paper, &words),
            seller: seller(paper, &words),
            facts: words.facts(paper).into_iter().map(|(label, value)| fact(label, value)).collect(),
            words: labels(&words),
            rows: paper.rows.iter().map(|row| Row::new(row, &words)).collect(),
            totals: totals(paper, &words),
            total: fact(total_label(paper.kind, &words), money(paper, paper.total_incl)),
            after: after(paper, state, &words),
            notes: notes(paper, &words),
            footer: paper.look.footer.trim().to_owned(),
            email: chassis_base::formats::email::normalise(&paper.seller.email),
            details: words.company_details(paper),
        }
    }
}

impl Row {
    fn new(row: &render::paper::Row, words: &Words) -> Self {
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

fn money(paper: &Paper, amount: Decimal) -> String {
    text::money(amount, &paper.currency, paper.language)
}

/// On paper an invoice ends with what is due; on a page that may be less by now and stands beside it.
fn total_label(kind: Kind, words: &Words) -> &'static str {
    match kind {
        Kind::Invoice => words.total_incl,
        Kind::Credit | Kind::Quote | Kind::Workorder => words.total,
    }
}

fn amount(paper: &Paper, state: &State, words: &Words) -> Fact {
    let (label, amount) = match state {
        State::ToPay { open, .. } if *open == paper.total_incl => (words.total, *open),
        State::ToPay { open, .. } => (words.left, *open),
        State::ToRefund { open, .. } => (words.receives, *open),
        _ => (total_label(paper.kind, words), paper.total_incl),
    };
    fact(label, money(paper, amount))
}

fn after(paper: &Paper, state: &State, words: &Words) -> Vec<Fact> {
    let lines = words.after(&state.settlement(), paper.total_incl).into_iter();
    lines.map(|(label, amount)| fact(label, money(paper, amount))).collect()
}

/// What the reader can do about it here.
fn act(paper: &Paper, state: &State, path: &str) -> Option<Act> {
    match state {
        State::Offered => {
            let (label, meaning) = words::accept(paper);
            Some(Act { action: format!("{path}/accept"), label: label.to_owned(), meaning })
        }
        State::ToPay { open, pay, .. } if pay.last != Last::Processing && !pay.closed => {
            let (label, meaning) = words::pay(paper, *open);
            Some(Act { action: format!("{path}/pay"), label, meaning })
        }
        _ => None,
    }
}

/// How to pay by oneself, while there is something to pay and a bank account to pay it to.
fn payment(paper: &Paper, state: &State, words: &Words) -> Option<Payment> {
    let State::ToPay { open, pay, .. } = state else { return None };
    if pay.last == Last::Processing || paper.bank.iban.trim().is_empty() {
        return None;
    }
    let holder = [&paper.bank.holder, &paper.seller.name].into_iter().find(|name| !name.trim().is_empty());
    let facts = [
        (words.amount, money(paper, *open)),
        (words.account, text::iban(&paper.bank.iban)),
        (words.bic, paper.bank.bic.trim().to_owned()),
        (words.holder, holder.cloned().unwrap_or_default()),
        (words.payment_reference, paper.number.clone()),
    ];
    let facts = facts.into_iter().filter(|(_, value)| !value.is_empty());
    Some(Payment {
        heading: pick(paper.language, "Betalen per overschrijving", "Pay by bank transfer"),
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

fn totals(paper: &Paper, words: &Words) -> Vec<Fact> {
    let vat = paper.vat.iter().map(|vat| {
        fact(words.vat_over(vat.rate, vat.category, vat.taxable, &paper.currency), money(paper, vat.vat))
    });
    std::iter::once(fact(words.subtotal, money(paper, paper.total_excl))).chain(vat).collect()
}

/// What the law wants said, once for each category that is on the document.
fn notes(paper: &Paper, words: &Words) -> Vec<&'static str> {
    let of_rows = paper.rows.iter().map(|row| row.category);
    let categories: BTreeSet<_> = paper.vat.iter().map(|vat| vat.category).chain(of_rows).collect();
    categories.into_iter().filter_map(|category| words.legal(category)).collect()
}

fn buyer(paper: &Paper, words: &Words) -> Address {
    let buyer = &paper.buyer;
    let contact = buyer.contact.trim();
    let contact = if contact.is_empty() { String::new() } else { format!("{} {contact}", words.attention) };
    let mut lines = vec![contact];
    lines.extend(place(paper, buyer));
    Address { label: pick(paper.language, "Aan", "To"), name: buyer.name.clone(), lines: present(lines) }
}

fn seller(paper: &Paper, words: &Words) -> Address {
    let seller = &paper.seller;
    let phone = seller.phone.trim();
    let mut lines = Vec::from(place(paper, seller));
    lines.push(if phone.is_empty() {
        String::new()
    } else {
        format!("{} {}", words.phone, phone.replace(' ', "\u{a0}"))
    });
    Address { label: pick(paper.language, "Van", "From"), name: seller.name.clone(), lines: present(lines) }
}

/// The country is of use only across a border.
fn place(paper: &Paper, party: &Party) -> [String; 3] {
    let abroad = !paper.seller.country.trim().eq_ignore_ascii_case(paper.buyer.country.trim());
    let country = if abroad { text::country_name(party.country.trim(), paper.language) } else { "" };
    let city = format!("{} {}", party.zipcode.trim(), party.city.trim());
    [party.address.trim().to_owned(), city.trim().to_owned(), country.to_owned()]
}

fn present(mut lines: Vec<String>) -> Vec<String> {
    lines.retain(|line| !line.is_empty());
    lines
}

/// Inside the page; as an image, so that an SVG can neither run nor load anything.
pub(super) fn data_uri(logo: &Logo) -> Option<String> {
    let kind = match logo.format {
        LogoFormat::Png => "png",
        LogoFormat::Jpeg => "jpeg",
        LogoFormat::Svg => "svg+xml",
    };
    (1..=MAX_LOGO)
        .contains(&logo.bytes.len())
        .then(|| format!("data:image/{kind};base64,{}", STANDARD.encode(&logo.bytes)))
}
