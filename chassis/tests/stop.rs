//! A stop in two stages: first nothing new should come, then what is in progress is finished.

#![expect(clippy::unwrap_used, reason = "a test stops at what it did not expect")]

use std::sync::Arc;

use chassis::config::Settings;
use chassis::server::{Stage, serve_grpc, serve_operators};
use chassis::testing::{self, TestCaller, eventually};
use chassis::tls::Tls;
use chassis::token::Tokens;
use clap::Parser;
use proto::api::event_listener_service_client::EventListenerServiceClient;
use proto::api::event_listener_service_server::{EventListenerService, EventListenerServiceServer};
use proto::api::{DeliverEventsRequest, DeliverEventsResponse};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, watch};
use tonic::service::RoutesBuilder;
use tonic::transport::Endpoint;
use tonic::{Request, Response, Status};
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_client::HealthClient;

#[derive(Parser)]
struct Flags {
    #[command(flatten)]
    settings: Settings,
}

/// Answers when it is told to.
#[derive(Clone, Default)]
struct Slow {
    begun: Arc<Notify>,
    go_on: Arc<Notify>,
}

#[tonic::async_trait]
impl EventListenerService for Slow {
    async fn deliver_events(
        &self,
        _: Request<DeliverEventsRequest>,
    ) -> Result<Response<DeliverEventsResponse>, Status> {
        self.begun.notify_one();
        self.go_on.notified().await;
        Ok(Response::new(DeliverEventsResponse {}))
    }
}

#[tokio::test]
async fn a_call_in_progress_outlives_a_first_stage_that_is_longer_than_the_second() {
    let settings = Flags::parse_from(["test", "--drain-ms", "60000", "--grace-ms", "0"]).settings;
    let (clock, tokens, slow) = (testing::clock(), Tokens::new(testing::secret()), Slow::default());
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (stop, stopped) = watch::channel(Stage::Running);
    let mut routes = RoutesBuilder::default();
    routes.add_service(EventListenerServiceServer::new(slow.clone()));
    let serving_clock = clock.clone();
    let tls = Tls::open(&settings.tls).unwrap();
    let serving = tokio::spawn(async move {
        serve_grpc(listener, routes, (&tokens, &serving_clock, &tls), &settings, stopped).await
    });
    let channel = Endpoint::from_shared(format!("http://{address}")).unwrap().connect_lazy();
    let request = TestCaller::mesh(&testing::account(), &clock).request(DeliverEventsRequest::default());
    let mut client = EventListenerServiceClient::new(channel.clone());
    let call = tokio::spawn(async move { client.deliver_events(request).await });
    slow.begun.notified().await;
    stop.send_replace(Stage::Draining);
    eventually("callers are told to go elsewhere", async || {
        let asked = HealthClient::new(channel.clone()).check(HealthCheckRequest::default()).await;
        asked.is_ok_and(|answer| answer.get_ref().status() == ServingStatus::NotServing)
    })
    .await;
    slow.go_on.notify_one();
    call.await.unwrap().unwrap();
    serving.abort();
}

async fn ask(address: std::net::SocketAddr, path: &str) -> String {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer
}

#[tokio::test]
async fn a_process_is_not_ready_from_the_moment_it_is_asked_to_stop() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (stop, stopped) = watch::channel(Stage::Running);
    let serving = tokio::spawn(serve_operators(listener, stopped, || async { Ok("ready".to_owned()) }));
    let ready = ask(address, "/readyz").await;
    assert!(ready.starts_with("HTTP/1.1 200") && ready.ends_with("ready\n"), "{ready}");
    stop.send_replace(Stage::Draining);
    let stopping = ask(address, "/readyz").await;
    assert!(stopping.starts_with("HTTP/1.1 503") && stopping.ends_with("stopping\n"), "{stopping}");
    assert!(ask(address, "/healthz").await.starts_with("HTTP/1.1 200"));
    serving.abort();
}
