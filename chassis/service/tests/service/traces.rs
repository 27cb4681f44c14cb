//! Traces: a call that belongs to a trace shows up in it at the receiver, over real OTLP.

#![allow(clippy::unwrap_used, reason = "a test stops where its fact is false")]

use std::sync::{Arc, Mutex};

use chassis_service::config::Settings;
use chassis_testing::bare::{Bare, database};
use chassis_testing::{TestCaller, eventually};
use clap::Parser;
use opentelemetry_proto::tonic::collector::trace::v1::trace_service_server::{
    TraceService, TraceServiceServer,
};
use opentelemetry_proto::tonic::collector::trace::v1::{
    ExportTraceServiceRequest, ExportTraceServiceResponse,
};
use opentelemetry_proto::tonic::trace::v1::Span;
use proto::api::ProvisionAccountRequest;
use proto::api::provisioning_service_client::ProvisioningServiceClient;
use tonic::{Request, Response, Status};

/// Keeps the spans that it is sent.
#[derive(Clone, Default)]
struct Receiver(Arc<Mutex<Vec<Span>>>);

#[tonic::async_trait]
impl TraceService for Receiver {
    async fn export(
        &self,
        request: Request<ExportTraceServiceRequest>,
    ) -> Result<Response<ExportTraceServiceResponse>, Status> {
        let resources = request.into_inner().resource_spans.into_iter();
        let scopes = resources.flat_map(|resource| resource.scope_spans);
        self.0.lock().unwrap().extend(scopes.flat_map(|scope| scope.spans));
        Ok(Response::new(ExportTraceServiceResponse::default()))
    }
}

#[derive(Parser)]
struct Flags {
    #[command(flatten)]
    settings: Settings,
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_becomes_a_part_of_its_callers_trace() {
    let receiver = Receiver::default();
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let endpoint = format!("http://{}", listener.local_addr().unwrap());
    let incoming = tonic::transport::server::TcpIncoming::from(listener);
    let service = TraceServiceServer::new(receiver.clone());
    tokio::spawn(tonic::transport::Server::builder().add_service(service).serve_with_incoming(incoming));
    let settings = Flags::parse_from(["test", "--otlp-endpoint", &endpoint]).settings;
    chassis_service::telemetry::init("bare", &settings.telemetry).unwrap();

    let (database, clock) = (database().await, chassis_testing::clock());
    let service = chassis_testing::start::<Bare>(database.url(), &clock).await;
    let mut request = TestCaller::mesh(&chassis_testing::account(), &clock)
        .request(ProvisionAccountRequest { name: "Bakery".to_owned() });
    let parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    request.metadata_mut().insert("traceparent", parent.parse().unwrap());
    ProvisioningServiceClient::new(service.channel()).provision_account(request).await.unwrap();

    eventually("the span of the call at the receiver", async || {
        tokio::task::spawn_blocking(chassis_service::telemetry::flush).await.unwrap();
        let spans = receiver.0.lock().unwrap();
        spans.iter().any(|span| {
            span.name == "rpc"
                && span.trace_id == 0x0af7_6519_16cd_43dd_8448_eb21_1c80_319c_u128.to_be_bytes()
                && span.parent_span_id == 0xb7ad_6b71_6920_3331_u64.to_be_bytes()
        })
    })
    .await;
}
