//! PDFs for mails, made when a mail is delivered.

use chassis_base::Account;
use chassis_data::Db;
use chassis_work::mail::{Attached, AttachmentSource};
use render::text::file_name;

use super::{Kind, Record, store};
use crate::press::Press;

/// Names the PDF of a document: its kind and id.
pub fn reference(record: &Record) -> String {
    format!("{}:{}", record.kind.name(), record.id)
}

fn parse(reference: &str) -> Option<(Kind, uuid::Uuid)> {
    let (kind, id) = reference.split_once(':')?;
    Some((Kind::named(kind), chassis_base::id::parse(id)?))
}

pub struct Pdfs {
    pub db: Db,
    pub press: Press,
}

#[tonic::async_trait]
impl AttachmentSource for Pdfs {
    async fn load(
        &self,
        account: &Account,
        reference: &str,
    ) -> Result<Option<Attached>, chassis_base::Error> {
        let Some((kind, id)) = parse(reference) else { return Ok(None) };
        let found =
            self.db.read(async |connection| store::find(connection, account.id, kind, id).await).await?;
        let Some(full) = found else { return Ok(None) };
        let bytes = self.press.pdf(account, &full).await?;
        let name = format!("{}.pdf", file_name(&full.record.number));
        Ok(Some(Attached { name, content_type: "application/pdf".to_owned(), bytes: bytes.into() }))
    }
}
