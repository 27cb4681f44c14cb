//! Seller and buyer at the head of a document.

use serde::Serialize;

use super::fit::{breakable, line};
use crate::printed::Party;
use crate::printed::PrintedDocument;
use crate::text::{self, Words};

#[derive(Serialize)]
pub(super) struct Seller {
    name: String,
    lines: Vec<String>,
}

/// Postal code and city as on an envelope, with a wider space between them.
fn city_line(party: &Party) -> String {
    let (zipcode, city) = (line(&party.zipcode), line(&party.city));
    format!("{zipcode}  {city}").trim().to_owned()
}

/// The country is shown only when seller and buyer are in different ones.
fn country(printed: &PrintedDocument, party: &Party) -> String {
    let abroad = !printed.seller.country.trim().eq_ignore_ascii_case(printed.buyer.country.trim());
    if abroad { line(text::country_name(party.country.trim(), printed.language)) } else { String::new() }
}

pub(super) fn seller(printed: &PrintedDocument, words: &Words) -> Seller {
    let seller = &printed.seller;
    let phone = line(&seller.phone);
    let phone = if phone.is_empty() { phone } else { format!("{} {phone}", words.phone) };
    let website = line(&seller.website);
    let website =
        ["https://", "http://"].iter().find_map(|scheme| website.strip_prefix(scheme)).unwrap_or(&website);
    let contact = present([phone, line(&seller.email), website.trim_end_matches('/').to_owned()]);
    let mut lines = present([line(&seller.address), city_line(seller), country(printed, seller)]);
    if !lines.is_empty() && !contact.is_empty() {
        lines.push(String::new());
    }
    lines.extend(contact);
    Seller {
        name: breakable(&line(&seller.name), 17.0),
        lines: lines.iter().map(|line| breakable(line, 17.5)).collect(),
    }
}

/// The return address above the address of the buyer. A long one is broken over lines, not cut off.
pub(super) fn sender(seller: &Party) -> String {
    let parts = present([line(&seller.name), line(&seller.address), city_line(seller)]);
    breakable(&parts.join(" · "), 38.0)
}

pub(super) fn buyer(printed: &PrintedDocument, words: &Words) -> Vec<String> {
    let buyer = &printed.buyer;
    let contact = line(&buyer.contact);
    let contact = if contact.is_empty() { contact } else { format!("{} {contact}", words.attention) };
    present([
        line(&buyer.name),
        contact,
        line(&buyer.address),
        city_line(buyer),
        country(printed, buyer).to_uppercase(),
    ])
    .iter()
    .map(|line| breakable(line, 22.0))
    .collect()
}

fn present(texts: impl IntoIterator<Item = String>) -> Vec<String> {
    texts.into_iter().filter(|text| !text.is_empty()).collect()
}
