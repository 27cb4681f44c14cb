//! PDFs as attachments of mails, made when a mail is delivered.

use chassis_base::Account;
use chassis_data::Db;
use chassis_work::mail::{Attached, AttachmentSource};
use render::text::file_name;

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
