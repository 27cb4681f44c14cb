//! A small page with one message, and buttons where there is something to do.

use render::printed::{Language, Look};
use serde::Serialize;

use super::html::{Badge, Fact, Page, data_uri};
use super::words::{Tone, pick};
use super::{style, template};
use crate::error::Error;

/// The content of the page. Texts are escaped by the template.
pub(crate) struct Notice<'a> {
    pub language: Language,
    pub look: &'a Look,
    pub seller: &'a str,
    pub badge: (&'static str, Tone),
    pub heading: String,
    pub amount: (&'static str, String),
    pub sentence: String,
    /// The path to which the buttons post.
    pub action: String,
    pub buttons: Vec<Button>,
    pub hint: &'static str,
    pub facts: Vec<(&'static str, String)>,
    pub links_heading: &'static str,
    pub links: Vec<Link>,
}

#[derive(Serialize)]
pub(crate) struct Button {
    pub act: &'static str,
    pub label: &'static str,
    pub quiet: bool,
}

#[derive(Serialize)]
pub(crate) struct Link {
    pub href: String,
    pub label: String,
    pub value: String,
}

#[derive(Serialize)]
struct View<'a> {
    language: &'static str,
    sheet: &'static str,
    colors: &'a str,
    logo: Option<String>,
    seller: &'a str,
    badge: Badge,
    heading: &'a str,
    amount: Fact,
    sentence: &'a str,
    action: &'a str,
    buttons: &'a [Button],
    hint: &'static str,
    facts: Vec<Fact>,
    links_heading: &'static str,
    links: &'a [Link],
}

pub(crate) fn notice(notice: &Notice<'_>) -> Result<Page, Error> {
    let colors = style::colors(notice.look);
    let fact = |label: &str, value: &str| Fact { label: label.to_owned(), value: value.to_owned() };
    let view = View {
        language: pick(notice.language, "nl", "en"),
        sheet: style::SHEET,
        colors: &colors,
        logo: notice.look.logo.as_ref().and_then(data_uri),
        seller: notice.seller,
        badge: Badge { label: notice.badge.0, tone: notice.badge.1.class() },
        heading: &notice.heading,
        amount: fact(notice.amount.0, &notice.amount.1),
        sentence: &notice.sentence,
        action: &notice.action,
        buttons: &notice.buttons,
        hint: notice.hint,
        facts: notice.facts.iter().map(|(label, value)| fact(label, value)).collect(),
        links_heading: notice.links_heading,
        links: &notice.links,
    };
    Ok(Page { html: template::render("notice.html", &view)?, policy: style::policy(&colors, false) })
}
