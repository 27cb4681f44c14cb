//! The PDF of a document: PDF/A-3b, with the e-invoice inside when there is one. The same input gives the same bytes.
//!
//! [`render`] is CPU-bound for some milliseconds and never waits: call it on a thread that may block.

mod attachment;
mod epc;
mod fit;
mod logo;
mod palette;
mod parties;
mod rows;
mod view;
mod world;

pub use attachment::Attachment;
pub use palette::{Screen, Tones};

use std::fmt::Write as _;
use std::sync::atomic::{AtomicUsize, Ordering};

use chrono::{Datelike, NaiveDate};
use sha2::{Digest, Sha256};
use typst::diag::SourceDiagnostic;
use typst::foundations::{Bytes, Datetime, Smart};
use typst_layout::PagedDocument;
use typst_pdf::{PdfOptions, PdfStandard, PdfStandards, Timestamp};

use crate::printed::Logo;
use crate::printed::PrintedDocument;
use world::Files;

/// The number of documents being rendered at this moment.
static RUNNING: AtomicUsize = AtomicUsize::new(0);

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("the document could not be laid out: {0}")]
    Layout(String),
    #[error("the document could not be written as PDF/A: {0}")]
    Export(String),
    #[error("the data of the document could not be written")]
    Data(#[from] serde_json::Error),
}

/// Renders a document. A logo that cannot be drawn is left out, so that it never prevents the document.
pub fn render(printed: &PrintedDocument, attachment: Option<&Attachment<'_>>) -> Result<Vec<u8>, Error> {
    let logo = printed.look.logo.as_ref().and_then(|logo| Some((logo::format(logo)?, logo.bytes.as_slice())));
    RUNNING.fetch_add(1, Ordering::Relaxed);
    let result = render_with(printed, attachment, logo);
    let result = match (result, logo) {
        (Err(_), Some(_)) => render_with(printed, attachment, None),
        (result, _) => result,
    };
    let others = RUNNING.fetch_sub(1, Ordering::Relaxed).saturating_sub(1);
    // Typst memoises every layout. Without eviction each document would stay in memory, although no later one is the same.
    // Entries that other renders still use must survive as many evictions as there are other renders.
    comemo::evict(others);
    result
}

/// Whether a logo can be drawn at all. Checked when a logo is set, so that its owner gets the error.
pub fn accepts(logo: &Logo) -> bool {
    logo::format(logo).is_some()
}

fn render_with(
    printed: &PrintedDocument,
    attachment: Option<&Attachment<'_>>,
    logo: Option<(&'static str, &[u8])>,
) -> Result<Vec<u8>, Error> {
    let code = epc::code(printed);
    let view = view::View::new(printed, logo.map(|(format, _)| format), code.is_some(), attachment);
    let data = serde_json::to_vec(&view)?;
    let ident = ident(&data, logo.map(|(_, bytes)| bytes), attachment);
    let files = Files {
        data: Bytes::new(data),
        logo: logo.map(|(_, bytes)| Bytes::new(bytes.to_vec())),
        code: code.map(Bytes::from_string),
        attachment: attachment.map(|attachment| Bytes::new(attachment.bytes.to_vec())),
    };
    let document =
        typst::compile::<PagedDocument>(&files).output.map_err(|faults| Error::Layout(messages(&faults)))?;
    let standards = PdfStandards::new(&[PdfStandard::A_3b])
        .map_err(|fault| Error::Export(fault.message().to_string()))?;
    let options = PdfOptions {
        ident: Smart::Custom(ident),
        creator: Smart::Custom(None),
        timestamp: timestamp(printed.date),
        standards,
        ..PdfOptions::default()
    };
    typst_pdf::pdf(&document, &options).map_err(|faults| Error::Export(messages(&faults)))
}

/// The identifier of the PDF: a hash of everything in it.
fn ident(data: &[u8], logo: Option<&[u8]>, attachment: Option<&Attachment<'_>>) -> String {
    let mut hash = Sha256::new();
    for part in [Some(data), logo, attachment.map(|attachment| attachment.bytes)] {
        let part = part.unwrap_or_default();
        hash.update(part.len().to_be_bytes());
        hash.update(part);
    }
    hash.finalize().iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// PDF/A requires a date in the file. The document's own date is used, because it never changes.
fn timestamp(date: NaiveDate) -> Option<Timestamp> {
    let at = |date: NaiveDate| {
        let year = date.year();
        let (month, day) = (u8::try_from(date.month()).ok()?, u8::try_from(date.day()).ok()?);
        (1..=9999).contains(&year).then(|| Datetime::from_ymd_hms(year, month, day, 0, 0, 0))?
    };
    at(date).or_else(|| at(NaiveDate::default())).map(Timestamp::new_utc)
}

fn messages(faults: &[SourceDiagnostic]) -> String {
    faults.iter().map(|fault| fault.message.as_str()).collect::<Vec<_>>().join("; ")
}
