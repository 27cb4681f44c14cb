//! Mails that come over gRPC take their memory before their bytes are read: as much as the largest may have, and what
//! they need once that is known.

use std::convert::Infallible;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context as Turn, Poll};
use std::time::Duration;

use chassis::call::Context;
use chassis::error;
use futures::future::BoxFuture;
use tonic::body::Body;
use tonic::codegen::{Service, http};
use tonic::server::NamedService;

use super::max_bytes;
use super::memory::{Hold, Holder, Memory};

/// How long a call waits for memory.
const MEMORY_TIMEOUT: Duration = Duration::from_secs(5);

/// A gRPC service whose requests are mails.
#[derive(Clone)]
pub struct Bounded<S> {
    inner: S,
    memory: Arc<Memory>,
}

/// The memory of the call, for the handler: with the request's extensions.
#[derive(Clone)]
pub struct Held(Arc<Mutex<Hold>>);

impl Held {
    /// Gives back what the request did not need.
    pub fn shrink_to(&self, bytes: usize) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).shrink_to(bytes);
    }
}

impl<S> Bounded<S> {
    pub fn new(inner: S, memory: Arc<Memory>) -> Self {
        Self { inner, memory }
    }
}

impl<S: NamedService> NamedService for Bounded<S> {
    const NAME: &'static str = S::NAME;
}

impl<S, B> Service<http::Request<B>> for Bounded<S>
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

    fn poll_ready(&mut self, turn: &mut Turn<'_>) -> Poll<Result<(), Infallible>> {
        self.inner.poll_ready(turn)
    }

    fn call(&mut self, mut request: http::Request<B>) -> Self::Future {
        let fresh = self.inner.clone();
        // The one that was polled is ready, its copy may not be.
        let mut inner = std::mem::replace(&mut self.inner, fresh);
        let memory = Arc::clone(&self.memory);
        Box::pin(async move {
            let account = request.extensions().get::<Context>().map(Context::account_id);
            let mut hold = memory.hold(account.map(Holder::Account));
            if !hold.wait_for(max_bytes(&memory), MEMORY_TIMEOUT).await {
                let busy = "Too much mail is coming in. Repeat the request in a moment.";
                return Ok(error::unavailable(busy).into_http());
            }
            request.extensions_mut().insert(Held(Arc::new(Mutex::new(hold))));
            inner.call(request).await
        })
    }
}
