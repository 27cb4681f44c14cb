//! A gateway with relations and billing behind it, an account with a client, and helpers for what the tests do.

use chassis_base::{Account, Clock};
use chassis_service::Service;
use chassis_testing::{Started, TestCaller, TestDatabase};
use gateway::testing::{Answer, Api, TestGateway};
use http::Method;
use proto::billing::direct_debit_service_client::DirectDebitServiceClient;
use proto::billing::settings_service_client::SettingsServiceClient;
use proto::billing::{
    BillingSettings, CollectInvoiceRequest, CollectInvoiceResponse, GetMandateRequest, Mandate,
    UpdateBillingSettingsRequest,
};
use provider::testing::StandIn;
use serde_json::{Value, json};
use svc_billing::Billing;
use svc_relations::Relations;

const BROWSER: (&str, &str) = ("accept", "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8");
const FORM: (&str, &str) = ("content-type", "application/x-www-form-urlencoded");
const OWN_SITE: (&str, &str) = ("sec-fetch-site", "same-origin");
const SCOPES: &[&str] = &["relations.read", "relations.write", "invoices.read", "invoices.write"];

pub(crate) struct World {
    pub database: TestDatabase,
    pub clock: Clock,
    pub gateway: TestGateway,
    pub account: Account,
    /// A caller with a key of the account.
    pub api: Api,
    /// A caller without a key, as a payer is.
    pub visitor: Api,
    pub client: String,
    flags: Vec<String>,
    billing: Started,
    _files: tempfile::TempDir,
    _relations: Started,
}

impl World {
    /// With background work.
    pub(crate) async fn start() -> Self {
        Self::new(true, &[]).await
    }

    /// With background work, and Mollie as the provider.
    pub(crate) async fn with_mollie(stand_in: &StandIn) -> Self {
        Self::new(true, &flags_of(stand_in, &stand_in.url())).await
    }

    /// The same without background work, and with more settings.
    pub(crate) async fn idle_with_mollie(stand_in: &StandIn, more: &[&str]) -> Self {
        Self::idle_with(&[&flags_of(stand_in, &stand_in.url())[..], more].concat()).await
    }

    /// Without background work: queued commands wait until a call executes them.
    pub(crate) async fn idle() -> Self {
        Self::idle_with(&[]).await
    }

    /// The same with more settings, as flags.
    pub(crate) async fn idle_with(flags: &[&str]) -> Self {
        Self::new(false, flags).await
    }

    async fn new(working: bool, more: &[&str]) -> Self {
        let database = TestDatabase::new(&[
            ("gateway", &gateway::MIGRATIONS),
            ("relations", Relations::migrations()),
            ("billing", Billing::migrations()),
        ])
        .await;
        let clock = chassis_testing::clock();
        let files = tempfile::tempdir().unwrap();
        let relations = chassis_testing::start::<Relations>(database.url(), &clock).await;
        let peer = format!("relations={}", relations.url());
        let folder = files.path().to_str().unwrap();
        let mut flags = vec!["--peers", &peer, "--files-dir", folder, "--deadline-ms", "120000"];
        flags.extend(more);
        let billing = if working {
            chassis_testing::start_working::<Billing>(database.url(), &clock, &flags).await
        } else {
            chassis_testing::start_with::<Billing>(database.url(), &clock, &flags).await
        };
        let peers = [peer.clone(), format!("billing={}", billing.url())];
        let no_limits =
            ["--public-rate-per-minute", "0", "--rate-per-minute", "0", "--deadline-ms", "120000"];
        let gateway = TestGateway::start(&database, &clock, &peers, &no_limits).await;
        let account = gateway.account("Voorbeeld").await;
        let api = gateway.api(&account, SCOPES).await;
        let client = client(&api, "Klant & Zonen").await;
        let visitor = gateway.api_with("");
        let flags = flags.into_iter().map(str::to_owned).collect();
        Self {
            database,
            clock,
            gateway,
            account,
            api,
            visitor,
            client,
            flags,
            billing,
            _files: files,
            _relations: relations,
        }
    }

