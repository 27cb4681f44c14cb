//! Reserves memory for mails that come over gRPC, before their bytes are read: first for the largest mail, and
//! after the mail was read, for its own size.

use std::convert::Infallible;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context as TaskContext, Poll};
use std::time::Duration;

use chassis_base::error;
use chassis_rpc::Context;
use futures::future::BoxFuture;
use tonic::body::Body;
use tonic::codegen::{Service, http};
use tonic::server::NamedService;

use super::max_bytes;
use super::memory::{Holder, MailMemory, Reservation};

/// How long a call waits for memory that other mails hold.
const MEMORY_TIMEOUT: Duration = Duration::from_secs(5);

/// A gRPC service whose requests are mails.
#[derive(Clone)]
pub struct MemoryLimited<S> {
    inner: S,
    memory: Arc<MailMemory>,
}

/// The reservation of a call. The handler finds it among the extensions of the request.
#[derive(Clone)]
pub struct RequestReservation(Arc<Mutex<Reservation>>);

impl RequestReservation {
    /// Releases the memory that the request does not need.
    pub fn shrink_to(&self, bytes: usize) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).shrink_to(bytes);
    }
}

impl<S> MemoryLimited<S> {
    pub fn new(inner: S, memory: Arc<MailMemory>) -> Self {
        Self { inner, memory }
    }
}

impl<S: NamedService> NamedService for MemoryLimited<S> {
    const NAME: &'static str = S::NAME;
}

impl<S, B> Service<http::Request<B>> for MemoryLimited<S>
where
    S: Service<http::Request<B>, Response = http::Response<Body>, Error = Infallible>
        + Clone
        + Send
        + 'static,
    S::Future: Send,
    B: Send + 'static,
{
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Self::Response, Infallible>>;

    fn poll_ready(&mut self, task: &mut TaskContext<'_>) -> Poll<Result<(), Infallible>> {
        self.inner.poll_ready(task)
    }

    fn call(&mut self, mut request: http::Request<B>) -> Self::Future {
        let clone = self.inner.clone();
        // The service that was polled is ready; its clone may not be.
        let mut inner = std::mem::replace(&mut self.inner, clone);
        let memory = Arc::clone(&self.memory);
        Box::pin(async move {
            let account = request.extensions().get::<Context>().map(Context::account_id);
            let mut reservation = memory.reservation(account.map(Holder::Account));
            if !reservation.wait_to_grow(max_bytes(&memory), MEMORY_TIMEOUT).await {
                let busy = "Too much mail is coming in. Repeat the request in a moment.";
                return Ok(error::status::unavailable(busy).into_http());
            }
            request.extensions_mut().insert(RequestReservation(Arc::new(Mutex::new(reservation))));
            inner.call(request).await
        })
    }
}
