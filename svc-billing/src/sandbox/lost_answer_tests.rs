//! The processor with a provider whose answers get lost, that cannot be reached, or that refuses: each command is
//! carried out once all the same. These tests stand here because they use the sandbox as the provider.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use chassis_base::{Account, Clock};
use chassis_rpc::Context;
use chassis_service::Service;
use chassis_testing::{Started, TestDatabase, eventually, timing};
use chassis_work::worker::Workers;
use chrono::{DateTime, TimeDelta, Utc};
use gateway::testing::{Api, TestGateway};
use proto::billing::PayOnPageRequest;
use provider::{Fault, IdempotencyKey, Mandate, NewCustomer, NewPayment, Payment, Provider, Refund, Webhook};
use rust_decimal::Decimal;
use serde_json::{Value, json};
use sqlx::PgConnection;
use svc_relations::Relations;

use crate::document::{Full, Kind, store as documents};
use crate::processor::{self, Checkout, PaymentProcessor, ProviderAccess};
use crate::sandbox::Sandbox;
use crate::{Billing, clients};

/// What goes wrong with a call that creates or changes something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum InjectedFault {
    /// The call is carried out, and its answer is lost.
    AnswerLost,
    /// Nothing is done.
    Unreachable,
    Refused,
}

/// The sandbox behind a bad connection.
struct Faulty {
    inner: Sandbox,
    /// The faults of the next calls, in their order.
    injected: Mutex<VecDeque<InjectedFault>>,
    /// Whether it is unreachable for every call after those.
    unreachable: Mutex<bool>,
}

impl Faulty {
    async fn through<T>(&self, call: impl Future<Output = Result<T, Fault>>) -> Result<T, Fault> {
        let next = self.injected.lock().unwrap().pop_front();
        let unreachable = *self.unreachable.lock().unwrap();
        let detail = "as the test says".to_owned();
        match next.or(unreachable.then_some(InjectedFault::Unreachable)) {
            None => call.await,
            Some(InjectedFault::Unreachable) => Err(Fault::Unavailable { detail, retry_after: Some(1) }),
            Some(InjectedFault::Refused) => Err(Fault::Refused { detail, field: None }),
            Some(InjectedFault::AnswerLost) => {
                call.await?;
                Err(Fault::OutcomeUnknown { detail })
            }
        }
    }
}

#[tonic::async_trait]
impl Provider for Faulty {
    fn name(&self) -> &'static str {
        self.inner.name()
    }
    async fn create_customer(&self, key: &IdempotencyKey, customer: &NewCustomer) -> Result<String, Fault> {
        self.through(self.inner.create_customer(key, customer)).await
    }
    async fn create_payment(&self, key: &IdempotencyKey, payment: &NewPayment) -> Result<Payment, Fault> {
        self.through(self.inner.create_payment(key, payment)).await
    }
    async fn find_payment(&self, id: &str) -> Result<Option<Payment>, Fault> {
        self.inner.find_payment(id).await
    }
    async fn find_payment_by_reference(
        &self,
        ours: &str,
        since: DateTime<Utc>,
    ) -> Result<Option<Payment>, Fault> {
        self.inner.find_payment_by_reference(ours, since).await
    }
    async fn cancel_payment(&self, key: &IdempotencyKey, id: &str) -> Result<Option<Payment>, Fault> {
        self.through(self.inner.cancel_payment(key, id)).await
    }
    async fn list_mandates(&self, customer: &str) -> Result<Vec<Mandate>, Fault> {
        self.inner.list_mandates(customer).await
    }
    async fn create_refund(
        &self,
        key: &IdempotencyKey,
        payment: &str,
        amount: Decimal,
    ) -> Result<Refund, Fault> {
        self.through(self.inner.create_refund(key, payment, amount)).await
    }
    fn verify_webhook(&self, message: &Webhook<'_>) -> Result<Option<String>, Fault> {
        self.inner.verify_webhook(message)
    }
}

