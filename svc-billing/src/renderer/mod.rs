//! A pool for rendering PDFs, which is CPU-bound: never more renders at the same time than there are cores. Requests for
//! the same content share one render, and PDFs that are not stored as files are cached in memory by their content.

mod cache;
mod queue;
mod settings;

pub(crate) use settings::Settings;

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use cache::{Cache, Key};
use chassis_base::{AccountId, error};
use queue::{Priority, Queue};
use render::text::file_name;
use render::{PrintedDocument, pdf, printed};
use serde::Serialize;
use sha2::{Digest, Sha256};
use tokio::sync::{oneshot, watch};

use crate::error::Error;

use crate::einvoice;

/// How long a request waits for its turn.
const SLOT_TIMEOUT: Duration = Duration::from_secs(8);
/// How long a new document waits for its turn, which is committed without a PDF otherwise.
const BRIEF_SLOT_TIMEOUT: Duration = Duration::from_millis(25);
/// For the PDFs that are not stored as files.
const MAX_CACHE_BYTES: usize = 32 * 1024 * 1024;

/// Why there is no PDF. Cloned for every request that shares the render.
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
            Failure::Failed(cause) => {
                chassis_base::Error::Internal(format!("rendering a PDF failed: {cause}")).into()
            }
        }
    }
}

type Rendered = Result<Bytes, Failure>;
type InProgress = watch::Receiver<Option<Rendered>>;

/// What a request finds.
enum Joined {
    Cached(Bytes),
    InProgress(InProgress),
}

struct State {
    queue: Queue<oneshot::Sender<Slot>>,
    cache: Cache,
    /// Renders in progress, which later requests for the same content join.
    in_progress: HashMap<Key, InProgress>,
}

/// Renders for all accounts. A process has one pool, however many clones of it.
#[derive(Clone)]
pub(crate) struct RenderPool(Arc<Mutex<State>>);

/// The right to render, released when it is dropped.
pub(crate) struct Slot {
    pool: RenderPool,
    account: AccountId,
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.pool.state().queue.release(self.account);
        self.pool.serve();
    }
}

impl RenderPool {
    /// The pool of this process.
    pub(crate) fn of_process() -> Self {
        static POOL: LazyLock<RenderPool> = LazyLock::new(|| {
            RenderPool::new(std::thread::available_parallelism().map_or(1, std::num::NonZero::get))
        });
        POOL.clone()
    }

