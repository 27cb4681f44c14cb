//! A service that hangs, and an account that floods it, take nothing from the others.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::Router;
use chassis_testing::eventually;
use gateway::testing::{Answer, Api, TestGateway};
use tokio::task::JoinSet;

use crate::support::Mesh;

const SCOPES: [&str; 4] = ["relations.read", "deals.read", "notes.read", "invoices.read"];
/// Half of 48 permits belong to six services: crm has 4 of its own and 24 that are shared.
const PERMITS: &str = "48";
const PERMITS_OF_ONE: usize = 28;

/// A service that takes calls, counts them and never answers.
struct Hanging {
    url: String,
    calls: Arc<AtomicUsize>,
}

impl Hanging {
    async fn start() -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let calls = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&calls);
        let never = move || {
            counted.fetch_add(1, Ordering::Relaxed);
            std::future::pending::<()>()
        };
        tokio::spawn(async move { axum::serve(listener, Router::new().fallback(never)).await });
        Self { url, calls }
    }
}

/// A mesh whose crm hangs, with clients of so many accounts.
async fn with_crm_hanging(accounts: usize) -> (Mesh, Hanging, TestGateway, Vec<Api>) {
    let mesh = Mesh::start().await;
    let hanging = Hanging::start().await;
    let mut peers: Vec<String> = mesh.peers().to_vec();
    for peer in peers.iter_mut().filter(|peer| peer.starts_with("crm=")) {
        *peer = format!("crm={}", hanging.url);
    }
    let flags = ["--max-in-flight", PERMITS, "--rate-per-minute", "0", "--deadline-ms", "600000"];
    let gateway = TestGateway::start(&mesh.database, &mesh.clock, &peers, &flags).await;
    let mut apis = Vec::new();
    for _ in 0..accounts {
        let api = gateway.api_with(mesh.api(&SCOPES).await.key());
        // From here on its key is cached: looking it up has a limit of its own.
        api.get("/v1/clients").await.expect(200);
        apis.push(api);
    }
    (mesh, hanging, gateway, apis)
}

/// Requests that hang, until the value is dropped, and the answers of those that were refused immediately.
async fn flood(gateway: &TestGateway, apis: &[Api], each: usize) -> (JoinSet<()>, Vec<Answer>) {
    let (sender, mut answers) = tokio::sync::mpsc::unbounded_channel();
    let mut hanging = JoinSet::new();
    for api in apis.iter().flat_map(|api| std::iter::repeat_n(api, each)) {
        let (api, sender) = (api.clone(), sender.clone());
        hanging.spawn(async move { _ = sender.send(api.get("/v1/deals").await) });
    }
    let mut refused = Vec::new();
    eventually("every request hangs or is refused", async || {
        while let Ok(answer) = answers.try_recv() {
            refused.push(answer);
        }
        refused.len() + gateway.app.concurrency.in_flight("crm") == apis.len() * each
    })
    .await;
    (hanging, refused)
}

#[tokio::test]
async fn a_service_that_hangs_and_is_flooded_leaves_the_others_alone() {
    let (_mesh, hanging, gateway, apis) = with_crm_hanging(4).await;
    let (_flood, refused) = flood(&gateway, &apis, 20).await;
    assert!(refused.len() >= 80 - PERMITS_OF_ONE, "{}", refused.len());
    for answer in &refused {
        assert!(matches!(answer.status.as_u16(), 429 | 503), "{}", answer.status);
        assert_eq!(answer.header("retry-after"), Some("1"));
    }
    for path in ["/v1/clients", "/v1/notes", "/v1/invoices"] {
        for _ in 0..20 {
            let answers = futures::future::join_all(apis.iter().map(|api| api.get(path))).await;
            assert!(answers.iter().all(|answer| answer.status == 200), "{path}");
        }
    }
    eventually("all calls have arrived", async || {
        hanging.calls.load(Ordering::Relaxed) == gateway.app.concurrency.in_flight("crm")
    })
    .await;
    assert!(hanging.calls.load(Ordering::Relaxed) <= PERMITS_OF_ONE, "nothing is called twice");
}

#[tokio::test]
async fn an_account_that_floods_a_service_leaves_permits_for_others() {
    let (_mesh, _hanging, gateway, apis) = with_crm_hanging(2).await;
    let (_flood, refused) = flood(&gateway, &apis[..1], 60).await;
    assert!(refused.iter().all(|answer| answer.status == 429 && answer.at("/code") == "rate_limited"));
    let in_flight = gateway.app.concurrency.in_flight("crm");
    assert!(in_flight < PERMITS_OF_ONE, "{in_flight}");
    let other = apis[1].clone();
    let _hanging = tokio::spawn(async move { other.get("/v1/deals").await });
    eventually("the other account gets a permit", async || {
        gateway.app.concurrency.in_flight("crm") == in_flight + 1
    })
    .await;
}
