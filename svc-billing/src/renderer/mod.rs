//! Rendering PDFs, which is work for the processor: never more at once than there are cores, whoever asks. Those who ask
//! for the same content share one render, and what becomes no file is kept in memory by what it shows.

mod cache;
mod queue;

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use cache::{Cache, Key};
use chassis_base::{AccountId, error};
use queue::{Priority, Queue};
use render::text::file_name;
use render::{Paper, paper, pdf};
use serde::Serialize;
use sha2::{Digest, Sha256};
use tokio::sync::{oneshot, watch};

use crate::{Error, einvoice};

/// How long to wait for a slot.
const SLOT_TIMEOUT: Duration = Duration::from_secs(8);
/// For the PDFs that are no files.
const MAX_CACHE_BYTES: usize = 32 * 1024 * 1024;

/// Why there is no PDF.
#[derive(Clone, Debug)]
enum Failure {
    Busy,
    Failed(String),
}

impl From<Failure> for Error {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Busy => {
                let busy = error::status::unavailable(
                    "Too many PDFs are being made. Repeat the request in a moment.",
                );
                chassis_base::Error::Peer(Box::new(busy)).into()
            }
            Failure::Failed(cause) => chassis_base::Error::Internal(format!("a PDF: {cause}")).into(),
        }
    }
}

type Made = Result<Bytes, Failure>;
type Flight = watch::Receiver<Option<Made>>;

enum Joined {
    Kept(Bytes),
    Flight(Flight),
}

struct State {
    queue: Queue<oneshot::Sender<Slot>>,
    cache: Cache,
    /// Renders under way, for others who want the same.
    flights: HashMap<Key, Flight>,
}

/// Renders for all accounts. A process has one.
#[derive(Clone)]
pub struct Renderer(Arc<Mutex<State>>);

/// The right to render; given back when it is dropped.
struct Slot {
    renderer: Renderer,
    account: AccountId,
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.renderer.state().queue.release(self.account);
        self.renderer.serve();
    }
}

impl Renderer {
    /// The one of this process.
    pub fn of_process() -> Self {
        static RENDERER: LazyLock<Renderer> = LazyLock::new(|| {
            Renderer::new(std::thread::available_parallelism().map_or(1, std::num::NonZero::get))
        });
        RENDERER.clone()
    }

    fn new(slots: usize) -> Self {
        let state =
            State { queue: Queue::new(slots), cache: Cache::new(MAX_CACHE_BYTES), flights: HashMap::new() };
        Self(Arc::new(Mutex::new(state)))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The PDF of this content; `issued` is what the e-invoice inside is made from. It is rendered once, however many ask
    /// at the same time.
    pub async fn render(
        &self,
        account: AccountId,
        paper: Paper,
        issued: Option<Paper>,
    ) -> Result<Bytes, Error> {
        let content = Content { paper, issued };
        let key = (account, content.hash()?);
        let mut flight = match self.join(key, content) {
            Joined::Kept(bytes) => return Ok(bytes),
            Joined::Flight(flight) => flight,
        };
        let made = flight.wait_for(Option::is_some).await.map(|made| made.clone());
        // The sender is gone only when the process ends.
        Ok(made.ok().flatten().unwrap_or(Err(Failure::Busy))?)
    }

    /// What is kept, or else the render of somebody who asked before, or else a new one.
    fn join(&self, key: Key, content: Content) -> Joined {
        let mut state = self.state();
        if let Some(kept) = state.cache.get(&key) {
            return Joined::Kept(kept);
        }
        if let Some(flight) = state.flights.get(&key) {
            return Joined::Flight(flight.clone());
        }
        let (sender, receiver) = watch::channel(None);
        state.flights.insert(key, receiver.clone());
        drop(state);
        // A task of its own, so that it does not end with the caller whom others have joined.
        let renderer = self.clone();
        tokio::spawn(async move {
            let is_cached = !content.is_file();
            let made = renderer.make(key.0, content).await;
            renderer.land(key, &made, is_cached);
            sender.send_replace(Some(made));
        });
        Joined::Flight(receiver)
    }

    fn land(&self, key: Key, made: &Made, is_cached: bool) {
        let mut state = self.state();
        if let Ok(bytes) = made
            && is_cached
        {
            state.cache.put(key, bytes.clone());
        }
        state.flights.remove(&key);
    }

    async fn make(&self, account: AccountId, content: Content) -> Made {
        let priority = if content.is_file() { Priority::Final } else { Priority::View };
        let slot = self.slot(account, priority).await?;
        let made = tokio::task::spawn_blocking(move || {
            let _slot = slot;
            let kind = if content.paper.draft { "draft" } else { "final" };
            metrics::counter!("pdf_renders_total", "kind" => kind).increment(1);
            content.render()
        });
        match made.await {
            Ok(made) => made.map(Bytes::from).map_err(Failure::Failed),
            Err(error) => Err(Failure::Failed(error.to_string())),
        }
    }

    /// Waits for a turn.
    async fn slot(&self, account: AccountId, priority: Priority) -> Result<Slot, Failure> {
        let (sender, receiver) = oneshot::channel();
        let pushed = {
            let mut state = self.state();
            state.queue.retain(|waiting| !waiting.is_closed());
            state.queue.push(account, priority, sender)
        };
        pushed.map_err(|queue::Full| Failure::Busy)?;
        self.serve();
        match tokio::time::timeout(SLOT_TIMEOUT, receiver).await {
            Ok(Ok(slot)) => Ok(slot),
            Ok(Err(_)) | Err(_) => Err(Failure::Busy),
        }
    }

    /// Gives the free slots to those whose turn it is.
    fn serve(&self) {
        loop {
            let next = self.state().queue.next();
            let Some((account, waiting)) = next else { return };
            // Has the waiting one left, the slot that comes back serves the next.
            let unused = waiting.send(Slot { renderer: self.clone(), account });
            drop(unused);
        }
    }
}

/// What a PDF is made from.
#[derive(Serialize)]
struct Content {
    paper: Paper,
    issued: Option<Paper>,
}

impl Content {
    /// Whether it is the document as it was issued, which is kept as a file; else it is cached.
    fn is_file(&self) -> bool {
        self.issued.as_ref() == Some(&self.paper)
    }

    /// What is cached is kept no longer than the process lives, so the version of the program is not part of it.
    fn hash(&self) -> Result<[u8; 32], Error> {
        let shown =
            serde_json::to_vec(self).map_err(|error| chassis_base::Error::Internal(error.to_string()))?;
        Ok(Sha256::digest(shown).into())
    }

    fn render(&self) -> Result<Vec<u8>, String> {
        let is_invoice = |paper: &&Paper| matches!(paper.kind, paper::Kind::Invoice | paper::Kind::Credit);
        let xml = self.issued.as_ref().filter(is_invoice).map(einvoice::ubl::write);
        let name = format!("{}.xml", file_name(&self.paper.number));
        let attachment = xml.as_deref().map(|bytes| pdf::Attachment { name: &name, bytes });
        pdf::render(&self.paper, attachment.as_ref()).map_err(|error| chassis_base::error::chain(&error))
    }
}
