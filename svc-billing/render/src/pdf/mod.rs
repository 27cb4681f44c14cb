//! The PDF of a document: PDF/A-3b and PDF/UA-1, with the e-invoice inside when there is one. The same input gives the same
//! bytes, as long as the same fonts are installed.
//!
//! [`render`] is CPU-bound for some milliseconds and never waits: call it on a thread that may block.
//!
//! What is on the pages is collected in a [`view`], placed by the [`layout`] as [`fragment`]s, and [`draw`]n.

mod attachment;
mod clean;
mod draw;
mod epc;
mod fragment;
mod layout;
mod logo;
mod palette;
mod parties;
mod rows;
mod tags;
mod view;

pub use attachment::Attachment;
pub use palette::{Screen, Tones};

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;

use chrono::{Datelike, NaiveDate};
use krilla::configure::{Accessibility, Archival, Configuration, ConfigurationBuilder};
use krilla::destination::XyzDestination;
use krilla::embed::{AssociationKind, EmbeddedFile, MimeType};
use krilla::error::KrillaError;
use krilla::geom::Point;
use krilla::metadata::{DateTime, Metadata};
use krilla::outline::{Outline, OutlineNode};
use krilla::page::PageSettings;
use krilla::{Document, SerializeSettings};
use sha2::{Digest, Sha256};

use crate::printed::PrintedDocument;
use crate::typeset::Region;
use clean::{Cleaner, Fonts};
use layout::{CODE_SIDE, HEIGHT, Pictures, WIDTH};
use logo::Picture;
use view::View;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("the document could not be written as PDF/A: {0}")]
    Export(String),
    #[error("the data of the document could not be written")]
    Data(#[from] serde_json::Error),
}

/// A finished PDF.
#[derive(Clone, Debug)]
pub struct Rendered {
    pub pdf: Vec<u8>,
    /// The characters that no font has. They are shown as a box.
    pub missing_glyphs: BTreeSet<char>,
}

/// Renders a document. A logo that cannot be drawn is left out, and a font that cannot be embedded is not used, so that
/// neither prevents the document.
pub fn render(printed: &PrintedDocument, attachment: Option<&Attachment<'_>>) -> Result<Rendered, Error> {
    let logo = printed.look.logo.as_ref().and_then(Picture::new).map(Rc::new);
    let mut result = write(printed, attachment, logo.clone(), Fonts::All);
    if result.is_err() && logo.is_some() {
        result = write(printed, attachment, None, Fonts::All);
    }
    if result.is_err() {
        result = write(printed, attachment, None, Fonts::Embedded);
    }
    result
}

fn write(
    printed: &PrintedDocument,
    attachment: Option<&Attachment<'_>>,
    logo: Option<Rc<Picture>>,
    fonts: Fonts,
) -> Result<Rendered, Error> {
    // The writer panics on some faults of fonts and images instead of returning them.
    let written = catch_unwind(AssertUnwindSafe(|| try_write(printed, attachment, logo, fonts)));
    written.unwrap_or_else(|_| Err(Error::Export("the writer gave up".to_owned())))
}

fn try_write(
    printed: &PrintedDocument,
    attachment: Option<&Attachment<'_>>,
    logo: Option<Rc<Picture>>,
    fonts: Fonts,
) -> Result<Rendered, Error> {
    let code = epc::code(printed, CODE_SIDE).map(Rc::new);
    let texts = Cleaner::new(fonts);
    let view = View::new(printed, code.is_some(), attachment, &texts);
    let region = Region::of_country(&printed.buyer.country);
    let (pages, mut tags) = layout::pages(&view, &Pictures { logo, code }, region);

    let settings = SerializeSettings { configuration: configuration()?, ..SerializeSettings::default() };
    let mut document = Document::new_with(settings);
    for fragment in &pages {
        let Some(settings) = PageSettings::from_wh(WIDTH, HEIGHT) else { continue };
        let mut page = document.start_page_with(settings);
        let mut surface = page.surface();
        draw::page(fragment, &mut surface, &mut tags);
        surface.finish();
        page.finish();
    }
    document.set_tag_tree(tags.into_tree(view.language));
    let mut outline = Outline::new();
    let start = XyzDestination::new(0, Point::from_xy(0.0, 0.0));
    outline.push_child(OutlineNode::new(view.title.clone(), start));
    document.set_outline(outline);
    let date = timestamp(printed.date);
    document.set_metadata(
        Metadata::new()
            .title(view.title.clone())
            .authors(vec![view.author.clone()])
            .language(view.language.to_owned())
            .creation_date(date)
            .document_id(document_id(printed, attachment)?),
    );
    if let (Some(attachment), Some(embedded)) = (attachment, &view.attachment) {
        document.embed_file(EmbeddedFile {
            path: embedded.name.clone(),
            mime_type: MimeType::new("application/xml"),
            description: Some(embedded.description.clone()),
            association_kind: AssociationKind::Alternative,
            data: attachment.bytes.to_vec().into(),
            modification_date: Some(date),
            compress: Some(true),
            location: None,
        });
    }
    let pdf = document.finish().map_err(|fault| Error::Export(message(&fault)))?;
    Ok(Rendered { pdf, missing_glyphs: texts.into_missing() })
}

fn configuration() -> Result<Configuration, Error> {
    ConfigurationBuilder::new()
        .with_archival_validator(Archival::A3_B)
        .with_accessibility_validator(Accessibility::UA1)
        .finish()
        .map_err(|fault| Error::Export(format!("{fault:?}")))
}

/// The identifier of the PDF: a hash of everything in it.
fn document_id(printed: &PrintedDocument, attachment: Option<&Attachment<'_>>) -> Result<String, Error> {
    let mut texts = printed.clone();
    // As JSON, a logo would take longer than all the rest.
    let logo = texts.look.logo.take();
    let texts = serde_json::to_vec(&texts)?;
    let logo = logo.as_ref().map(|logo| logo.bytes.as_slice());
    let mut hash = Sha256::new();
    for part in [Some(texts.as_slice()), logo, attachment.map(|attachment| attachment.bytes)] {
        let part = part.unwrap_or_default();
        hash.update(part.len().to_be_bytes());
        hash.update(part);
    }
    Ok(hash.finalize().iter().fold(String::new(), |mut text, byte| {
        // Writing to a String cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    }))
}

/// PDF/A requires a date in the file. The document's own date is used, because it never changes.
fn timestamp(date: NaiveDate) -> DateTime {
    let date = if (1..=9999).contains(&date.year()) { date } else { NaiveDate::default() };
    let part = |number: u32| u8::try_from(number).unwrap_or(1);
    DateTime::new(u16::try_from(date.year()).unwrap_or(1970))
        .month(part(date.month()))
        .day(part(date.day()))
        .hour(0)
        .minute(0)
        .second(0)
        .utc_offset_hour(0)
        .utc_offset_minute(0)
}

fn message(fault: &KrillaError) -> String {
    match fault {
        KrillaError::Validation(faults) => format!("{faults:?}"),
        other => other.to_string(),
    }
}
