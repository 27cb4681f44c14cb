//! What the mail of a document brings: its PDF, made when the mail is delivered, and files of the account, which the
//! history of the document names.

use chassis_base::Account;
use chassis_data::Db;
use chassis_work::mail::{Attached, AttachedFile, AttachmentSource};
use render::text::file_name;
use serde_json::{Value, json};
use uuid::Uuid;

use super::mailer::PdfReference;
use super::pdf_renderer::PdfRenderer;
use super::store;

pub(crate) struct PdfAttachments {
    pub db: Db,
    pub renderer: PdfRenderer,
}

#[tonic::async_trait]
impl AttachmentSource for PdfAttachments {
    async fn load(
        &self,
        account: &Account,
        reference: &str,
    ) -> Result<Option<Attached>, chassis_base::Error> {
        let Some(PdfReference { kind, id }) = PdfReference::parse(reference) else { return Ok(None) };
        let found =
            self.db.read(async |connection| store::find(connection, account.id, kind, id).await).await?;
        let Some(full) = found else { return Ok(None) };
        let bytes = self.renderer.pdf(account, &full).await?;
        let name = format!("{}.pdf", file_name(&full.record.number));
        Ok(Some(Attached { name, content_type: "application/pdf".to_owned(), bytes: bytes.into() }))
    }
}

/// The files of a mail as the history shows them.
pub(crate) fn listed(files: &[AttachedFile]) -> Value {
    let shown = |file: &AttachedFile| json!({"id": file.id, "name": file.name, "size": file.size});
    files.iter().map(shown).collect()
}

/// What an entry of the history says when the mail went without some of its files. `data` is JSON text.
pub(crate) fn without(data: &str, left_out: &[Uuid]) -> String {
    let mut data: Value = serde_json::from_str(data).unwrap_or_default();
    for file in data.get_mut("attachments").and_then(Value::as_array_mut).into_iter().flatten() {
        let id = file["id"].as_str().and_then(chassis_base::id::parse);
        if id.is_some_and(|id| left_out.contains(&id)) {
            file["left_out_of_mail"] = json!(true);
        }
    }
    data.to_string()
}