    fn new(slots: usize) -> Self {
        let state = State {
            queue: Queue::new(slots),
            cache: Cache::new(MAX_CACHE_BYTES),
            in_progress: HashMap::new(),
        };
        Self(Arc::new(Mutex::new(state)))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Renders a PDF; `issued` is what the e-invoice inside is made from. Requests for the same content at the same time
    /// share one render.
    pub(crate) async fn render(
        &self,
        account: AccountId,
        printed: PrintedDocument,
        issued: Option<PrintedDocument>,
    ) -> Result<Bytes, Error> {
        let content = Content { printed, issued };
        let key = Key { account, content: content.hash()? };
        let mut in_progress = match self.join(key, content) {
            Joined::Cached(bytes) => return Ok(bytes),
            Joined::InProgress(in_progress) => in_progress,
        };
        let rendered = in_progress.wait_for(Option::is_some).await.map(|rendered| rendered.clone());
        // The sender is dropped without a result only when the process ends.
        Ok(rendered.ok().flatten().unwrap_or(Err(Failure::Busy))?)
    }

    /// The cached PDF, else the render in progress, else a new one.
    fn join(&self, key: Key, content: Content) -> Joined {
        let mut state = self.state();
        if let Some(cached) = state.cache.get(&key) {
            return Joined::Cached(cached);
        }
        if let Some(in_progress) = state.in_progress.get(&key) {
            return Joined::InProgress(in_progress.clone());
        }
        let (sender, receiver) = watch::channel(None);
        state.in_progress.insert(key, receiver.clone());
        drop(state);
        // A task of its own, so that it does not end with the first caller when others have joined it.
        let pool = self.clone();
        tokio::spawn(async move {
            let is_cached = !content.is_file();
            let rendered = pool.render_in_slot(key.account, content).await;
            // Cached and removed from the renders in progress before it is answered, so that no request joins a render that
            // is over.
            pool.finish(key, &rendered, is_cached);
            sender.send_replace(Some(rendered));
        });
        Joined::InProgress(receiver)
    }

    fn finish(&self, key: Key, rendered: &Rendered, is_cached: bool) {
        let mut state = self.state();
        if let Ok(bytes) = rendered
            && is_cached
        {
            state.cache.put(key, bytes.clone());
        }
        state.in_progress.remove(&key);
    }

    /// A slot for the file of a document that is about to be stored, if one is free within a moment.
    pub(crate) async fn reserve(&self, account: AccountId) -> Option<Slot> {
        self.slot(account, Priority::Final, BRIEF_SLOT_TIMEOUT).await.ok()
    }

    /// Renders the file of a document in a slot that was reserved for it.
    pub(crate) async fn render_reserved(&self, slot: Slot, printed: PrintedDocument) -> Result<Bytes, Error> {
        let content = Content { issued: Some(printed.clone()), printed };
        Ok(render_in(slot, content).await?)
    }

    async fn render_in_slot(&self, account: AccountId, content: Content) -> Rendered {
        let priority = if content.is_file() { Priority::Final } else { Priority::View };
        let slot = self.slot(account, priority, SLOT_TIMEOUT).await?;
        render_in(slot, content).await
    }

    /// Waits for a free slot.
    async fn slot(
        &self,
        account: AccountId,
        priority: Priority,
        max_wait: Duration,
    ) -> Result<Slot, Failure> {
        let (sender, receiver) = oneshot::channel();
        let pushed = {
            let mut state = self.state();
            state.queue.retain(|waiting| !waiting.is_closed());
            state.queue.push(account, priority, sender)
        };
        pushed.map_err(|queue::Full| Failure::Busy)?;
        self.serve();
        match tokio::time::timeout(max_wait, receiver).await {
            Ok(Ok(slot)) => Ok(slot),
            Ok(Err(_)) | Err(_) => Err(Failure::Busy),
        }
    }

    /// Gives the free slots to the requests whose turn it is.
    fn serve(&self) {
        loop {
            let (next, waiting) = {
                let queue = &mut self.state().queue;
                (queue.next(), queue.waiting())
            };
            metrics::gauge!("pdf_renders_waiting").set(f64::from(u32::try_from(waiting).unwrap_or(u32::MAX)));
            let Some((account, waiting)) = next else { return };
            // When the receiver has given up, dropping the slot here releases it, and that serves the next in line.
            let unused = waiting.send(Slot { pool: self.clone(), account });
            drop(unused);
        }
    }
}

async fn render_in(slot: Slot, content: Content) -> Rendered {
    let rendered = tokio::task::spawn_blocking(move || {
        // Held by the thread itself: a caller that gives up must not free the slot while the thread still works.
        let _slot = slot;
        let kind = if content.printed.draft { "draft" } else { "final" };
        metrics::counter!("pdf_renders_total", "kind" => kind).increment(1);
        content.render()
    });
    match rendered.await {
        Ok(rendered) => rendered.map(Bytes::from).map_err(Failure::Failed),
        Err(error) => Err(Failure::Failed(error.to_string())),
    }
}

/// The input of a render.
#[derive(Serialize)]
struct Content {
    printed: PrintedDocument,
    issued: Option<PrintedDocument>,
}

impl Content {
    /// Whether it is the document as it was issued, which is stored as a file and therefore not cached.
    fn is_file(&self) -> bool {
        self.issued.as_ref() == Some(&self.printed)
    }

    /// The cache lives no longer than the process, so the version of the program need not be part of the hash.
    fn hash(&self) -> Result<[u8; 32], Error> {
        let shown =
            serde_json::to_vec(self).map_err(|error| chassis_base::Error::Internal(error.to_string()))?;
        Ok(Sha256::digest(shown).into())
    }

    fn render(&self) -> Result<Vec<u8>, String> {
        let is_invoice = |printed: &&PrintedDocument| {
            matches!(printed.kind, printed::Kind::Invoice | printed::Kind::Credit)
        };
        let xml = self.issued.as_ref().filter(is_invoice).map(einvoice::ubl::write);
        let name = format!("{}.xml", file_name(&self.printed.number));
        let attachment = xml.as_deref().map(|bytes| pdf::Attachment { name: &name, bytes });
        let rendered = pdf::render(&self.printed, attachment.as_ref());
        rendered.map(|rendered| rendered.pdf).map_err(|error| chassis_base::error::chain(&error))
    }
}
