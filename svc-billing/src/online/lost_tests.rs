//! A provider whose answers get lost, who is away, or who says no: what was wished for happens once all the same.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use chassis_base::{Account, Clock};
use chassis_rpc::Context;
use chassis_service::Service;
use chassis_testing::{Started, TestDatabase, eventually, timing};
use chassis_work::worker::Workers;
use chrono::{DateTime, TimeDelta, Utc};
use gateway::testing::{Api, TestGateway};
use proto::billing::PayOnPageRequest;
use provider::{Fault, Key, Mandate, NewCustomer, NewPayment, Payment, Provider, Refund, Webhook};
use rust_decimal::Decimal;
use serde_json::{Value, json};
use svc_relations::Relations;

use super::{Till, pay, worker};
use crate::document::store::Full;
use crate::document::{Kind, store as documents};
use crate::sandbox::Sandbox;
use crate::{Billing, clients};

/// What goes wrong with a call that makes or changes something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Trouble {
    /// It is done, and the answer never comes.
    Lost,
    /// Nothing is done.
    Away,
    No,
}

/// The sandbox behind a bad line.
struct Faulty {
    inner: Sandbox,
    /// For the calls to come, in their order.
    troubles: Mutex<VecDeque<Trouble>>,
    /// Whether it is away for every call after those.
    gone: Mutex<bool>,
}

impl Faulty {
    async fn through<T>(&self, call: impl Future<Output = Result<T, Fault>>) -> Result<T, Fault> {
        let next = self.troubles.lock().unwrap().pop_front();
        let gone = *self.gone.lock().unwrap();
        let detail = "as the test says".to_owned();
        match next.or(gone.then_some(Trouble::Away)) {
            None => call.await,
            Some(Trouble::Away) => Err(Fault::Unavailable { detail, retry_after: Some(1) }),
            Some(Trouble::No) => Err(Fault::Refused { detail, field: None }),
            Some(Trouble::Lost) => {
                call.await?;
                Err(Fault::Unknown { detail })
            }
        }
    }
}

#[tonic::async_trait]
impl Provider for Faulty {
    fn name(&self) -> &'static str {
        self.inner.name()
    }
    async fn create_customer(&self, key: &Key, customer: &NewCustomer) -> Result<String, Fault> {
        self.through(self.inner.create_customer(key, customer)).await
    }
    async fn create_payment(&self, key: &Key, payment: &NewPayment) -> Result<Payment, Fault> {
        self.through(self.inner.create_payment(key, payment)).await
    }
    async fn payment(&self, id: &str) -> Result<Option<Payment>, Fault> {
        self.inner.payment(id).await
    }
    async fn find_payment(&self, ours: &str, since: DateTime<Utc>) -> Result<Option<Payment>, Fault> {
        self.inner.find_payment(ours, since).await
    }
    async fn cancel_payment(&self, key: &Key, id: &str) -> Result<Option<Payment>, Fault> {
        self.through(self.inner.cancel_payment(key, id)).await
    }
    async fn mandates(&self, customer: &str) -> Result<Vec<Mandate>, Fault> {
        self.inner.mandates(customer).await
    }
    async fn refund(&self, key: &Key, payment: &str, amount: Decimal) -> Result<Refund, Fault> {
        self.through(self.inner.refund(key, payment, amount)).await
    }
    fn heard(&self, message: &Webhook<'_>) -> Result<Option<String>, Fault> {
        self.inner.heard(message)
    }
}

struct World {
    database: TestDatabase,
    clock: Clock,
    api: Api,
    account: Account,
    faulty: Arc<Faulty>,
    till: Arc<Till>,
    invoice: String,
    billing: Started,
    _relations: Started,
    _gateway: TestGateway,
    _files: tempfile::TempDir,
}

