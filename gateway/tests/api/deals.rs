//! A client accepts a quote, and the client's deal tells so: billing, its relay and crm together.

use chassis_service::Service;
use chassis_testing::{TestDatabase, eventually};
use gateway::testing::TestGateway;
use serde_json::json;
use svc_billing::Billing;
use svc_crm::Crm;
use svc_relations::Relations;

/// Making a PDF takes long without optimisation, and longer beside other tests.
const DEADLINE: [&str; 2] = ["--deadline-ms", "120000"];
const SCOPES: [&str; 6] =
    ["relations.read", "relations.write", "invoices.read", "invoices.write", "deals.read", "deals.write"];

#[tokio::test]
async fn an_accepted_quote_reaches_the_only_open_deal_of_its_client() {
    let database = TestDatabase::new(&[
        ("gateway", &gateway::MIGRATIONS),
        ("relations", Relations::migrations()),
        ("billing", Billing::migrations()),
        ("crm", Crm::migrations()),
    ])
    .await;
    let (clock, files) = (chassis_testing::clock(), tempfile::tempdir().unwrap());
    let relations = chassis_testing::start::<Relations>(database.url(), &clock).await;
    let peer = format!("relations={}", relations.url());
    let crm = chassis_testing::start_with::<Crm>(database.url(), &clock, &["--peers", &peer]).await;
    let listener = format!("crm={};quote.accepted", crm.url());
    let flags = ["--peers", &peer, "--files-dir", files.path().to_str().unwrap(), "--listeners", &listener];
    let flags = [&flags[..], &DEADLINE].concat();
    let billing = chassis_testing::start_working::<Billing>(database.url(), &clock, &flags).await;
    let peers = [peer.clone(), format!("billing={}", billing.url()), format!("crm={}", crm.url())];
    // Who waits asks often.
    let gateway_flags = [&["--rate-per-minute", "0"][..], &DEADLINE].concat();
    let gateway = TestGateway::start(&database, &clock, &peers, &gateway_flags).await;
    let account = gateway.account("Bakery").await;
    let api = gateway.api(&account, &SCOPES).await;

    let client = api.post("/v1/clients", json!({"company_name": "Mill"})).await.expect(201).at("/data/id");
    let deal = json!({"title": "Ovens", "client_id": client});
    let deal = api.post("/v1/deals", deal).await.expect(201).at("/data/id");
    let quote = json!({"title": "Ovens", "client_id": client, "rows": [{"name": "Oven", "unit_price": 5}]});
    let quote = api.post("/v1/quotes", quote).await.expect(201).at("/data/id");
    api.post(&format!("/v1/quotes/{}/accept", quote.as_str().unwrap()), json!({})).await.expect(200);

    let path = format!("/v1/deals/{}", deal.as_str().unwrap());
    eventually("the deal tells of the quote", async || {
        let history = api.get(&path).await.expect(200).at("/data/meta/history");
        history.as_array().unwrap().last().unwrap()["accepted_quote_id"] == quote
    })
    .await;
}
