//! PDFs and e-invoices of documents. They are made outside any transaction and stored in the object store; the same document
//! always gives the same bytes. An event tells the service that lists files of each stored PDF.
//!
//! The PDF of a new final document is made before it is committed if that costs nobody time, and recorded with the document
//! itself. Otherwise it is pending: `pdf_worker` makes it, or whoever asks for it first.
//!
//! A PDF shows the state of payment at this moment. Only the PDF with the state at the time of issue is stored as a file.
//! One with a later state is rendered on request, with the e-invoice inside that was issued.

use std::time::{Duration, Instant};

use bytes::Bytes;
use chassis_base::{Account, AccountId};
use chassis_data::Db;
use chassis_work::Files;
use chassis_work::files::{Key, Reading};
use render::PrintedDocument;
use render::printed::{Collection, Party, PrintedState};
use render::text::file_name;
use uuid::Uuid;

use super::issued::Issued;
use super::operations::{FileLocation, StoredPdf, record_stored_pdf};
use super::rules::printed::printed_document;
use super::rules::printed_state;
use super::{Full, Kind, Links, Parties, Seller, store};
use crate::clients::{self, Clients};
use crate::error::Error;
use crate::online_payment::{self, OnlinePayment};
use crate::renderer::{RenderPool, Slot};
use crate::{einvoice, identity};

/// A document with more rows is committed before its PDF is made.
const MAX_ROWS_BEFORE_COMMIT: usize = 100;
/// For fetching the client of a draft.
const CLIENT_TIMEOUT: Duration = Duration::from_secs(5);

#[derive(Clone)]
pub(crate) struct PdfRenderer {
    db: Db,
    files: Files,
    clients: Clients,
    links: Links,
    pool: RenderPool,
}

impl PdfRenderer {
    pub(crate) fn new(db: Db, files: Files, clients: Clients, links: Links) -> Self {
        Self { db, files, clients, links, pool: RenderPool::of_process() }
    }

    /// The PDF of a document as it is now. The PDF of a draft is never stored, because it follows its client.
    pub(crate) async fn pdf(&self, account: &Account, full: &Full) -> Result<Bytes, Error> {
        if !full.record.is_final {
            return self.pool.render(account.id, self.printed(account, full).await?, None).await;
        }
        let Moments { issued, now } = self.moments(account, full).await?;
        if now == issued || !is_recorded(full) {
            let stored = self.issued(account, full, &issued).await?;
            if now == issued {
                return Ok(stored);
            }
        }
        let printed = self.without_state(account, full).await?;
        let einvoice = issued.on(printed.clone());
        self.pool.render(account.id, now.on(printed), Some(einvoice)).await
    }

    /// The PDF as it was issued: the stored file, or a new one if there is none.
    async fn issued(&self, account: &Account, full: &Full, issued: &Moment) -> Result<Bytes, Error> {
        let key = key(account.id, full);
        let (stored, is_new) = if let Some(stored) = self.files.get(&key).await? {
            (stored, false)
        } else {
            let printed = issued.on(self.without_state(account, full).await?);
            (self.print(account, &key, printed).await?, true)
        };
        if is_new || !is_recorded(full) {
            // Recorded only after the file is stored, so that every file that is listed exists. When this fails, or the
            // process ends before it, the next request for the PDF records it.
            let pdf = self.stored_pdf(&key, full, stored.len());
            self.db.record(account, &pdf, record_stored_pdf).await?;
        }
        Ok(stored)
    }

    /// The PDF as a stream. A stored file is read as the stream is consumed.
    pub(crate) async fn open_pdf(&self, account: &Account, full: &Full) -> Result<Reading, Error> {
        if full.record.is_final && is_recorded(full) {
            let Moments { issued, now } = self.moments(account, full).await?;
            if now == issued
                && let Some(stored) = self.files.open_file(&key(account.id, full)).await?
            {
                return Ok(stored);
            }
        }
        Ok(Reading::of(self.pdf(account, full).await?))
    }

    /// A final document as it was issued.
    pub(crate) async fn as_issued(&self, account: &Account, full: Full) -> Result<Issued, Error> {
        let Moments { issued, .. } = self.moments(account, &full).await?;
        Ok(Issued { printed: issued.on(self.without_state(account, &full).await?), full })
    }

    /// Renders and stores the PDF of a document that has none. That there is one is left to be recorded.
    pub(crate) async fn issue(&self, account: &Account, issued: &Issued) -> Result<StoredPdf, Error> {
        let key = key(account.id, &issued.full);
        let rendered = self.print(account, &key, issued.printed.clone()).await?;
        Ok(self.stored_pdf(&key, &issued.full, rendered.len()))
    }

    /// A slot to make the PDF of a document of so many rows before it is committed, if one is free.
    pub(crate) async fn reserve(&self, account: AccountId, rows: usize) -> Option<Slot> {
        if rows > MAX_ROWS_BEFORE_COMMIT { None } else { self.pool.reserve(account).await }
    }

    /// Renders and stores the PDF of a document that is about to be committed together with the record of its PDF. If it is not
    /// committed after all, the file is to be [discarded](Self::discard).
    pub(crate) async fn issue_reserved(
        &self,
        slot: Slot,
        account: &Account,
        issued: &Issued,
    ) -> Result<StoredPdf, Error> {
        let key = key(account.id, &issued.full);
        let rendered = self.pool.render_reserved(slot, issued.printed.clone()).await?;
        let size = rendered.len();
        self.files.put(&key, rendered).await?;
        Ok(self.stored_pdf(&key, &issued.full, size))
    }

