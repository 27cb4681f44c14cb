//! What the services of documents, of their pages and of subscriptions have in common.

use chassis_data::Db;
use chassis_work::mail::{AccountFiles, Mailer};

use super::Links;
use super::pdf_renderer::PdfRenderer;
use crate::clients::Clients;

/// Made once for the process.
pub(crate) struct Shared {
    pub db: Db,
    pub clients: Clients,
    pub links: Links,
    pub renderer: PdfRenderer,
    pub mailer: Mailer,
    pub files: AccountFiles,
}
