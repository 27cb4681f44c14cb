//! A gateway with relations and billing behind it, around one database of their own.

use chassis_base::Clock;
use chassis_service::Service;
use chassis_testing::{Started, TestDatabase};
use gateway::testing::{Answer, Api, TestGateway};
use http::Method;
use serde_json::{Value, json};
use svc_billing::Billing;
use svc_relations::Relations;

/// What browsers send.
const BROWSER: (&str, &str) = ("accept", "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8");
const SCOPES: &[&str] = &["relations.read", "relations.write", "invoices.read", "invoices.write"];

pub(crate) struct World {
    pub database: TestDatabase,
    pub clock: Clock,
    pub gateway: TestGateway,
    /// With a key of the account.
    pub api: Api,
    /// Without one, as a visitor.
    pub visitor: Api,
    pub client: String,
    _files: tempfile::TempDir,
    _services: [Started; 2],
}

impl World {
    pub(crate) async fn start() -> Self {
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
        // A listener that is never reached keeps the events where they can be looked at.
        let flags = ["--peers", &peer, "--files-dir", folder, "--listeners", "x=http://127.0.0.1:1"];
        let billing = chassis_testing::start_with::<Billing>(database.url(), &clock, &flags).await;
        let peers = [peer.clone(), format!("billing={}", billing.url())];
        let no_limit = ["--public-rate-per-minute", "0"];
        let gateway = TestGateway::start(&database, &clock, &peers, &no_limit).await;
        let account = gateway.account("Voorbeeld").await;
        let api = gateway.api(&account, SCOPES).await;
        let input = json!({"type": "company", "company_name": "Klant & Zonen", "city": "Rotterdam"});
        let client = api.post("/v1/clients", input).await.expect(201);
        let client = client.at("/data/id").as_str().unwrap().to_owned();
        let visitor = gateway.api_with("");
        Self {
            database,
            clock,
            gateway,
            api,
            visitor,
            client,
            _files: files,
            _services: [relations, billing],
        }
    }

    /// A new document of a list such as `quotes`; `more` adds to it or replaces.
    pub(crate) async fn create(&self, list: &str, more: Value) -> Document {
        let mut body = json!({
            "title": "Brood voor november",
            "client_id": self.client,
            "generation_mode": "final",
            "rows": [{"name": "Zuurdesem", "quantity": 10, "unit_price": 100, "vat_rate": "21"}],
        });
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let answer = self.api.post(&format!("/v1/{list}"), body).await.expect(201);
        Document::of(list, &answer.at("/data"))
    }

    pub(crate) async fn final_quote(&self) -> Document {
        self.create("quotes", json!({})).await
    }

    /// The document as the API shows it now.
    pub(crate) async fn get(&self, document: &Document) -> Value {
        self.api.get(&document.api).await.expect(200).at("/data")
    }

    /// Asks for a page as a browser does.
    pub(crate) async fn open(&self, path: &str) -> Answer {
        self.visitor.send(Method::GET, path, &[BROWSER], "").await
    }

    /// The page of a document as text.
    pub(crate) async fn page(&self, document: &Document) -> String {
        text(&self.open(&document.page).await.expect(200))
    }

    /// Presses the button, as the form of the page does.
    pub(crate) async fn accept(&self, document: &Document) -> Answer {
        let form = ("content-type", "application/x-www-form-urlencoded");
        let site = ("sec-fetch-site", "same-origin");
        let path = format!("{}/accept", document.page);
        self.visitor.send(Method::POST, &path, &[BROWSER, form, site], "").await
    }

    /// The number of events of this type about a document.
    pub(crate) async fn count_events(&self, document: &Document, event: &str) -> i64 {
        sqlx::query_scalar("select count(*) from billing.log where record_id = $1 and event = $2")
            .bind(&document.id)
            .bind(event)
            .fetch_one(&mut self.database.connect().await)
            .await
            .unwrap()
    }
}

/// Where a document is found.
pub(crate) struct Document {
    pub id: String,
    pub number: String,
    /// Its path in the API.
    pub api: String,
    /// The path of its page.
    pub page: String,
}

impl Document {
    pub(crate) fn of(list: &str, data: &Value) -> Self {
        let id = data["id"].as_str().unwrap().to_owned();
        let web_url = data["web_url"].as_str().unwrap();
        Self {
            api: format!("/v1/{list}/{id}"),
            number: data["number"].as_str().unwrap().to_owned(),
            page: web_url[web_url.find("/documents/").unwrap()..].to_owned(),
            id,
        }
    }
}

pub(crate) fn text(answer: &Answer) -> String {
    String::from_utf8(answer.body.to_vec()).unwrap()
}

/// Fails unless the page says all of these.
#[track_caller]
pub(crate) fn says(page: &str, texts: &[&str]) {
    for text in texts {
        assert!(
            page.contains(text),
            "the page does not say {text}:\n{}",
            page.split("</style>").last().unwrap()
        );
    }
}
