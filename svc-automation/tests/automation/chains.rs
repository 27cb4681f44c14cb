//! Chains of flows that trigger one another are bounded, in whatever way they do.

use axum::Router;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use chassis_rpc::call::AUTOMATION_DEPTH;
use chassis_service::Service as _;
use chassis_testing::{Started, TestCaller, eventually};
use proptest::collection::vec;
use proptest::sample::subsequence;
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::TestRunner;
use proto::automation::trigger_service_client::TriggerServiceClient;
use proto::automation::{TriggerInput, TriggerRequest};
use serde_json::{Value, json};
use svc_automation::Automation;
use svc_billing::Billing;
use svc_relations::Relations;
use tempfile::TempDir;
use tonic::transport::Channel;

use crate::support::{Receiver, World};

/// Our own address: takes triggers as the gateway does, with the depth that a request says.
async fn gateway(world: &World) -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let state = (world.triggers(), world.caller.clone());
    let app = Router::new().route("/{event}", axum::routing::post(trigger)).with_state(state);
    tokio::spawn(async move { axum::serve(listener, app).await });
    url
}

async fn trigger(
    State((mut triggers, caller)): State<(TriggerServiceClient<Channel>, TestCaller)>,
    Path(event): Path<String>,
    headers: HeaderMap,
) -> StatusCode {
    let depth = headers[AUTOMATION_DEPTH].to_str().unwrap().parse().unwrap();
    let trigger = TriggerInput { event, data: "{}".into(), ..TriggerInput::default() };
    triggers.trigger(caller.request_at(depth, TriggerRequest { trigger: Some(trigger) })).await.unwrap();
    StatusCode::ACCEPTED
}

/// Relations and billing, which deliver their events to automation, and automation, which calls them.
struct Mesh {
    _relations: Started,
    billing: Started,
    _automation: Started,
    _files: TempDir,
}

async fn connected(world: &World) -> Mesh {
    let (url, clock, files) = (world.database.url(), &world.clock, tempfile::tempdir().unwrap());
    chassis_data::migrations::migrate(url, Billing::NAME, Billing::migrations()).await.unwrap();
    let listener = format!("automation={}", world.service.as_ref().unwrap().url());
    let relations =
        chassis_testing::start_working::<Relations>(url, clock, &["--listeners", &listener]).await;
    let peers = format!("relations={}", relations.url());
    let folder = files.path().display().to_string();
    let flags = ["--listeners", &listener, "--peers", &peers, "--files-dir", &folder];
    let billing = chassis_testing::start_working::<Billing>(url, clock, &flags).await;
    let peers = format!("{peers},billing={}", billing.url());
    let flags = ["--peers", &peers, "--allow-private-networks"];
    let automation = chassis_testing::start_working::<Automation>(url, clock, &flags).await;
    Mesh { _relations: relations, billing, _automation: automation, _files: files }
}

/// What starts a flow, and what a flow does that starts another: a request to our own trigger, a client, and a
/// subscription, which makes an invoice when nobody calls.
const LINKS: [&str; 4] = ["chain.a", "chain.b", "client", "subscription"];

/// For each of the links, which ones its flows lead to.
type Graph = Vec<Vec<usize>>;

fn flow(from: usize, to: usize, gateway: &str, client: &str) -> String {
    let trigger = match LINKS[from] {
        "client" => "event: customer.created".to_owned(),
        "subscription" => "event: invoice.created".to_owned(),
        custom => format!("custom: {custom}"),
    };
    let call = |method: &str, with: &Value| format!("call: {{method: admin.{method}, with: {with}}}");
    let step = match LINKS[to] {
        "client" => {
            let next = json!({"client": {"company_name": "Next"}});
            call("relations.v1.ClientService/CreateClient", &next)
        }
        "subscription" => {
            let lines = json!([{"title": "Server", "unit_price": "10", "vat_code": "VAT0"}]);
            let next = json!({"client_id": client, "subscription_start": "2026-11-15", "lines": lines});
            call("billing.v1.SubscriptionService/CreateSubscription", &json!({"subscription": next}))
        }
        custom => format!("http: {{url: '{gateway}/{custom}', body: {{}}}}"),
    };
    format!("{{name: From {from} to {to}, trigger: {{{trigger}}}, steps: [{{id: lead, {step}}}]}}")
}

