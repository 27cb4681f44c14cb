//! Operations that the gateway answers itself, because they are about several services.

use bytes::Bytes;
use chassis_base::Error;
use chassis_rpc::mesh::{MeshLayer, MeshService};
use http::Uri;
use prost::Message as _;
use proto::Faults;
use proto::unary::AsBytes;
use tonic::client::Grpc;
use tonic::service::{Routes, RoutesBuilder};
use tonic::{Extensions, Request, Response, Status};
use tower::Layer;

use super::admission::Admitted;
use super::app::App;
use super::changes;
use super::upstream::UpstreamCall;
use crate::ledger;

const GET_LEDGER: &str = "/admin.gateway.v1.LedgerService/GetLedger";
const LIST_CHANGES: &str = "/admin.gateway.v1.ChangeService/ListChanges";

/// Answers a request as a service would. `faults` are those that were found while the request was read.
pub(super) async fn answer(
    app: &App,
    admitted: &Admitted,
    call: &UpstreamCall,
    faults: &Faults,
) -> Result<Response<Bytes>, Status> {
    let Admitted::Key(caller) = admitted else {
        return Err(Status::internal("an operation of the gateway is public"));
    };
    match call.path.as_str() {
        GET_LEDGER if !faults.is_empty() => Err(Error::from(faults.clone()).into()),
        GET_LEDGER => {
            let ledger = ledger::heads(&app.runtime, &caller.account, call.timeout).await?;
            Ok(Response::new(ledger.encode_to_vec().into()))
        }
        LIST_CHANGES => {
            let changes = Box::pin(changes::list(app, caller, call, faults)).await?;
            Ok(Response::new(changes.encode_to_vec().into()))
        }
        _ => app.own.call(call).await,
    }
}

/// The gateway's own rpcs, behind the same layer as those of every service, and without a network in between.
#[derive(Clone)]
pub struct OwnServices(MeshService<Routes>);

impl OwnServices {
    pub fn new(routes: RoutesBuilder, layer: &MeshLayer) -> Self {
        Self(layer.layer(routes.routes()))
    }

    async fn call(&self, outgoing: &UpstreamCall) -> Result<Response<Bytes>, Status> {
        let UpstreamCall { path, message, metadata, timeout, .. } = outgoing;
        let mut request = Request::from_parts(metadata.clone(), Extensions::default(), message.clone());
        request.set_timeout(*timeout);
        let mut grpc = Grpc::with_origin(self.0.clone(), Uri::from_static("http://gateway"));
        grpc.ready().await.map_err(|error| Status::internal(error.to_string()))?;
        grpc.unary(request, path.clone(), AsBytes).await
    }
}
