//! The service as a real process that is killed repeatedly while invoices are paid online: between a command and its
//! outcome, between the provider's work and the record of it, anywhere.

#![allow(clippy::unwrap_used, reason = "a test stops where its fact is false")]

mod ready;

use std::sync::Arc;

use chassis_base::Clock;
use chassis_service::Service;
use chassis_testing::{Process, TestDatabase, eventually, quiet_port};
use gateway::testing::{Api, TestGateway};
use http::Method;
use ready::until_ready;
use serde_json::json;
use svc_billing::Billing;
use svc_relations::Relations;
use tokio::sync::watch;

const INVOICES: usize = 24;
const KILLS: usize = 5;
const PAYERS: usize = 6;

/// Sends a form until it is answered with a redirect, as a payer does who tries again.
async fn press(visitor: &Api, path: &str, form: &str) -> String {
    let headers = [("content-type", "application/x-www-form-urlencoded"), ("sec-fetch-site", "same-origin")];
    for _ in 0..2_000 {
        let Ok(answer) = visitor.try_send(Method::POST, path, &headers, form.to_owned()).await else {
            continue;
        };
        match answer.status.as_u16() {
            303 => return answer.header("location").unwrap().to_owned(),
            503 | 504 => {}
            status => panic!("{status}: {}", String::from_utf8_lossy(&answer.body)),
        }
    }
    panic!("the service never came back")
}

/// Pays an invoice on its page, however often the service is killed meanwhile.
async fn pay(visitor: &Api, page: &str) {
    for _ in 0..100 {
        let leads = press(visitor, &format!("{page}/pay"), "").await;
        if leads == page {
            return;
        }
        press(visitor, &leads, "act=authorise").await;
    }
    panic!("{page} was never paid")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_service_records_every_payment_once() {
    let database = TestDatabase::new(&[
        (gateway::NAME, &gateway::MIGRATIONS),
        ("relations", Relations::migrations()),
        ("billing", Billing::migrations()),
    ])
    .await;
    let clock = Clock::system();
    let relations = chassis_testing::start::<Relations>(database.url(), &clock).await;
    let (files, address) = (tempfile::tempdir().unwrap(), quiet_port());
    let peers = [format!("relations={}", relations.url()), format!("billing=http://{address}")];
    let folder = files.path().to_str().unwrap();
    let flags = ["--database-url", database.url(), "--peers", &peers[0], "--files-dir", folder];
    let flags = [&flags[..], &["--deadline-ms", "120000"]].concat();
    let mut process = Process::start(env!("CARGO_BIN_EXE_svc-billing"), address, &flags);
    let flags = ["--rate-per-minute", "0", "--public-rate-per-minute", "0", "--deadline-ms", "120000"];
    let gateway = TestGateway::start(&database, &clock, &peers, &flags).await;
    until_ready(&gateway).await;
    let account = gateway.account("Bakery").await;
    let api = gateway.api(&account, &["relations.write", "invoices.read", "invoices.write"]).await;
    let client = api.post("/v1/clients", json!({"company_name": "C"})).await.expect(201).at("/data/id");
    let mut pages = Vec::new();
    for _ in 0..INVOICES {
        let body = json!({"title": "T", "client_id": client, "generation_mode": "final",
                          "rows": [{"name": "R", "unit_price": 4}]});
        let url = api.post("/v1/invoices", body).await.expect(201).at("/data/web_url");
        let url = url.as_str().unwrap();
        pages.push(url[url.find("/documents/").unwrap()..].to_owned());
    }

    let (done, mut progress) = watch::channel(0);
    let (done, pages) = (Arc::new(done), Arc::new(pages));
    let payers: Vec<_> = (0..PAYERS)
        .map(|payer| {
            let (visitor, done, pages) = (gateway.api_with(""), Arc::clone(&done), Arc::clone(&pages));
            tokio::spawn(async move {
                for page in pages.iter().skip(payer).step_by(PAYERS) {
                    pay(&visitor, page).await;
                    done.send_modify(|count| *count += 1);
                }
            })
        })
        .collect();
    for round in 1..=KILLS {
        progress.wait_for(|count| *count >= round * INVOICES / (KILLS + 2)).await.unwrap();
        process.kill_and_restart();
    }
    for payer in payers {
        payer.await.unwrap();
    }
    let all = i64::try_from(INVOICES).unwrap();
    let paid = "select count(*) from billing.document where payment_status = 'paid' and overpaid_amount = 0";
    eventually("all are paid", async || {
        sqlx::query_scalar::<_, i64>(paid).fetch_one(&mut database.connect().await).await.unwrap() == all
    })
    .await;
    let counted: (i64, i64, i64) = sqlx::query_as(
        "select (select count(*) from billing.sandbox_payment where status = 'paid'),
                (select count(*) from billing.online_payment where status = 'paid'),
                (select count(*) from billing.payment where status = 'paid')",
    )
    .fetch_one(&mut database.connect().await)
    .await
    .unwrap();
    assert_eq!(counted, (all, all, all), "the provider, we and the invoices agree: each was paid once");
}
