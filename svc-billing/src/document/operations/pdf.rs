//! Recording what came of making a PDF. The rendering itself happens outside any transaction.

use chassis_data::{Event, Tx};
use chrono::SecondsFormat;
use serde_json::json;
use uuid::Uuid;

use super::log_changed;
use crate::document::{Kind, Links, store};
use crate::error::Error;

/// The PDF of a new final document could not be made.
pub(crate) struct PdfFailure {
    pub document: Uuid,
    /// Shown to callers.
    pub error: &'static str,
    pub links: Links,
}

/// Stores the failure with the document.
pub(crate) async fn record_pdf_failure(tx: &mut Tx<'_>, failure: &PdfFailure) -> Result<(), Error> {
    let (account, now) = (tx.account(), tx.now());
    let PdfFailure { document, error, links } = failure;
    if store::mark_pdf_failure(tx.db(), account, *document, error, now).await? {
        log_changed(tx, links, &[*document]).await?;
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
    let (account, id, now) = (tx.account(), tx.id(), tx.now());
    let is_new = store::mark_pdf(tx.db(), account, pdf.document, pdf.version, now).await?;
    if is_new {
        log_changed(tx, &pdf.links, &[pdf.document]).await?;
    }
    // Of several who make the same PDF at the same time, one marks it first and emits the event.
    if !is_new && !pdf.is_replacement {
        return Ok(());
    }
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
    Ok(())
}
