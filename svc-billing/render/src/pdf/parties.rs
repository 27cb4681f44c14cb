//! Seller and buyer at the head of a document.

use super::clean::Cleaner;
use crate::printed::Party;
use crate::printed::PrintedDocument;
use crate::text::{self, Words};

pub(super) struct Seller {
    pub name: String,
    pub lines: Vec<String>,
}

/// Postal code and city as on an envelope, with a wider space between them.
fn city_line(party: &Party, texts: &Cleaner) -> String {
    let (zipcode, city) = (texts.line(&party.zipcode), texts.line(&party.city));
    format!("{zipcode}  {city}").trim().to_owned()
}

/// The country is shown only when seller and buyer are in different ones.
fn country(printed: &PrintedDocument, party: &Party, texts: &Cleaner) -> String {
    let abroad = !printed.seller.country.trim().eq_ignore_ascii_case(printed.buyer.country.trim());
    if abroad {
        texts.line(text::country_name(party.country.trim(), printed.language))
    } else {
        String::new()
    }
}

pub(super) fn seller(printed: &PrintedDocument, words: &Words, texts: &Cleaner) -> Seller {
    let seller = &printed.seller;
    let phone = texts.line(&seller.phone);
    let phone = if phone.is_empty() { phone } else { format!("{} {phone}", words.phone) };
    let website = texts.line(&seller.website);
    let website =
        ["https://", "http://"].iter().find_map(|scheme| website.strip_prefix(scheme)).unwrap_or(&website);
    let contact = present([phone, texts.line(&seller.email), website.trim_end_matches('/').to_owned()]);
    let mut lines =
        present([texts.line(&seller.address), city_line(seller, texts), country(printed, seller, texts)]);
    if !lines.is_empty() && !contact.is_empty() {
        lines.push(String::new());
    }
    lines.extend(contact);
    Seller { name: texts.line(&seller.name), lines }
}

/// The return address above the address of the buyer. A long one is broken over lines, not cut off.
pub(super) fn sender(seller: &Party, texts: &Cleaner) -> String {
    let parts = present([texts.line(&seller.name), texts.line(&seller.address), city_line(seller, texts)]);
    parts.join(" · ")
}

pub(super) fn buyer(printed: &PrintedDocument, words: &Words, texts: &Cleaner) -> Vec<String> {
    let buyer = &printed.buyer;
    let contact = texts.line(&buyer.contact);
    let contact = if contact.is_empty() { contact } else { format!("{} {contact}", words.attention) };
    present([
        texts.line(&buyer.name),
        contact,
        texts.line(&buyer.address),
        city_line(buyer, texts),
        country(printed, buyer, texts).to_uppercase(),
    ])
}

fn present(texts: impl IntoIterator<Item = String>) -> Vec<String> {
    texts.into_iter().filter(|text| !text.is_empty()).collect()
}
