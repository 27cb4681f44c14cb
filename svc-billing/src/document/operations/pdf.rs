//! Recording what came of making a PDF. The rendering itself happens outside any transaction.

use chassis_base::AccountId;
use chassis_data::{Event, Plan, Tx};
use chrono::{DateTime, SecondsFormat, Utc};
use proto::billing::Document;
use serde_json::json;
use uuid::Uuid;

use super::log_changed;
use crate::document::{Full, Kind, Links, Record, message, store};
use crate::error::Error;

/// The PDF of a new final document could not be made.
pub(crate) struct PdfFailure {
    pub document: Uuid,
    /// Shown to callers.
    pub error: &'static str,
    /// The next attempt of the worker, if it was the worker that failed.
    pub retry_at: Option<DateTime<Utc>>,
    pub links: Links,
}

pub(crate) const PDF_FAILED: &str = "The PDF could not be made now. It is made when pdf_url is opened.";

/// Stores the failure with the document.
pub(crate) async fn record_pdf_failure(tx: &mut Tx<'_>, failure: &PdfFailure) -> Result<(), Error> {
    let (account, now) = (tx.account(), tx.now());
    let PdfFailure { document, error, links, .. } = failure;
    if store::mark_pdf_failure(tx.db(), account, *document, error, now).await? {
        log_changed(tx, links, &[*document]).await?;
    } else {
        tx.unaudited("the document shows the failure already");
    }
    if let Some(retry_at) = failure.retry_at {
        store::postpone_pdf(tx.db(), account, *document, retry_at).await?;
    }
    Ok(())
}

/// A PDF in the object store.
pub(crate) struct StoredPdf {
    pub name: String,
    pub size: usize,
    pub location: FileLocation,
    pub kind: Kind,
    pub document: Uuid,
    pub client: Option<Uuid>,
    pub version: i64,
    /// Whether its event was emitted before. The file was deleted since, and has been made again.
    pub is_replacement: bool,
    pub links: Links,
}

/// Where a file is in the object store.
pub(crate) struct FileLocation {
    pub service: String,
    pub area: String,
    pub key: String,
}

/// Records with the document that its PDF is stored, and emits `file.stored` once, for the service that lists files.
pub(crate) async fn record_stored_pdf(tx: &mut Tx<'_>, pdf: &StoredPdf) -> Result<(), Error> {
    record_stored_pdfs(tx, std::slice::from_ref(pdf)).await
}

/// The same for several documents.
pub(crate) async fn record_stored_pdfs(tx: &mut Tx<'_>, pdfs: &[StoredPdf]) -> Result<(), Error> {
    let (account, now) = (tx.account(), tx.now());
    let mut marked = Vec::new();
    for pdf in pdfs {
        let is_new = store::mark_pdf(tx.db(), account, pdf.document, pdf.version, now).await?;
        if is_new {
            marked.push(pdf.document);
        }
        // Of several who make the same PDF at the same time, one marks it first and emits the event.
        if is_new || pdf.is_replacement {
            stored(tx, pdf);
        }
    }
    match pdfs.first() {
        Some(_) if marked.is_empty() => tx.unaudited("the PDFs were recorded before"),
        Some(pdf) => log_changed(tx, &pdf.links, &marked).await?,
        None => {}
    }
    Ok(())
}

/// The PDF of a document that had none, and the document with it.
pub(crate) struct NewPdf {
    pdf: StoredPdf,
    record: Record,
    /// The document as it is shown when the PDF is recorded.
    pub shown: Document,
}

impl NewPdf {
    /// `full` is the document without the PDF.
    pub(crate) fn new(pdf: StoredPdf, account: AccountId, mut full: Full, now: DateTime<Utc>) -> Self {
        let record = &mut full.record;
        record.version += 1;
        record.updated_at = now;
        record.pdf_version = Some(record.content_version);
        record.pdf_error.clear();
        let shown = message::document(account, &pdf.links, &full);
        Self { pdf, record: full.record, shown }
    }
}

/// Records a new PDF like [`record_stored_pdf`], without a read. Fails if the document has changed meanwhile, because then it
/// is not shown as it was foreseen.
pub(crate) async fn record_new_pdf(tx: &mut Tx<'_>, new: &NewPdf) -> Result<(), Error> {
    let (account, NewPdf { pdf, record, shown }) = (tx.account(), new);
    if !store::mark_new_pdf(tx.db(), account, record).await? {
        return Err(Error::NotFound(record.kind.name()));
    }
    tx.changed(record.kind.name(), record.id, shown);
    stored(tx, pdf);
    Ok(())
}

/// Emits `file.stored`.
pub(crate) fn stored(tx: &mut Plan<'_>, pdf: &StoredPdf) {
    let (id, now) = (tx.id(), tx.now());
    tx.emit(&Event {
        kind: "file.stored",
        entity_type: "file",
        entity_id: id,
        version: 1,
        data: json!({
            "id": id,
            "name": pdf.name,
            "content_type": "application/pdf",
            "size": pdf.size,
            "service": pdf.location.service,
            "area": pdf.location.area,
            "key": pdf.location.key,
            "source": {"type": pdf.kind.name(), "id": pdf.document},
            // A higher version replaces a lower one.
            "version": pdf.version,
            "client_id": pdf.client,
            "created_at": now.to_rfc3339_opts(SecondsFormat::Millis, true),
        })
        .to_string(),
    });
}