impl World {
    async fn start() -> Self {
        let database = TestDatabase::new(&[
            ("gateway", &gateway::MIGRATIONS),
            ("relations", Relations::migrations()),
            ("billing", Billing::migrations()),
        ])
        .await;
        let (clock, files) = (chassis_testing::clock(), tempfile::tempdir().unwrap());
        let relations = chassis_testing::start::<Relations>(database.url(), &clock).await;
        let peer = format!("relations={}", relations.url());
        let folder = files.path().to_str().unwrap();
        let flags = ["--peers", &peer, "--files-dir", folder, "--deadline-ms", "120000"];
        let billing = chassis_testing::start_with::<Billing>(database.url(), &clock, &flags).await;
        let peers = [peer.clone(), format!("billing={}", billing.url())];
        let flags = ["--deadline-ms", "120000", "--rate-per-minute", "0"];
        let gateway = TestGateway::start(&database, &clock, &peers, &flags).await;
        let account = gateway.account("Voorbeeld").await;
        let scopes = ["relations.write", "invoices.read", "invoices.write"];
        let api = gateway.api(&account, &scopes).await;
        let client =
            api.post("/v1/clients", json!({"company_name": "Klant"})).await.expect(201).at("/data/id");
        let body = json!({"title": "T", "client_id": client, "generation_mode": "final",
                          "rows": [{"name": "R", "unit_price": 100, "vat_rate": "21"}]});
        let invoice = api.post("/v1/invoices", body).await.expect(201).at("/data/id");
        let (db, tokens) = (billing.runtime.db.clone(), billing.runtime.tokens.clone());
        let base: Arc<str> = "http://here".into();
        let inner = Sandbox { db: db.clone(), tokens, base: Arc::clone(&base) };
        let faulty = Arc::new(Faulty { inner, troubles: Mutex::default(), gone: Mutex::default() });
        let provider: Arc<dyn Provider> = Arc::clone(&faulty) as Arc<dyn Provider>;
        let clients = clients::Clients { outgoing: billing.runtime.outgoing() };
        let till = Arc::new(Till { db, provider, clients, base, sandbox_by_default: true });
        let invoice = invoice.as_str().unwrap().to_owned();
        Self {
            database,
            clock,
            api,
            account,
            faulty,
            till,
            invoice,
            billing,
            _relations: relations,
            _gateway: gateway,
            _files: files,
        }
    }

    fn trouble(&self, troubles: &[Trouble]) {
        *self.faulty.troubles.lock().unwrap() = troubles.iter().copied().collect();
    }

    fn work(&self) -> Workers {
        Workers::start(&self.billing.runtime.db, vec![worker(Arc::clone(&self.till))], timing())
    }

    /// Presses the button of the invoice's page.
    async fn press(&self) -> Result<Option<String>, tonic::Status> {
        let runtime = &self.billing.runtime;
        let now = self.clock.now();
        let token = runtime.tokens.to_self().mint_mesh(&self.account, "test", now);
        let context = Context {
            identity: runtime.tokens.verify(&token, now).unwrap(),
            request_id: "test".into(),
            rpc: "test",
            idempotency_key: None,
            carried: Arc::default(),
            deadline: Instant::now() + Duration::from_mins(2),
            clock: self.clock.clone(),
        };
        let full: Full = {
            let mut connection = runtime.db.acquire().await.unwrap();
            let id = self.invoice.parse().unwrap();
            documents::find(&mut connection, self.account.id, Kind::Invoice, id).await.unwrap().unwrap()
        };
        let input = PayOnPageRequest { token: String::new() };
        pay::pay(&self.till, &context, &input, (&full.record, "http://here/page".to_owned())).await
    }

    async fn count(&self, sql: &'static str) -> i64 {
        sqlx::query_scalar(sql).fetch_one(&mut self.database.connect().await).await.unwrap()
    }

    async fn statuses(&self) -> Vec<String> {
        let list =
            self.api.get(&format!("/v1/invoices/{}/payments", self.invoice)).await.expect(200).at("/data");
        let status = |payment: &Value| payment["status"].as_str().unwrap().to_owned();
        list.as_array().unwrap().iter().map(status).collect()
    }

    /// Lets time pass until the invoice's payments are these.
    async fn until(&self, statuses: &[&str]) {
        eventually(&format!("{statuses:?}"), async || {
            self.clock.advance(TimeDelta::seconds(1));
            self.statuses().await == statuses
        })
        .await;
    }

    /// The payer pays in the sandbox, and nobody tells.
    async fn pay_silently(&self) {
        let sql =
            "update billing.sandbox_payment set status = 'paid', paid_at = created_at where status = 'open'";
        sqlx::query(sql).execute(&mut self.database.connect().await).await.unwrap();
    }
}

