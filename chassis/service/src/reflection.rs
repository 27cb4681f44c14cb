//! gRPC reflection, for people who try out calls outside production. Its tables take more than a megabyte, so they are built
//! when it is first called.

use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};

use axum::http::Request;
use tonic::body::Body;
use tonic::server::NamedService;
use tonic::service::RoutesBuilder;
use tonic_reflection::server::Builder;
use tower::Service;

/// Adds both versions of the reflection protocol, because many tools support only v1alpha.
#[expect(clippy::expect_used, reason = "the descriptors are made by builds, and a test calls both versions")]
pub(crate) fn add(routes: &mut RoutesBuilder) {
    routes.add_service(OnFirstCall::new(|| builder().build_v1().expect("valid descriptors")));
    routes.add_service(OnFirstCall::new(|| builder().build_v1alpha().expect("valid descriptors")));
}

fn builder() -> Builder<'static> {
    Builder::configure()
        .register_encoded_file_descriptor_set(proto::REFLECTION)
        .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET)
}

/// A gRPC service that is built when it is first called.
struct OnFirstCall<S> {
    build: fn() -> S,
    built: Arc<OnceLock<S>>,
}

impl<S> OnFirstCall<S> {
    fn new(build: fn() -> S) -> Self {
        Self { build, built: Arc::default() }
    }
}

impl<S> Clone for OnFirstCall<S> {
    fn clone(&self) -> Self {
        Self { build: self.build, built: Arc::clone(&self.built) }
    }
}

impl<S: NamedService> NamedService for OnFirstCall<S> {
    const NAME: &'static str = S::NAME;
}

impl<S: Service<Request<Body>> + Clone> Service<Request<Body>> for OnFirstCall<S> {
    type Response = S::Response;
    type Error = S::Error;
    type Future = S::Future;

    /// Generated servers are always ready.
    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        self.built.get_or_init(self.build).clone().call(request)
    }
}
