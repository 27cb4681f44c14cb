//! The rpcs that the gateway serves itself. Apart from the operations that it answers, which need the state of all handlers:
//! that state has these.

use bytes::Bytes;
use chassis_rpc::mesh::{MeshLayer, MeshService};
use http::Uri;
use proto::unary::AsBytes;
use tonic::client::Grpc;
use tonic::service::{Routes, RoutesBuilder};
use tonic::{Extensions, Request, Response, Status};
use tower::Layer;

use super::upstream::UpstreamCall;

/// The gateway's own rpcs, behind the same layer as those of every service, and without a network in between.
#[derive(Clone)]
pub struct OwnServices(MeshService<Routes>);

impl OwnServices {
    pub fn new(routes: RoutesBuilder, layer: &MeshLayer) -> Self {
        Self(layer.layer(routes.routes()))
    }

    pub(super) async fn call(&self, outgoing: &UpstreamCall) -> Result<Response<Bytes>, Status> {
        let UpstreamCall { path, message, metadata, timeout, .. } = outgoing;
        let mut request = Request::from_parts(metadata.clone(), Extensions::default(), message.clone());
        request.set_timeout(*timeout);
        let mut grpc = Grpc::with_origin(self.0.clone(), Uri::from_static("http://gateway"));
        grpc.ready().await.map_err(|error| Status::internal(error.to_string()))?;
        grpc.unary(request, path.clone(), AsBytes).await
    }
}