    /// Another process of billing that does the background work.
    pub(crate) async fn helper(&self) -> Started {
        let flags: Vec<&str> = self.flags.iter().map(String::as_str).collect();
        chassis_testing::start_working::<Billing>(self.database.url(), &self.clock, &flags).await
    }

    /// Calls billing itself.
    pub(crate) fn channel(&self) -> tonic::transport::Channel {
        self.billing.channel()
    }

    /// A final invoice of 1,210.00, or as `more` says.
    pub(crate) async fn invoice(&self, more: Value) -> Invoice {
        let mut body = json!({
            "title": "Brood voor november",
            "client_id": self.client,
            "generation_mode": "final",
            "rows": [{"name": "Zuurdesem", "quantity": 10, "unit_price": 100, "vat_rate": "21"}],
        });
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let data = self.api.post("/v1/invoices", body).await.expect(201).at("/data");
        Invoice {
            id: data["id"].as_str().unwrap().to_owned(),
            api: format!("/v1/invoices/{}", data["id"].as_str().unwrap()),
            page: path(data["web_url"].as_str().unwrap()),
        }
    }

    pub(crate) async fn get(&self, invoice: &Invoice) -> Value {
        self.api.get(&invoice.api).await.expect(200).at("/data")
    }

    /// Statuses of the invoice's payments, in the order in which they were added.
    pub(crate) async fn payments(&self, invoice: &Invoice) -> Vec<String> {
        let list = self.api.get(&format!("{}/payments", invoice.api)).await.expect(200).at("/data");
        let status = |payment: &Value| payment["status"].as_str().unwrap().to_owned();
        list.as_array().unwrap().iter().map(status).collect()
    }

    pub(crate) async fn payment(&self, invoice: &Invoice) -> Value {
        self.api.get(&format!("{}/payments", invoice.api)).await.expect(200).at("/data/0")
    }

    /// The entries about payments in the history of the invoice, oldest first.
    pub(crate) async fn history(&self, invoice: &Invoice) -> Vec<String> {
        let history = self.get(invoice).await["meta"]["history"].clone();
        let of_payments = history.as_array().unwrap().iter().rev().filter_map(|entry| {
            let event = entry["event"].as_str().unwrap();
            let status = entry["data"]["status"].as_str().unwrap_or_default();
            event.starts_with("payment_").then(|| format!("{event} {status}"))
        });
        of_payments.collect()
    }

    /// Opens a page as a browser does.
    pub(crate) async fn page(&self, path: &str) -> String {
        text(&self.visitor.send(Method::GET, path, &[BROWSER], "").await.expect(200))
    }

    /// Sends a form as a page does.
    pub(crate) async fn send(&self, path: &str, form: &str) -> Answer {
        self.visitor.send(Method::POST, path, &[BROWSER, FORM, OWN_SITE], form.to_owned()).await
    }

    /// Presses the pay button; returns the path that it leads to.
    pub(crate) async fn pay(&self, invoice: &Invoice) -> String {
        let answer = self.send(&format!("{}/pay", invoice.page), "").await.expect(303);
        answer.header("location").unwrap().to_owned()
    }

    /// Presses a button in the sandbox; returns the path that it leads to.
    pub(crate) async fn act(&self, checkout: &str, act: &str) -> String {
        let answer = self.send(checkout, &format!("act={act}")).await.expect(303);
        answer.header("location").unwrap().to_owned()
    }

    /// Asks the client for a mandate.
    pub(crate) async fn verify(&self) -> Value {
        let path = format!("/v1/clients/{}/direct-debit/verification", self.client);
        self.api.post(&path, json!({})).await.expect(201).at("/data")
    }

    pub(crate) async fn mandate(&self) -> Value {
        let path = format!("/v1/clients/{}/direct-debit/mandate", self.client);
        self.api.get(&path).await.expect(200).at("/data")
    }

