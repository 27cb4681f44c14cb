//! Exports: a list that is answered whole, as a stream of its pages, from one moment's view.
//!
//! The handler of the list runs once for each page, with the same request. Between the pages, an [`Export`] keeps what the
//! list is read from, and where it is. The layer here knows nothing of databases: whoever reads lists puts both into it. The
//! next page is read when the caller has taken the one before, so a process holds a page of each export at most.

use std::any::Any;
use std::convert::Infallible;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use chassis_base::error::status::of_problem;
use futures::stream::{self, StreamExt};
use http::{HeaderMap, HeaderValue, Method, Request, Response, Uri, header};
use http_body::Frame;
use http_body_util::{BodyExt, Full, Limited, StreamBody};
use proto::api::Problem;
use tokio::sync::Mutex as AsyncMutex;
use tonic::Status;
use tonic::body::Body;
use tower::{Service, ServiceExt};

use crate::call::Context;
use crate::scope;

/// The longest request of a list.
const MAX_REQUEST: usize = 1 << 20;
/// How long an export may take in all: until then the database keeps what others remove.
const MAX_DURATION: Duration = Duration::from_mins(15);

tokio::task_local! {
    static EXPORT: Arc<Export>;
}

type Kept = Option<Box<dyn Any + Send>>;

/// The export that the current task reads a page of.
#[derive(Default)]
pub struct Export {
    /// What the pages are read from. One reader at a time.
    pub source: AsyncMutex<Kept>,
    /// What was read and did not fit into the page before.
    rest: Mutex<Kept>,
    progress: AtomicU8,
}

const NOT_BEGUN: u8 = 0;
const BEGUN: u8 = 1;
const FINISHED: u8 = 2;

impl Export {
    /// `None` when the current task reads a page of its own.
    pub fn current() -> Option<Arc<Self>> {
        EXPORT.try_with(Arc::clone).ok()
    }

    pub fn has_begun(&self) -> bool {
        self.progress.load(Ordering::Acquire) != NOT_BEGUN
    }

    /// Tells that a page was read, and whether it is the last.
    pub fn page_read(&self, is_last: bool) {
        self.progress.store(if is_last { FINISHED } else { BEGUN }, Ordering::Release);
    }

    fn is_finished(&self) -> bool {
        self.progress.load(Ordering::Acquire) == FINISHED
    }

    /// Takes what did not fit into the page before.
    pub fn take_rest<T: 'static>(&self) -> Option<T> {
        let kept = self.rest.lock().unwrap_or_else(PoisonError::into_inner).take()?;
        kept.downcast().ok().map(|rest| *rest)
    }

    pub fn keep_rest(&self, rest: impl Any + Send) {
        *self.rest.lock().unwrap_or_else(PoisonError::into_inner) = Some(Box::new(rest));
    }
}

/// Whether an rpc reads a list, by its name. Nothing else is carried out again and again.
pub(crate) fn is_list(path: &str) -> bool {
    path.rsplit('/').next().is_some_and(|name| name.starts_with("List"))
}

/// Answers a request for a list with all of its pages. The first is read before the answer begins, so that a request that is
/// refused has the status of the refusal.
pub(crate) async fn answer<S>(
    list: S,
    request: Request<Body>,
    page_timeout: Duration,
) -> Result<Response<Body>, Infallible>
where
    S: Service<Request<Body>, Response = Response<Body>, Error = Infallible> + Clone + Send + 'static,
    S::Future: Send,
{
    Ok(match begin(list, request, page_timeout, MAX_DURATION).await {
        Ok(body) => {
            let mut response = Response::new(body);
            response.headers_mut().insert(header::CONTENT_TYPE, GRPC);
            response
        }
        Err(status) => status.into_http(),
    })
}

const GRPC: HeaderValue = HeaderValue::from_static("application/grpc");

async fn begin<S>(
    list: S,
    request: Request<Body>,
    page_timeout: Duration,
    max_duration: Duration,
) -> Result<Body, Status>
where
    S: Service<Request<Body>, Response = Response<Body>, Error = Infallible> + Clone + Send + 'static,
    S::Future: Send,
{
    let (mut parts, body) = request.into_parts();
    let context = parts.extensions.remove::<Context>();
    let context = context.ok_or_else(|| Status::internal("an export has no context"))?;
    let message = Limited::new(body, MAX_REQUEST).collect().await;
    let message = message.map_err(|error| Status::invalid_argument(error.to_string()))?.to_bytes();
    let ends_at = Instant::now() + max_duration;
    let export = Arc::new(Export::default());
    // A caller that stops reading asks for no page, so that no page finds out how late it is.
    let unread = Arc::downgrade(&export);
    tokio::spawn(async move {
        tokio::time::sleep(max_duration).await;
        if let Some(export) = unread.upgrade() {
            export.source.lock().await.take();
        }
    });
    let mut pages = Pages { list, uri: parts.uri, message, context, page_timeout, export, ends_at };
    let first = pages.next().await?;
    let frames = stream::unfold(State::Page(first, pages), State::frame);
    Ok(Body::new(StreamBody::new(frames.fuse())))
}

/// What is sent next.
enum State<S> {
    Page(Bytes, Pages<S>),
    Next(Pages<S>),
    Done,
}

