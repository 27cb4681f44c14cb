//! Recording what came of making a PDF. The rendering itself happens outside any transaction.

use chassis_data::{Event, Tx};
use chrono::SecondsFormat;
use serde_json::json;
use uuid::Uuid;

use crate::document::{Kind, store};
use crate::error::Error;

const UNAUDITED: &str = "whether there is a PDF is not a change of the document";

/// The result of making the PDF of a new final document.
pub(crate) struct PdfResult {
    pub document: Uuid,
    /// The content version of which there is a PDF now.
    pub version: Option<i64>,
    /// Shown to callers; empty without an error.
    pub error: &'static str,
}

/// Stores the result with the document.
pub(crate) async fn record_pdf_result(tx: &mut Tx<'_>, result: &PdfResult) -> Result<(), Error> {
    let account = tx.account();
    tx.unaudited(UNAUDITED);
    store::record_pdf(tx.db(), account, result.document, result.version, result.error).await
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
    tx.unaudited(UNAUDITED);
    let is_new = store::mark_pdf(tx.db(), account, pdf.document, pdf.version).await?;
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
