//! Seller and buyer as they stand at the head of a document.

use serde::Serialize;

use super::fit::{breakable, line};
use crate::Paper;
use crate::paper::Party;
use crate::text::{self, Words};

#[derive(Serialize)]
pub struct Seller {
    name: String,
    lines: Vec<String>,
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

pub fn seller(paper: &Paper, words: &Words) -> Seller {
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

/// A line above the address of the buyer, so that post can find its way back. A long one breaks: half an address leads
/// nowhere.
pub fn sender(seller: &Party) -> String {
    let parts = present([line(&seller.name), line(&seller.address), place(seller)]);
    breakable(&parts.join(" · "), 38.0)
}

pub fn buyer(paper: &Paper, words: &Words) -> Vec<String> {
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

fn present(texts: impl IntoIterator<Item = String>) -> Vec<String> {
    texts.into_iter().filter(|text| !text.is_empty()).collect()
}
