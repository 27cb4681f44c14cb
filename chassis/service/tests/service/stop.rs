//! A stop in two stages: first nothing new should come, then what is in progress is finished.

#![expect(clippy::unwrap_used, reason = "a test stops at what it did not expect")]

use std::sync::Arc;

use chassis_rpc::tls::Tls;
use chassis_rpc::token::Tokens;
use chassis_service::config::Settings;
use chassis_service::connections::{self, Port};
use chassis_service::server::{Authentication, operators_port, serve_grpc, serve_operators};
use chassis_service::stage::Stage;
use chassis_testing::{TestCaller, eventually};
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
    let (clock, tokens, slow) =
        (chassis_testing::clock(), Tokens::new(chassis_testing::secret()), Slow::default());
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (stop, stopped) = watch::channel(Stage::Running);
    let mut routes = RoutesBuilder::default();
    routes.add_service(EventListenerServiceServer::new(slow.clone()));
    let serving_clock = clock.clone();
    let tls = Tls::open(&settings.tls).unwrap();
    let serving = tokio::spawn(async move {
        serve_grpc(
            listener,
            routes,
            Authentication { tokens: &tokens, clock: &serving_clock, tls: &tls },
            &settings,
            stopped,
        )
        .await
    });
    let channel = Endpoint::from_shared(format!("http://{address}")).unwrap().connect_lazy();
    let request =
        TestCaller::mesh(&chassis_testing::account(), &clock).request(DeliverEventsRequest::default());
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
    let port = operators_port(&Flags::parse_from(["test"]).settings);
    let serving = tokio::spawn(serve_operators(listener, port, stopped, || async { Ok("ready".to_owned()) }));
    let ready = ask(address, "/readyz").await;
    assert!(ready.starts_with("HTTP/1.1 200") && ready.ends_with("ready\n"), "{ready}");
    stop.send_replace(Stage::Draining);
    let stopping = ask(address, "/readyz").await;
    assert!(stopping.starts_with("HTTP/1.1 503") && stopping.ends_with("stopping\n"), "{stopping}");
    assert!(ask(address, "/healthz").await.starts_with("HTTP/1.1 200"));
    serving.abort();
}

fn settings(flags: &[&str]) -> Settings {
    Flags::parse_from(["test"].iter().chain(flags)).settings
}

/// Connects and sends this; the connection then waits to be accepted.
async fn connect(address: std::net::SocketAddr, bytes: &[u8]) -> TcpStream {
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(bytes).await.unwrap();
    stream
}

/// Everything that comes until the other side closes.
async fn rest(mut stream: TcpStream) -> String {
    let mut bytes = Vec::new();
    // A reset is an end too.
    let _ = stream.read_to_end(&mut bytes).await;
    String::from_utf8_lossy(&bytes).into_owned()
}

#[tokio::test]
async fn connections_that_wait_to_be_accepted_are_served_before_the_listener_goes() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let mut waiting = Vec::new();
    for _ in 0..20 {
        waiting.push(connect(address, b"GET / HTTP/1.1\r\nhost: x\r\n\r\n").await);
    }
    let (_stop, stopped) = watch::channel(Stage::Draining);
    let router = axum::Router::new().route("/", axum::routing::get(|| async { "served" }));
    let settings = settings(&[]);
    let port = Port::new("test", &settings.connections, &settings.stop, 100, 2);
    let serving = tokio::spawn(connections::serve(listener, router, port, stopped));
    for stream in waiting {
        let answer = rest(stream).await;
        assert!(answer.ends_with("served") && answer.contains("connection: close"), "{answer:?}");
    }
    serving.await.unwrap();
    assert!(TcpStream::connect(address).await.is_err(), "the listener has gone");
}

#[tokio::test]
async fn silent_connections_to_the_ports_of_a_service_are_closed() {
    let settings = settings(&["--head-timeout-ms", "50"]);
    let (clock, tokens) = (chassis_testing::clock(), Tokens::new(chassis_testing::secret()));
    let (grpc, operators) =
        (TcpListener::bind("127.0.0.1:0").await.unwrap(), TcpListener::bind("127.0.0.1:0").await.unwrap());
    let addresses = [grpc.local_addr().unwrap(), operators.local_addr().unwrap()];
    let (_stop, running) = watch::channel(Stage::Running);
    let port = operators_port(&settings);
    tokio::spawn(serve_operators(operators, port, running.clone(), || async { Ok("ready".to_owned()) }));
    tokio::spawn(async move {
        let tls = Tls::open(&settings.tls).unwrap();
        serve_grpc(
            grpc,
            RoutesBuilder::default(),
            Authentication { tokens: &tokens, clock: &clock, tls: &tls },
            &settings,
            running,
        )
        .await
    });
    let channel = Endpoint::from_shared(format!("http://{}", addresses[0])).unwrap().connect_lazy();
    let mut health = HealthClient::new(channel);
    health.check(HealthCheckRequest::default()).await.unwrap();
    for address in addresses {
        for silence in ["", "PRI * HTTP/2.0\r\n", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "GET / HTTP/1.1\r\n"] {
            rest(connect(address, silence.as_bytes()).await).await;
        }
    }
    health.check(HealthCheckRequest::default()).await.unwrap();
    assert!(ask(addresses[1], "/healthz").await.starts_with("HTTP/1.1 200"));
}