struct World {
    database: TestDatabase,
    clock: Clock,
    api: Api,
    account: Account,
    faulty: Arc<Faulty>,
    processor: Arc<PaymentProcessor>,
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
        let db = billing.runtime.db.clone();
        let base: Arc<str> = "http://here".into();
        let inner = Sandbox { db: db.clone(), base: Arc::clone(&base) };
        let faulty = Arc::new(Faulty { inner, injected: Mutex::default(), unreachable: Mutex::default() });
        let provider: Arc<dyn Provider> = Arc::clone(&faulty) as Arc<dyn Provider>;
        let clients = clients::Clients { outgoing: billing.runtime.outgoing() };
        let access = ProviderAccess::OptIn { default: true };
        let processor = Arc::new(PaymentProcessor { db, provider, access, clients, base });
        let invoice = invoice.as_str().unwrap().to_owned();
        Self {
            database,
            clock,
            api,
            account,
            faulty,
            processor,
            invoice,
            billing,
            _relations: relations,
            _gateway: gateway,
            _files: files,
        }
    }

    fn inject(&self, faults: &[InjectedFault]) {
        *self.faulty.injected.lock().unwrap() = faults.iter().copied().collect();
    }

    fn work(&self) -> Workers {
        Workers::start(
            &self.billing.runtime.db,
            vec![processor::worker(Arc::clone(&self.processor))],
            timing(),
        )
    }

    /// Presses the pay button on the page of the invoice.
    async fn press(&self) -> Result<Option<String>, tonic::Status> {
        let runtime = &self.billing.runtime;
        let context = Context::internal(&self.account, "test", "test", &self.clock);
        let (account, id) = (self.account.id, self.invoice.parse().unwrap());
        let find = async |connection: &mut PgConnection| {
            documents::find(connection, account, Kind::Invoice, id).await
        };
        let full: Full = runtime.db.read(find).await.unwrap().unwrap();
        let input = PayOnPageRequest { token: String::new() };
        let checkout = Checkout { invoice: &full.record, page: "http://here/page".to_owned() };
        self.processor.checkout(&context, &input, checkout).await
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

    /// Advances the clock until the payments of the invoice have these statuses.
    async fn until(&self, statuses: &[&str]) {
        eventually(&format!("{statuses:?}"), async || {
            self.clock.advance(TimeDelta::seconds(1));
            self.statuses().await == statuses
        })
        .await;
    }

    /// The payer pays in the sandbox, and no webhook is sent.
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
    world.inject(&[InjectedFault::AnswerLost, InjectedFault::AnswerLost]);
    assert_eq!(world.press().await.unwrap_err().code(), tonic::Code::Unavailable);
    assert_eq!(world.statuses().await, ["created"]);
    // The second answer is lost too; the search by reference finds the payment.
    let leads = world.press().await.unwrap().unwrap();
    assert!(leads.starts_with("/sandbox/checkouts/"), "{leads}");
    assert_eq!(world.count(MADE).await, 1);
    assert_eq!(world.statuses().await, ["open"]);
}

#[tokio::test]
async fn a_payment_whose_answer_got_lost_is_found_again_by_the_worker() {
    let world = World::start().await;
    world.inject(&[InjectedFault::AnswerLost, InjectedFault::AnswerLost]);
    world.press().await.unwrap_err();
    let _workers = world.work();
    world.until(&["open"]).await;
    assert_eq!(world.count(MADE).await, 1);
}

#[tokio::test]
async fn an_unreachable_provider_is_called_again_and_not_for_ever() {
    let world = World::start().await;
    *world.faulty.unreachable.lock().unwrap() = true;
    assert_eq!(world.press().await.unwrap_err().code(), tonic::Code::Unavailable);
    let _workers = world.work();
    let attempts = "select coalesce(max(attempts), 99)::bigint from billing.wish where kind = 'payment'";
    eventually("some attempts", async || {
        world.clock.advance(TimeDelta::seconds(1));
        world.count(attempts).await >= 2
    })
    .await;
    assert_eq!(world.statuses().await, ["created"]);
    // No payer waits for a checkout any more.
    world.clock.advance(TimeDelta::minutes(61));
    world.until(&["failed"]).await;
    assert_eq!(world.count(MADE).await, 0);
    *world.faulty.unreachable.lock().unwrap() = false;
    assert!(world.press().await.unwrap().is_some(), "the invoice can be paid after all");
    assert_eq!(world.statuses().await, ["failed", "open"]);
}

#[tokio::test]
async fn a_payment_that_the_provider_refuses_has_failed() {
    let world = World::start().await;
    world.inject(&[InjectedFault::Refused]);
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
    // The answers to the cancellation, which the other payment caused, and to the refund are lost.
    world.inject(&[InjectedFault::AnswerLost, InjectedFault::AnswerLost]);
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
    world.inject(&[InjectedFault::AnswerLost]);
    let leads = world.press().await.unwrap();
    assert!(leads.is_some(), "canceled, and a new one made");
    assert_eq!(world.statuses().await, ["canceled", "paid", "open"]);
    let open = "select sum(amount)::bigint from billing.sandbox_payment where status = 'open'";
    assert_eq!(world.count(open).await, 100);
}
