//! The service behind a port without its type, so that the whole server is compiled once and not for every service.

use std::convert::Infallible;

use axum::body::Body;
use futures::future::BoxFuture;
use http::{Request, Response};
use tower::{Service, ServiceExt};

pub(super) trait Answers: Send + Sync {
    fn answer(&self, request: Request<Body>) -> BoxFuture<'static, Result<Response<Body>, Infallible>>;
}

impl<S> Answers for S
where
    S: Service<Request<Body>, Response = Response<Body>, Error = Infallible> + Clone + Send + Sync + 'static,
    S::Future: Send,
{
    fn answer(&self, request: Request<Body>) -> BoxFuture<'static, Result<Response<Body>, Infallible>> {
        Box::pin(self.clone().oneshot(request))
    }
}