const MADE: &str = "select count(*) from billing.sandbox_payment";

#[tokio::test]
async fn a_payer_whose_answer_got_lost_presses_again_and_comes_to_the_one_checkout() {
    let world = World::start().await;
    world.trouble(&[Trouble::Lost, Trouble::Lost]);
    assert_eq!(world.press().await.unwrap_err().code(), tonic::Code::Unavailable);
    assert_eq!(world.statuses().await, ["created"]);
    // Lost once more, and then asked about.
    let leads = world.press().await.unwrap().unwrap();
    assert!(leads.starts_with("/sandbox/checkouts/"), "{leads}");
    assert_eq!(world.count(MADE).await, 1);
    assert_eq!(world.statuses().await, ["open"]);
}

#[tokio::test]
async fn a_payment_whose_answer_got_lost_is_found_again_by_the_worker() {
    let world = World::start().await;
    world.trouble(&[Trouble::Lost, Trouble::Lost]);
    world.press().await.unwrap_err();
    let _workers = world.work();
    world.until(&["open"]).await;
    assert_eq!(world.count(MADE).await, 1);
}

#[tokio::test]
async fn a_provider_that_is_away_is_asked_again_and_not_for_ever() {
    let world = World::start().await;
    *world.faulty.gone.lock().unwrap() = true;
    assert_eq!(world.press().await.unwrap_err().code(), tonic::Code::Unavailable);
    let _workers = world.work();
    let attempts = "select coalesce(max(attempts), 99)::bigint from billing.wish where kind = 'payment'";
    eventually("some attempts", async || {
        world.clock.advance(TimeDelta::seconds(1));
        world.count(attempts).await >= 2
    })
    .await;
    assert_eq!(world.statuses().await, ["created"]);
    // Nobody waits for a checkout any more.
    world.clock.advance(TimeDelta::minutes(61));
    world.until(&["failed"]).await;
    assert_eq!(world.count(MADE).await, 0);
    *world.faulty.gone.lock().unwrap() = false;
    assert!(world.press().await.unwrap().is_some(), "the invoice can be paid after all");
    assert_eq!(world.statuses().await, ["failed", "open"]);
}

#[tokio::test]
async fn what_the_provider_refuses_has_failed() {
    let world = World::start().await;
    world.trouble(&[Trouble::No]);
    assert_eq!(world.press().await.unwrap(), None, "back to the page, which tells");
    assert_eq!(world.statuses().await, ["failed"]);
    let payments = format!("/v1/invoices/{}/payments", world.invoice);
    let failure = world.api.get(&payments).await.at("/data/0/meta/feedback_data/failure");
    assert_eq!(failure, "as the test says");
    assert!(world.press().await.unwrap().is_some());
}

#[tokio::test]
async fn a_refund_whose_answer_got_lost_is_made_once() {
    let world = World::start().await;
    world.press().await.unwrap();
    let payments = format!("/v1/invoices/{}/payments", world.invoice);
    world.api.post(&payments, json!({})).await.expect(201);
    world.pay_silently().await;
    // The cancellation that the other payment asked for, then the refund, both without an answer.
    world.trouble(&[Trouble::Lost, Trouble::Lost]);
    let _workers = world.work();
    world.until(&["refunded", "paid"]).await;
    let refunded = "select sum(refunded * 100)::bigint from billing.sandbox_payment";
    assert_eq!(world.count(refunded).await, 12_100, "once, and all of it");
}

#[tokio::test]
async fn a_cancellation_whose_answer_got_lost_does_not_keep_the_payer_waiting() {
    let world = World::start().await;
    world.press().await.unwrap();
    let payments = format!("/v1/invoices/{}/payments", world.invoice);
    world.api.post(&payments, json!({"amount": "21.00"})).await.expect(201);
    world.trouble(&[Trouble::Lost]);
    let leads = world.press().await.unwrap();
    assert!(leads.is_some(), "canceled, and a new one made");
    assert_eq!(world.statuses().await, ["canceled", "paid", "open"]);
    let open = "select sum(amount)::bigint from billing.sandbox_payment where status = 'open'";
    assert_eq!(world.count(open).await, 100);
}
