//! PDFs and e-invoices of documents. Made when they are first needed, outside any transaction, and kept in the object
//! store; the same document always gives the same bytes. Whoever lists files hears of each that is kept as it was issued.
//!
//! A PDF tells how it stands with paying at this moment. Only the one as it was issued is a file; what it became since is
//! made for whoever asks, with the e-invoice inside that was issued.

use std::time::{Duration, Instant};

use bytes::Bytes;
use chassis_base::{Account, AccountId};
use chassis_data::{Db, Event, Tx};
use chassis_work::Files;
use chassis_work::files::{Key, Reading};
use chrono::SecondsFormat;
use render::Paper;
use render::paper::{self, Collection, Settlement};
use render::text::file_name;
use serde_json::json;
use uuid::Uuid;

use crate::clients::{self, Clients};
use crate::document::rules::amounts::Row;
use crate::document::store::{self, Full};
use crate::document::{Kind, Parties, Seller, paper as document, settlement};
use crate::online::{self, OnlinePayment};
use crate::renderer::Renderer;
use crate::{Error, einvoice, identity};

/// For looking up the client of a draft.
const LOOK_UP: Duration = Duration::from_secs(5);

#[derive(Clone)]
pub struct Press {
    db: Db,
    files: Files,
    clients: Clients,
    renderer: Renderer,
}

impl Press {
    pub fn new(db: Db, files: Files, clients: Clients) -> Self {
        Self { db, files, clients, renderer: Renderer::of_process() }
    }

    /// The PDF of a document as it is now. That of a draft is not kept as a file: it follows its client.
    pub async fn pdf(&self, account: &Account, full: &Full) -> Result<Bytes, Error> {
        if !full.record.is_final {
            return self.renderer.render(account.id, self.paper(account, full).await?, None).await;
        }
        let (issued, now) = self.moments(account, full).await?;
        if now == issued || !is_told(full) {
            let kept = self.issued(account, full, &issued).await?;
            if now == issued {
                return Ok(kept);
            }
        }
        let paper = self.plain(account, full).await?;
        let inside = issued.on(paper.clone());
        self.renderer.render(account.id, now.on(paper), Some(inside)).await
    }

    /// The PDF as it was issued: the file, made if it is not there.
    async fn issued(&self, account: &Account, full: &Full, issued: &Moment) -> Result<Bytes, Error> {
        let key = key(account.id, full);
        let (kept, made) = match self.files.get(&key).await? {
            Some(kept) => (kept, false),
            None => (self.issue(account, full, &key, issued).await?, true),
        };
        if made || !is_told(full) {
            // Told when it is kept: what is listed is there. Should this fail, the next who asks for the PDF tells of it.
            self.db.record(account, &self.stored(&key, full, kept.len()), tell).await?;
        }
        Ok(kept)
    }

    /// The same for whoever passes it on: read from the store as it is taken, where it is kept.
    pub async fn open_pdf(&self, account: &Account, full: &Full) -> Result<Reading, Error> {
        if full.record.is_final && is_told(full) {
            let (issued, now) = self.moments(account, full).await?;
            if now == issued
                && let Some(kept) = self.files.open_file(&key(account.id, full)).await?
            {
                return Ok(kept);
            }
        }
        Ok(Reading::of(self.pdf(account, full).await?))
    }

    /// Makes and keeps the PDF as it was issued.
    async fn issue(
        &self,
        account: &Account,
        full: &Full,
        key: &Key,
        issued: &Moment,
    ) -> Result<Bytes, Error> {
        let paper = issued.on(self.plain(account, full).await?);
        let made = self.renderer.render(account.id, paper.clone(), Some(paper)).await?;
        self.files.put(key, made.clone()).await?;
        Ok(made)
    }

    /// How it stood when the document was issued, and how it stands now.
    async fn moments(&self, account: &Account, full: &Full) -> Result<(Moment, Moment), Error> {
        let (record, zone) = (&full.record, account.timezone);
        let collections = if record.kind == Kind::Invoice && record.is_final && !record.is_credit() {
            self.db
                .read(async |connection| {
                    online::store::list_collections(connection, account.id, record.id).await
                })
                .await?
        } else {
            Vec::new()
        };
        let collection = |payment: &OnlinePayment| Collection {
            mandate: payment.mandate_id.clone(),
            on: settlement::day(payment.created_at, zone),
        };
        // The collection of a subscription's invoice begins in the transaction that makes the invoice.
        let first = collections.iter().find(|payment| Some(payment.created_at) == record.finalized_at);
        let issued =
            Moment { settlement: settlement::issued(record, zone), collection: first.map(collection) };
        let standing = settlement::now(record, zone);
        let begun = collections.iter().find(|payment| payment.status.is_open() && !payment.closing);
        let now = match standing {
            Settlement::ToPay { .. } => Moment { settlement: standing, collection: begun.map(collection) },
            // What becomes of a credit is told by its invoice, until it was paid back.
            Settlement::Settled | Settlement::ToRefund { .. } if record.is_credit() => issued.clone(),
            _ if standing == issued.settlement => issued.clone(),
            _ => Moment { settlement: standing, collection: None },
        };
        Ok((issued, now))
    }