impl<S> State<S>
where
    S: Service<Request<Body>, Response = Response<Body>, Error = Infallible> + Clone,
{
    async fn frame(self) -> Option<(Result<Frame<Bytes>, Status>, Self)> {
        let (page, pages) = match self {
            Self::Done => return None,
            Self::Page(page, pages) => (Ok(page), pages),
            Self::Next(pages) if pages.export.is_finished() => {
                return Some((Ok(ending(&Status::ok(""))), Self::Done));
            }
            Self::Next(mut pages) => {
                (scope::continued(pages.context.account_id(), pages.next()).await, pages)
            }
        };
        Some(match page {
            Ok(page) => (Ok(Frame::data(page)), Self::Next(pages)),
            Err(status) => {
                tracing::warn!(rpc = pages.context.rpc, %status, "an export was cut off");
                (Ok(ending(&status)), Self::Done)
            }
        })
    }
}

fn ending(status: &Status) -> Frame<Bytes> {
    let mut trailers = HeaderMap::new();
    // The message of a status is always a header value, because it is escaped.
    let _ = status.add_header(&mut trailers);
    Frame::trailers(trailers)
}

/// Reads an export page by page.
struct Pages<S> {
    list: S,
    uri: Uri,
    /// The request as it was sent, for each page again.
    message: Bytes,
    context: Context,
    page_timeout: Duration,
    export: Arc<Export>,
    ends_at: Instant,
}

impl<S> Pages<S>
where
    S: Service<Request<Body>, Response = Response<Body>, Error = Infallible> + Clone,
{
    /// The next page as it is sent: a message with its length in front.
    async fn next(&mut self) -> Result<Bytes, Status> {
        let overdue = |detail: &str| of_problem(Problem::Timeout, detail, Vec::new(), None);
        let now = Instant::now();
        if now >= self.ends_at {
            return Err(overdue("The export took too long. Ask for a part of the list, or read it faster."));
        }
        let deadline = now + self.page_timeout;
        let page = EXPORT.scope(Arc::clone(&self.export), self.call(deadline));
        let page = tokio::time::timeout_at(deadline.into(), page).await;
        let page = page.map_err(|_| overdue("A page of the export took too long."))??;
        if !self.export.has_begun() {
            return Err(Status::unimplemented("this list has no pages to export"));
        }
        Ok(page)
    }

    async fn call(&mut self, deadline: Instant) -> Result<Bytes, Status> {
        let mut request = Request::new(Body::new(Full::new(self.message.clone())));
        *request.method_mut() = Method::POST;
        *request.uri_mut() = self.uri.clone();
        request.headers_mut().insert(header::CONTENT_TYPE, GRPC);
        request.extensions_mut().insert(Context { deadline, ..self.context.clone() });
        let Ok(list) = self.list.ready().await;
        let Ok(response) = list.call(request).await;
        let (head, body) = response.into_parts();
        refused(&head.headers)?;
        let collected = body.collect().await?;
        if let Some(trailers) = collected.trailers() {
            refused(trailers)?;
        }
        Ok(collected.to_bytes())
    }
}

fn refused(headers: &HeaderMap) -> Result<(), Status> {
    match Status::from_header_map(headers) {
        Some(status) if status.code() != tonic::Code::Ok => Err(status),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use chassis_base::{Account, AccountId, Clock};
    use tokio::sync::oneshot;

    use super::*;

    /// An export that nobody has read yet, and what tells that it has given back what it is read from.
    async fn begun(max_duration: Duration) -> (Body, oneshot::Receiver<()>) {
        let (source, given_back) = oneshot::channel::<()>();
        let source = Arc::new(Mutex::new(Some(source)));
        let list = tower::service_fn(move |_| {
            let source = Arc::clone(&source);
            async move {
                let export = Export::current().unwrap();
                let source = source.lock().unwrap().take().unwrap();
                *export.source.lock().await = Some(Box::new(source));
                export.page_read(false);
                Ok::<_, Infallible>(Response::new(Body::new(Full::new(Bytes::from_static(b"a page")))))
            }
        });
        let account = Account::unknown(AccountId::trust(uuid::Uuid::nil()));
        let context = Context::internal(&account, "test", "/a.S/ListThings", &Clock::system());
        let mut request = Request::new(Body::empty());
        request.extensions_mut().insert(context);
        let body = begin(list, request, Duration::from_secs(10), max_duration).await.unwrap();
        (body, given_back)
    }

    #[tokio::test]
    async fn what_an_export_is_read_from_is_given_back_when_nobody_reads_on() {
        let (unread, given_back) = begun(Duration::from_secs(1)).await;
        assert!(given_back.await.is_err(), "its other end is gone");
        drop(unread);
    }

    #[tokio::test]
    async fn what_an_export_is_read_from_is_given_back_when_its_caller_leaves() {
        let (unread, mut given_back) = begun(MAX_DURATION).await;
        assert_eq!(given_back.try_recv(), Err(oneshot::error::TryRecvError::Empty));
        drop(unread);
        assert_eq!(given_back.try_recv(), Err(oneshot::error::TryRecvError::Closed));
    }

    #[test]
    fn nothing_but_a_list_is_exported() {
        assert!(is_list("/admin.crm.v1.DealService/ListDeals"));
        assert!(!is_list("/admin.crm.v1.DealService/CreateDeal") && !is_list("ListDeals/"));
    }
}
