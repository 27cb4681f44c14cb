//! Chains of flows that trigger one another are bounded, in whatever way they do.

use chassis_testing::{TestCaller, eventually, undelivered};
use gateway::testing::Api;
use proptest::collection::vec;
use proptest::sample::subsequence;
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::TestRunner;
use proto::automation::ApplyFlowRequest;
use proto::automation::flow_service_client::FlowServiceClient;
use serde_json::{Value, json};

use crate::working_mesh::WorkingMesh;

/// What starts a flow, and what a flow does that starts another: a request to our own trigger, a client, and a
/// subscription, which makes an invoice when nobody calls.
const LINKS: [&str; 4] = ["chain.a", "chain.b", "client", "subscription"];

/// For each of the links, which ones its flows lead to.
type Graph = Vec<Vec<usize>>;

/// A flow from one link to another. `request` is the one to our own trigger, but for the event.
fn flow(from: usize, to: usize, request: &Value, client: &str) -> String {
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
        custom => {
            let mut request = request.clone();
            request["body"] = json!({"event": custom});
            format!("http: {request}")
        }
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

/// Starts the first link of a graph in an account of its own, so that the flows of others are not in the way.
async fn start(mesh: &WorkingMesh, graph: &Graph) {
    let account = mesh.gateway.account(&format!("Account {}", mesh.clock.id())).await;
    let scopes = ["relations.read", "relations.write", "automation.read", "automation.write"];
    let api: Api = mesh.gateway.api(&account, &scopes).await;
    let client = api.post("/v1/clients", json!({"company_name": "Bakery"})).await.expect(201).at("/data/id");
    // The event of this client must not start a flow.
    until_delivered(mesh).await;
    let request = json!({
        "url": format!("http://{}/v1/automation/trigger", mesh.gateway.address),
        "headers": {"authorization": format!("Bearer {}", api.key())},
    });
    let (mut flows, caller) =
        (FlowServiceClient::new(mesh.automation.channel()), TestCaller::mesh(&account, &mesh.clock));
    for (from, targets) in graph.iter().enumerate() {
        for to in targets {
            let definition = flow(from, *to, &request, client.as_str().unwrap());
            let request = caller.request(ApplyFlowRequest { definition, active: Some(true) });
            flows.apply_flow(request).await.unwrap();
        }
    }
    api.post("/v1/automation/trigger", json!({"event": LINKS[0]})).await.expect(200);
}

async fn until_delivered(mesh: &WorkingMesh) {
    for service in ["relations", "billing"] {
        eventually("every event is delivered", async || undelivered(&mesh.database, service).await == 0)
            .await;
    }
}

#[tokio::test]
async fn every_chain_of_flows_comes_to_an_end() {
    let mesh = WorkingMesh::start(&[]).await;
    // In circles of one, three and one after the other over every link; then as it comes.
    let circles = [[0, 1, 2, 3], [2, 1, 3, 0], [3, 1, 2, 3]];
    let circles = circles.map(|targets| targets.into_iter().map(|to| vec![to]).collect::<Graph>());
    let mut all = 0;
    for graph in circles.into_iter().chain(graphs().take(3)) {
        start(&mesh, &graph).await;
        all += expected(&graph, 0, 0);
        let ended = "select count(*) from automation.run where finished_at is not null";
        eventually(&format!("{graph:?} has come to its end"), async || mesh.count(ended).await >= all).await;
    }
    until_delivered(&mesh).await;
    let open = "select count(*) from automation.run where finished_at is null";
    assert_eq!(mesh.count(open).await, 0, "nothing is left to do");
    assert_eq!(mesh.count("select count(*) from automation.run").await, all);
    assert_eq!(mesh.count("select max(depth)::bigint from automation.run").await, 9);
    let odd = "select count(*) from automation.run where status <> 'success' \
               and (depth < 9 or error not like 'Not started: 9 runs in a row%')";
    assert_eq!(mesh.count(odd).await, 0, "each run went well but for those at the end");
}