/// How many runs a link starts to which so many runs in a row have led: each leads on, up to the ninth in a row, which is
/// kept and not started.
fn expected(graph: &Graph, link: usize, depth: u32) -> i64 {
    graph[link].iter().map(|to| 1 + if depth < 8 { expected(graph, *to, depth + 1) } else { 0 }).sum()
}

/// Random graphs, with circles, and with no more runs than a test has time for.
fn graphs() -> impl Iterator<Item = Graph> {
    let mut chance = TestRunner::deterministic();
    let targets = subsequence((0..LINKS.len()).collect::<Vec<_>>(), 0..=2);
    let graphs = vec(targets, LINKS.len());
    let made = std::iter::repeat_with(move || graphs.new_tree(&mut chance).unwrap().current());
    made.filter(|graph| (9..=24).contains(&expected(graph, 0, 0)))
}

#[tokio::test]
async fn every_chain_of_flows_comes_to_an_end() {
    let mut world = World::idle().await;
    let mesh = connected(&world).await;
    // In circles of one, three and one after the other over every link; then as it comes.
    let circles = [[0, 1, 2, 3], [2, 1, 3, 0], [3, 1, 2, 3]];
    let circles = circles.map(|targets| targets.into_iter().map(|to| vec![to]).collect::<Graph>());
    let mut all = 0;
    for graph in circles.into_iter().chain(graphs().take(3)) {
        // Another account each time, so that the flows of the others are not in the way.
        world.account = chassis_testing::account();
        world.caller = TestCaller::mesh(&world.account, &world.clock);
        world.provision_at(mesh.billing.channel()).await;
        let client = world.client().await;
        let gateway = gateway(&world).await;
        for (from, targets) in graph.iter().enumerate() {
            for to in targets {
                world.apply(&flow(from, *to, &gateway, &client)).await;
            }
        }
        world.fire(LINKS[0], &json!({})).await;
        all += expected(&graph, 0, 0);
        let ended = "select count(*) from automation.run where finished_at is not null";
        eventually(&format!("{graph:?} has come to its end"), async || world.count(ended).await >= all).await;
    }
    let undelivered = "select count(*) from (select id from relations.outbox union all select id from billing.outbox) waiting";
    eventually("every event is delivered", async || world.count(undelivered).await == 0).await;
    let open = "select count(*) from automation.run where finished_at is null";
    assert_eq!(world.count(open).await, 0, "nothing is left to do");
    assert_eq!(world.count("select count(*) from automation.run").await, all);
    assert_eq!(world.count("select max(depth)::bigint from automation.run").await, 9);
    let odd = "select count(*) from automation.run where status <> 'success' \
               and (depth < 9 or error not like 'Not started: 9 runs in a row%')";
    assert_eq!(world.count(odd).await, 0, "each run went well but for those at the end");
}

#[tokio::test]
async fn a_webhook_carries_the_depth_of_its_event_and_ends_with_it() {
    let (world, receiver) = (World::working().await, Receiver::start().await);
    let endpoint = proto::automation::CreateWebhookEndpointRequest {
        endpoint: Some(proto::automation::WebhookEndpointInput {
            url: receiver.url.clone(),
            ..proto::automation::WebhookEndpointInput::default()
        }),
    };
    world.webhooks().create_webhook_endpoint(world.caller.request(endpoint)).await.unwrap();
    for depth in [0, 7, 8] {
        let trigger = TriggerInput { event: "a.b".into(), data: "{}".into(), ..TriggerInput::default() };
        let request = world.caller.request_at(depth, TriggerRequest { trigger: Some(trigger) });
        world.triggers().trigger(request).await.unwrap();
    }
    let ended = "select count(*) from automation.webhook_delivery where status = 'failed' and error like 'Not delivered%'";
    eventually("the last was not delivered", async || world.count(ended).await == 1).await;
    receiver.until_got(2).await;
    let mut depths: Vec<String> =
        receiver.got().iter().map(|got| got.header(AUTOMATION_DEPTH).to_owned()).collect();
    depths.sort();
    assert_eq!(depths, ["1", "8"]);
}