    fn stored(&self, key: &Key, full: &Full, size: usize) -> Stored {
        let record = &full.record;
        Stored {
            name: format!("{}.pdf", file_name(&record.number)),
            size,
            place: self.files.parts(key).map(str::to_owned),
            source: (record.kind.name(), record.id),
            client: record.client.as_ref().map(|client| client.id),
            version: record.content_version,
            again: is_told(full),
        }
    }

    /// The e-invoice of a final invoice.
    pub async fn ubl(&self, account: &Account, full: &Full) -> Result<Vec<u8>, Error> {
        let (issued, _) = self.moments(account, full).await?;
        Ok(einvoice::ubl::write(&issued.on(self.plain(account, full).await?)))
    }

    /// All that is on the document now.
    pub async fn paper(&self, account: &Account, full: &Full) -> Result<Paper, Error> {
        let (_, now) = self.moments(account, full).await?;
        Ok(now.on(self.plain(account, full).await?))
    }

    /// All that never changes.
    async fn plain(&self, account: &Account, full: &Full) -> Result<Paper, Error> {
        let record = &full.record;
        let rows: Vec<Row> = full.rows.iter().map(|stored| stored.row.clone()).collect();
        let mut connection = self.db.acquire().await?;
        let seller = identity::seller(&mut connection, account.id).await?;
        let original = match record.credits {
            Some(id) => store::find_original(&mut connection, account.id, id).await?,
            None => None,
        };
        let kept = if record.is_final {
            store::find_parties(&mut connection, account.id, record.id).await?
        } else {
            None
        };
        let parties = match kept {
            Some(parties) => parties,
            None => Parties { seller: Seller::of(&seller), buyer: paper::Party::default() },
        };
        connection.done();
        let parties = self.with_client(account, full, parties).await?;
        Ok(document::of(record, &rows, &parties, original, seller.look))
    }

    /// A draft shows its client as it is now.
    async fn with_client(
        &self,
        account: &Account,
        full: &Full,
        mut parties: Parties,
    ) -> Result<Parties, Error> {
        if let Some(client) = full.record.client.as_ref().filter(|_| !full.record.is_final) {
            let found = self.clients.get(account, client.id, Instant::now() + LOOK_UP).await?;
            parties.buyer = found.as_ref().map(clients::buyer).unwrap_or_default();
        }
        Ok(parties)
    }
}

/// How it stands with paying a document at some time.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Moment {
    settlement: Settlement,
    collection: Option<Collection>,
}

impl Moment {
    fn on(&self, paper: Paper) -> Paper {
        Paper { settlement: self.settlement.clone(), collection: self.collection.clone(), ..paper }
    }
}

/// What others hear of a PDF.
struct Stored {
    name: String,
    size: usize,
    /// The service, the area and the name in it.
    place: [String; 3],
    source: (&'static str, Uuid),
    client: Option<Uuid>,
    version: i64,
    /// It was told before, and deleted since: it is made again for whoever asks.
    again: bool,
}

/// Notes with the document that its PDF is there, and tells of it once.
async fn tell(tx: &mut Tx<'_>, stored: &Stored) -> Result<(), Error> {
    let (account, id, now) = (tx.account(), tx.id(), tx.now());
    let [service, area, key] = &stored.place;
    let (kind, source) = stored.source;
    tx.unaudited("whether its PDF is there is no change of a document");
    let is_new = store::mark_pdf(tx.db(), account, source, stored.version).await?;
    if !is_new && !stored.again {
        return Ok(());
    }
    tx.emit(&Event {
        kind: "file.stored",
        entity_type: "file",
        entity_id: id,
        version: 1,
        data: json!({
            "id": id,
            "name": stored.name,
            "content_type": "application/pdf",
            "size": stored.size,
            "service": service,
            "area": area,
            "key": key,
            "source": {"type": kind, "id": source},
            // A higher one takes the place of a lower one.
            "version": stored.version,
            "client_id": stored.client,
            "created_at": now.to_rfc3339_opts(SecondsFormat::Millis, true),
        })
        .to_string(),
    });
    Ok(())
}

/// Whether those who list files know of the PDF of this content.
fn is_told(full: &Full) -> bool {
    full.record.pdf_version == Some(full.record.content_version)
}

/// Each content of a document has a file of its own.
fn key(account: AccountId, full: &Full) -> Key {
    let version = u64::try_from(full.record.content_version).unwrap_or_default();
    Key::new(account, "documents", full.record.id).number(version)
}
