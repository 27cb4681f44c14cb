//! Nothing feeds itself: flows that lead to one another come to an end, whichever way they do.

use axum::Router;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use chassis::call::AUTOMATION_DEPTH;
use chassis::testing::{self, Started, TestCaller, eventually};
use proto::automation::trigger_service_client::TriggerServiceClient;
use proto::automation::{TriggerInput, TriggerRequest};
use serde_json::json;
use svc_automation::Automation;
use svc_relations::Relations;
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

/// Relations that tells automation of its clients, and automation that calls it.
async fn connected(world: &World) -> (Started, Started) {
    let listener = format!("automation={}", world.service.as_ref().unwrap().url());
    let relations =
        testing::start_working::<Relations>(world.database.url(), &world.clock, &["--listeners", &listener])
            .await;
    let peers = format!("relations={}", relations.url());
    let flags = ["--peers", &peers, "--allow-private-networks"];
    let automation = testing::start_working::<Automation>(world.database.url(), &world.clock, &flags).await;
    (relations, automation)
}

/// What starts a flow, and what a flow does that starts another.
const LINKS: [&str; 3] = ["chain.a", "chain.b", "client"];

fn flow(from: usize, to: usize, gateway: &str) -> String {
    let trigger =
        if from == 2 { "event: customer.created".to_owned() } else { format!("custom: {}", LINKS[from]) };
    let step = if to == 2 {
        "call: {method: admin.relations.v1.ClientService/CreateClient, with: {client: {company_name: Next}}}"
            .to_owned()
    } else {
        format!("http: {{url: '{gateway}/{}', body: {{}}}}", LINKS[to])
    };
    format!("{{name: From {from}, trigger: {{{trigger}}}, steps: [{{id: lead, {step}}}]}}")
}

#[tokio::test]
async fn every_chain_of_flows_comes_to_an_end() {
    let world = World::idle().await;
    let _both = connected(&world).await;
    let gateway = gateway(&world).await;
    // Which of the links each one leads to: in circles of one, two and three, over requests, calls and events.
    let chains = [[0, 1, 2], [1, 0, 2], [2, 1, 0], [1, 2, 0], [2, 2, 2]];
    let failed = "select count(*) from automation.run where status = 'failed' and error like 'Not started: 9 runs in a row%'";
    for (number, chain) in (1_i64..).zip(chains) {
        for (from, to) in chain.into_iter().enumerate() {
            world.apply(&flow(from, to, &gateway)).await;
        }
        world.fire(LINKS[0], &json!({})).await;
        eventually("the chain has come to its end", async || world.count(failed).await == number).await;
    }
    let open = "select count(*) from automation.run where finished_at is null";
    eventually("every run has come to its end", async || world.count(open).await == 0).await;
    let runs = world.count("select count(*) from automation.run").await;
    assert_eq!(runs, 9 * 5, "eight runs, and one that was not started, for each");
    assert_eq!(world.count("select max(depth)::bigint from automation.run").await, 9);
    let marked = "select count(*) from relations.caused where depth between 1 and 8";
    assert_eq!(world.count(marked).await, world.clients().await, "what flows make is known");
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