    /// Removes the file of a document that was not committed. Nothing lists it, so it does no harm if this fails.
    pub(crate) async fn discard(&self, account: AccountId, document: Uuid) {
        if let Err(error) = self.files.delete(&new_key(account, document)).await {
            tracing::warn!(%error, %document, "the PDF of a document that was not stored remains");
        }
    }

    /// Renders and stores the PDF as it was issued, with its e-invoice.
    async fn print(&self, account: &Account, key: &Key, printed: PrintedDocument) -> Result<Bytes, Error> {
        let rendered = self.pool.render(account.id, printed.clone(), Some(printed)).await?;
        self.files.put(key, rendered.clone()).await?;
        Ok(rendered)
    }

    /// The state when the document was issued, and the state now.
    async fn moments(&self, account: &Account, full: &Full) -> Result<Moments, Error> {
        let (record, zone) = (&full.record, account.timezone);
        let collections = if record.kind == Kind::Invoice && record.is_final && !record.is_credit() {
            self.db
                .read(async |connection| {
                    online_payment::store::list_collections(connection, account.id, record.id).await
                })
                .await?
        } else {
            Vec::new()
        };
        let collection = |payment: &OnlinePayment| Collection {
            mandate: payment.mandate_id.clone(),
            on: printed_state::day(payment.created_at, zone),
        };
        // The collection of a subscription's invoice is created in the transaction that creates the invoice, so both have
        // the same time.
        let first = collections.iter().find(|payment| Some(payment.created_at) == record.finalized_at);
        let issued =
            Moment { state: printed_state::as_issued(record, zone), collection: first.map(collection) };
        let state = printed_state::current(record, zone);
        let begun = collections.iter().find(|payment| payment.status.is_open() && !payment.closing);
        let now = match state {
            PrintedState::ToPay { .. } => Moment { state, collection: begun.map(collection) },
            // The invoice shows what its credit changed, so the credit's own print stays as issued until it is refunded.
            PrintedState::Settled | PrintedState::ToRefund { .. } if record.is_credit() => issued.clone(),
            _ if state == issued.state => issued.clone(),
            _ => Moment { state, collection: None },
        };
        Ok(Moments { issued, now })
    }

    fn stored_pdf(&self, key: &Key, full: &Full, size: usize) -> StoredPdf {
        let record = &full.record;
        let [service, area, key] = self.files.parts(key).map(str::to_owned);
        StoredPdf {
            name: format!("{}.pdf", file_name(&record.number)),
            size,
            location: FileLocation { service, area, key },
            kind: record.kind,
            document: record.id,
            client: record.client.as_ref().map(|client| client.id),
            version: record.content_version,
            is_replacement: is_recorded(full),
            links: self.links.clone(),
        }
    }

    /// The e-invoice of a final invoice.
    pub(crate) async fn ubl(&self, account: &Account, full: &Full) -> Result<Vec<u8>, Error> {
        let Moments { issued, .. } = self.moments(account, full).await?;
        Ok(einvoice::ubl::write(&issued.on(self.without_state(account, full).await?)))
    }

    /// The document as it would be printed now.
    pub(crate) async fn printed(&self, account: &Account, full: &Full) -> Result<PrintedDocument, Error> {
        let Moments { now, .. } = self.moments(account, full).await?;
        Ok(now.on(self.without_state(account, full).await?))
    }

    /// The printed document without a state. Of a final document this never changes, except for its look.
    async fn without_state(&self, account: &Account, full: &Full) -> Result<PrintedDocument, Error> {
        let record = &full.record;
        let (seller, original, stored) = self
            .db
            .read(async |connection| {
                let seller = identity::seller(connection, account.id).await?;
                let original = match record.credits {
                    Some(id) => store::find_original(connection, account.id, id).await?,
                    None => None,
                };
                let stored = if record.is_final {
                    store::find_parties(connection, account.id, record.id).await?
                } else {
                    None
                };
                Ok::<_, Error>((seller, original, stored))
            })
            .await?;
        let parties =
            stored.unwrap_or_else(|| Parties { seller: Seller::of(&seller), buyer: Party::default() });
        let parties = self.with_client(account, full, parties).await?;
        Ok(printed_document(record, &full.plain_rows(), &parties, original, seller.look))
    }

    /// The buyer of a draft is its client as of now.
    async fn with_client(
        &self,
        account: &Account,
        full: &Full,
        mut parties: Parties,
    ) -> Result<Parties, Error> {
        if let Some(client) = full.record.client.as_ref().filter(|_| !full.record.is_final) {
            let found = self.clients.get(account, client.id, Instant::now() + CLIENT_TIMEOUT).await?;
            parties.buyer = found.as_ref().map(clients::buyer).unwrap_or_default();
        }
        Ok(parties)
    }
}

/// The state of payment at the time of issue, and at this moment.
struct Moments {
    issued: Moment,
    now: Moment,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Moment {
    state: PrintedState,
    collection: Option<Collection>,
}

impl Moment {
    fn on(&self, printed: PrintedDocument) -> PrintedDocument {
        PrintedDocument { state: self.state.clone(), collection: self.collection.clone(), ..printed }
    }
}

/// Whether the PDF of this content is recorded as stored.
fn is_recorded(full: &Full) -> bool {
    full.record.pdf_version == Some(full.record.content_version)
}

/// The key of the file: each content version has a file of its own.
fn key(account: AccountId, full: &Full) -> Key {
    let version = u64::try_from(full.record.content_version).unwrap_or_default();
    Key::new(account, "documents", full.record.id).number(version)
}

/// The key of the file of a new document, which has its first version.
fn new_key(account: AccountId, document: Uuid) -> Key {
    Key::new(account, "documents", document).number(1)
}