    /// The mandate as the service shows it, and the images of it in the log, oldest first.
    pub(crate) async fn logged_mandate(&self) -> (Mandate, Vec<Mandate>) {
        let caller = TestCaller::mesh(&self.account, &self.clock);
        let asked = GetMandateRequest { id: self.client.clone(), subscription_id: String::new() };
        let mut debit = DirectDebitServiceClient::new(self.billing.channel());
        let shown = debit.get_mandate(caller.request(asked)).await.unwrap().into_inner().data.unwrap();
        let images: Vec<Vec<u8>> = sqlx::query_scalar(
            "select image from billing.log where account_id = $1 and kind = 'mandate' and record_id = $2 \
             and change is not null order by version",
        )
        .bind(self.account.id)
        .bind(&self.client)
        .fetch_all(&mut self.database.connect().await)
        .await
        .unwrap();
        let decode = |image: Vec<u8>| prost::Message::decode(image.as_slice()).unwrap();
        (shown, images.into_iter().map(decode).collect())
    }

    /// The client gives a mandate; returns the path of its page.
    pub(crate) async fn authorise(&self) -> String {
        let checkout = path(self.verify().await["payment_url"].as_str().unwrap());
        self.act(&checkout, "authorise").await;
        checkout
    }

    /// Sets whether the account may use the sandbox.
    pub(crate) async fn set_sandbox(&self, sandbox_payments: bool) {
        let settings =
            BillingSettings { sandbox_payments: Some(sandbox_payments), ..BillingSettings::default() };
        let paths = vec!["sandbox_payments".to_owned()];
        let update_mask = Some(prost_types::FieldMask { paths });
        let request = UpdateBillingSettingsRequest { settings: Some(settings), update_mask };
        let caller = TestCaller::mesh(&self.account, &self.clock);
        let mut service = SettingsServiceClient::new(self.billing.channel());
        service.update_billing_settings(caller.request(request)).await.unwrap();
    }

    /// Requests the collection of an invoice.
    pub(crate) async fn collect(&self, invoice: &Invoice) -> Result<CollectInvoiceResponse, tonic::Status> {
        let caller = TestCaller::mesh(&self.account, &self.clock);
        let request = caller.request(CollectInvoiceRequest { id: invoice.id.clone() });
        let mut debit = DirectDebitServiceClient::new(self.billing.channel());
        debit.collect_invoice(request).await.map(tonic::Response::into_inner)
    }

    /// Waits until the payments of the invoice have these statuses.
    pub(crate) async fn until(&self, invoice: &Invoice, statuses: &[&str]) {
        let what = format!("payments are {statuses:?}");
        chassis_testing::eventually(&what, async || self.payments(invoice).await == statuses).await;
    }

    pub(crate) async fn count(&self, sql: &'static str) -> i64 {
        sqlx::query_scalar(sql).fetch_one(&mut self.database.connect().await).await.unwrap()
    }
}

fn flags_of<'a>(stand_in: &StandIn, url: &'a str) -> [&'a str; 6] {
    ["--mollie-api-key", stand_in.api_key(), "--mollie-api-url", url, "--mollie-timeout-ms", "20000"]
}

/// The id and the paths of an invoice.
pub(crate) struct Invoice {
    pub id: String,
    /// Its path in the API.
    pub api: String,
    /// The path of its page.
    pub page: String,
}

pub(crate) async fn client(api: &Api, name: &str) -> String {
    let input = json!({"type": "company", "company_name": name, "city": "Rotterdam"});
    let client = api.post("/v1/clients", input).await.expect(201);
    client.at("/data/id").as_str().unwrap().to_owned()
}

/// The page of a payment in the sandbox.
pub(crate) fn checkout(payment: &Value) -> String {
    format!("/sandbox/checkouts/{}", payment["external_id"].as_str().unwrap())
}

/// The path of a URL.
pub(crate) fn path(url: &str) -> String {
    let host = url.find("://").unwrap() + 3;
    url[host + url[host..].find('/').unwrap()..].to_owned()
}

pub(crate) fn text(answer: &Answer) -> String {
    String::from_utf8(answer.body.to_vec()).unwrap()
}

/// Asserts that the page contains all of these texts.
#[track_caller]
pub(crate) fn says(page: &str, texts: &[&str]) {
    for text in texts {
        let shown = page.split("</style>").last().unwrap();
        assert!(page.contains(text), "the page does not say {text}:\n{shown}");
    }
}
