//! Anonymising clients: what tells who somebody is goes from every service, and what stays is named here.

use std::collections::BTreeSet;

use chassis_base::{Account, Clock};
use chassis_testing::{Started, TestCaller, TestDatabase, eventually, undelivered};
use gateway::testing::{Api, TestGateway};
use http::Method;
use proto::support::ReceiveMailRequest;
use proto::support::mail_intake_service_client::MailIntakeServiceClient;
use serde_json::{Value, json};
use svc_automation::Automation;
use svc_billing::Billing;
use svc_crm::Crm;
use svc_relations::Relations;
use svc_support::Support;
use svc_work::Work;
use tempfile::TempDir;

use crate::changes::all_scopes;
use crate::support::database;
use crate::year::stored::{SCHEMAS, holders};

/// Making a PDF takes long without optimisation, and longer beside other tests.
const DEADLINE: [&str; 2] = ["--deadline-ms", "120000"];

const FIRSTNAME: &str = "Wilhelmijntje";
const LASTNAME: &str = "Zwaluwstaart";
const EMAIL: &str = "wz@anonymous-person.example";
const PHONE: &str = "+31 6 5550 7771";
const ADDRESS: &str = "Verdwijnpad 401";
const IBAN: &str = "NL91ABNA0417164300";
const EXTERNAL_ID: &str = "known-as-4711";
const SALUTATION: &str = "Goededag mevrouw";
const FUNCTION: &str = "Geheimraadsvrouw";
const QUESTION: &str = "Waar blijft mijn roggebrood";
const REPLY: &str = "Het ligt bij de buren";
const ATTACHMENT: &str = "boodschappenbriefje";
const ATTACHED: &str = "twee beschuiten";
const NOTE: &str = "Belt altijd op maandag";
const MAIL_TEXT: &str = "Hierbij uw rekening";

/// Services that deliver their events to each other.
struct World {
    database: TestDatabase,
    clock: Clock,
    api: Api,
    account: Account,
    support: Started,
    files: TempDir,
    /// Alive as long as the rest.
    _others: (Vec<Started>, TempDir, TestGateway),
}

impl World {
    async fn start() -> Self {
        let (database, clock) = (database().await, chassis_testing::clock());
        let (files, mails) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let common =
            ["--files-dir", files.path().to_str().unwrap(), "--mail-dir", mails.path().to_str().unwrap()];
        let common = [&common[..], &DEADLINE].concat();
        let url = database.url();
        let with = |peers: &[(&str, &Started)], listeners: &[(&str, &Started, &str)]| {
            let peers = peers.iter().map(|(name, peer)| format!("{name}={}", peer.url()));
            let listeners =
                listeners.iter().map(|(name, listener, types)| format!("{name}={}{types}", listener.url()));
            let own = [
                ("--peers", peers.collect::<Vec<_>>().join(",")),
                ("--listeners", listeners.collect::<Vec<_>>().join(",")),
            ];
            let own = own.into_iter().filter(|(_, value)| !value.is_empty());
            let own = own.flat_map(|(name, value)| [name.to_owned(), value]);
            common.iter().map(|flag| (*flag).to_owned()).chain(own).collect::<Vec<String>>()
        };
        macro_rules! start {
            ($start:ident, $service:ty, $peers:expr, $listeners:expr) => {{
                let flags = with(&$peers, &$listeners);
                let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
                chassis_testing::$start::<$service>(url, &clock, &flags).await
            }};
        }
        let looked_up = start!(start_with, Relations, [], []);
        let automation = start!(start_with, Automation, [], []);
        let crm = start!(start_with, Crm, [("relations", &looked_up)], []);
        let work = start!(start_working, Work, [("relations", &looked_up), ("crm", &crm)], []);
        let events = ("automation", &automation, "");
        let billing = start!(
            start_working,
            Billing,
            [("relations", &looked_up), ("work", &work)],
            [events, ("work", &work, ";file.stored;invoice.deleted;quote.deleted")]
        );
        let support = start!(
            start_working,
            Support,
            [("relations", &looked_up), ("billing", &billing), ("work", &work)],
            [events, ("work", &work, ";file.removed;file.stored")]
        );
        let relations = start!(
            start_working,
            Relations,
            [("billing", &billing), ("crm", &crm), ("support", &support), ("work", &work)],
            [
                events,
                ("billing", &billing, ";client.anonymized;customer.updated"),
                ("support", &support, ";client.anonymized"),
                ("work", &work, ";client.anonymized")
            ]
        );
        let peers: Vec<String> = [
            ("relations", &relations),
            ("billing", &billing),
            ("crm", &crm),
            ("work", &work),
            ("support", &support),
            ("automation", &automation),
        ]
        .map(|(name, peer)| format!("{name}={}", peer.url()))
        .to_vec();
        let gateway = TestGateway::start(
            &database,
            &clock,
            &peers,
            &["--rate-per-minute", "0", DEADLINE[0], DEADLINE[1]],
        )
        .await;
        let account = gateway.account("Bakery").await;
        let api = gateway.api(&account, &all_scopes()).await;
        let others = vec![looked_up, automation, crm, work, billing, relations];
        Self { database, clock, api, account, support, files, _others: (others, mails, gateway) }
    }

    async fn create(&self, path: &str, body: Value) -> String {
        self.api.post(path, body).await.expect(201).at("/data/id").as_str().unwrap().to_owned()
    }

    /// A mail of the client with a file; returns its ticket and the file.
    async fn receive(&self) -> (String, String) {
        let channel = self.api.get("/v1/ticket-channels").await;
        let to = channel.at("/data/0/address").as_str().unwrap_or("desk@bakery.example").to_owned();
        let mail = format!(
            "From: {FIRSTNAME} {LASTNAME} <{EMAIL}>\r\nTo: {to}\r\nSubject: {QUESTION}\r\nMessage-ID: <1@anonymous-person.example>\r\n\
             MIME-Version: 1.0\r\nContent-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\nContent-Type: text/plain\r\n\r\n\
             {QUESTION}? {PHONE}\r\n--b\r\nContent-Type: text/plain; name=\"{ATTACHMENT}.txt\"\r\n\
             Content-Disposition: attachment; filename=\"{ATTACHMENT}.txt\"\r\n\r\n{ATTACHED}\r\n--b--\r\n"
        );
        let request =
            ReceiveMailRequest { message: mail.into_bytes().into(), ..ReceiveMailRequest::default() };
        let mesh = TestCaller::mesh(&self.account, &self.clock);
        let mut intake = MailIntakeServiceClient::new(self.support.channel());
        let received = intake.receive_mail(mesh.request(request)).await.unwrap().into_inner();
        let messages =
            self.api.get(&format!("/v1/tickets/{}/messages", received.ticket_id)).await.expect(200);
        let file = messages.at("/data/0/meta/attachments/0/id").as_str().unwrap().to_owned();
        (received.ticket_id, file)
    }

    async fn until_delivered(&self) {
        eventually("every event is delivered", async || {
            let mut left = 0;
            for service in ["relations", "billing", "support", "work"] {
                left += undelivered(&self.database, service).await;
            }
            left == 0
        })
        .await;
    }

    async fn compact(&self) {
        for schema in SCHEMAS {
            chassis_data::log::compact(self.database.url(), schema, 400, self.clock.now()).await.unwrap();
        }
    }

    async fn holders(&self, text: &str) -> BTreeSet<String> {
        holders(&self.database, &[text.to_owned()]).await
    }

    /// Whether a file of the object store has this content.
    fn is_stored(&self, content: &str) -> bool {
        let mut folders = vec![self.files.path().to_owned()];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    folders.push(path);
                } else if String::from_utf8_lossy(&std::fs::read(&path).unwrap()).contains(content) {
                    return true;
                }
            }
        }
        false
    }
}

fn person() -> Value {
    json!({
        "firstname": FIRSTNAME, "lastname": LASTNAME, "email": EMAIL, "phone": PHONE, "address": ADDRESS, "iban": IBAN,
        "external_id": EXTERNAL_ID, "mail_salutation": SALUTATION, "payment_term": 14,
    })
}

/// The records of a client.
struct Lived {
    client: String,
    company: String,
    invoice: String,
    draft: String,
    kept: Vec<String>,
    note: String,
    /// The tickets that a mail and a request have made.
    mailed: String,
    asked: String,
    /// What the mail brought.
    file: String,
}

const OURS: &str = "Send it again tomorrow";
const NAME: &str = "Geanonimiseerde klant D-00001";

async fn live(world: &World) -> Lived {
    let api = &world.api;
    let client = world.create("/v1/clients", person()).await;
    let moved = json!({"city": "Utrecht", "address": format!("{ADDRESS} hs")});
    api.patch(&format!("/v1/clients/{client}"), moved).await.expect(200);
    let company = world.create("/v1/clients", json!({"company_name": "Bakery"})).await;
    let link = json!({"client_id": client, "function": FUNCTION});
    api.post(&format!("/v1/clients/{company}/links"), link).await.expect(201);
    let rows = json!([{"name": "Bread", "unit_price": 10}]);
    let invoice = json!({"title": "Bread", "client_id": client, "rows": rows, "generation_mode": "final"});
    let invoice = world.create("/v1/invoices", invoice).await;
    let mail = json!({"to": EMAIL, "subject": format!("For {LASTNAME}"), "message": MAIL_TEXT});
    api.post(&format!("/v1/invoices/{invoice}/send"), mail).await.expect(200);
    let draft = json!({"title": format!("Bread for {LASTNAME}"), "client_id": client, "rows": rows});
    let draft = world.create("/v1/quotes", draft).await;
    let deal = world.create("/v1/deals", json!({"title": "Bread", "client_id": client})).await;
    let task = world.create("/v1/tasks", json!({"title": "Bake", "client_id": client})).await;
    let note = json!({"body": format!("{NOTE}: {PHONE}"), "client_id": client});
    let note = world.create("/v1/notes", note).await;
    let (mailed, file) = world.receive().await;
    let asked = world.create("/v1/tickets", json!({"subject": QUESTION, "client_id": client})).await;
    let messages = format!("/v1/tickets/{asked}/messages");
    api.post(&messages, json!({"body": format!("{REPLY}, {FIRSTNAME}")})).await.expect(201);
    api.post(&messages, json!({"body": OURS, "type": "note"})).await.expect(201);
    world.until_delivered().await;
    let is_listed = async || api.get(&format!("/v1/files/{file}")).await.status == 200;
    eventually("the file is listed", is_listed).await;
    assert!(world.is_stored(ATTACHED));
    for text in
        [FIRSTNAME, LASTNAME, EMAIL, PHONE, ADDRESS, IBAN, EXTERNAL_ID, FUNCTION, QUESTION, REPLY, NOTE]
    {
        assert!(!world.holders(text).await.is_empty(), "{text} is stored");
    }
    let kept = vec![format!("/v1/deals/{deal}"), format!("/v1/tasks/{task}")];
    Lived { client, company, invoice, draft, kept, note, mailed, asked, file }
}

/// Nobody is shown what the client was, from this moment on, and nothing new is made for it.
async fn check_client(world: &World, lived: &Lived) {
    let (api, client) = (&world.api, &lived.client);
    let path = format!("/v1/clients/{client}");
    let states = api.get(&format!("/v1/changes?kind=client&id={client}")).await.expect(200).at("/data");
    let states = states.as_array().unwrap();
    assert_eq!((states.len(), &states[0]["record"]["lastname"]), (1, &json!(NAME)));
    assert_eq!(api.patch(&path, json!({"city": "Delft"})).await.expect(409).at("/code"), "anonymized");
    let links = format!("/v1/clients/{}/links", lived.company);
    let refused = api.post(&links, json!({"client_id": client})).await.expect(409);
    assert_eq!(refused.at("/code"), "anonymized");
    for (path, body) in [
        ("/v1/invoices", json!({"title": "T"})),
        ("/v1/deals", json!({"title": "T"})),
        ("/v1/tickets", json!({"subject": "T"})),
        ("/v1/notes", json!({"body": "T"})),
        ("/v1/subscriptions", json!({"title": "T"})),
    ] {
        let mut body = body;
        body["client_id"] = json!(client);
        let faults = api.post(path, body).await.expect(422).faults();
        assert_eq!(faults, [("/client_id".to_owned(), "unknown_reference".to_owned())], "{path}");
    }
    api.post(&format!("{path}/direct-debit/verification"), json!({})).await.expect(404);
}

/// What the other services show.
async fn check_copies(world: &World, lived: &Lived) {
    let api = &world.api;
    for ticket in [&lived.mailed, &lived.asked] {
        let ticket = api.get(&format!("/v1/tickets/{ticket}")).await.expect(200).at("/data");
        assert_eq!((&ticket["subject"], &ticket["client_name"]), (&json!(NAME), &json!(NAME)));
        assert_eq!((&ticket["client_email"], &ticket["client_id"]), (&json!(""), &json!(lived.client)));
    }
    let said = api.get(&format!("/v1/tickets/{}/messages", lived.asked)).await.expect(200);
    assert_eq!((said.at("/data/0/body"), said.at("/data/0/meta/to")), (json!(""), json!([])));
    assert_eq!(said.at("/data/1/body"), OURS);
    let received = api.get(&format!("/v1/tickets/{}/messages", lived.mailed)).await.expect(200);
    assert_eq!(received.at("/data/0/author"), json!({"name": NAME, "email": ""}));
    assert_eq!(received.at("/data/0/meta/attachments"), json!([]));
    let notes = api.get(&format!("/v1/notes?id={}", lived.note)).await.expect(200);
    assert_eq!(notes.at("/meta/total"), 0);
    for kept in &lived.kept {
        api.get(kept).await.expect(200);
    }
    let invoice = format!("/v1/invoices/{}", lived.invoice);
    let document = String::from_utf8_lossy(&api.get(&invoice).await.expect(200).body).into_owned();
    assert!(document.contains(LASTNAME), "the invoice is as it was issued");
    assert!(!document.contains(EMAIL), "to whom it was sent is forgotten");
    api.post(&format!("{invoice}/credit"), json!({"credit_all": true})).await.expect(201);
}

/// Only what the operation says stays is in the tables.
async fn check_tables(world: &World) {
    let told = ["automation.event"];
    let allowed = |texts: &[&str], tables: Vec<&'static str>| {
        let texts: Vec<String> = texts.iter().map(|text| (*text).to_owned()).collect();
        (texts, tables)
    };
    for (texts, tables) in [
        allowed(
            &[FIRSTNAME, LASTNAME, EMAIL, PHONE, ADDRESS],
            vec!["billing.document", "billing.log", told[0]],
        ),
        allowed(&[QUESTION, REPLY, EXTERNAL_ID, ATTACHMENT, MAIL_TEXT], told.to_vec()),
        allowed(&[IBAN, SALUTATION, FUNCTION, NOTE], Vec::new()),
    ] {
        for text in texts {
            let found = world.holders(&text).await;
            let others: Vec<&String> =
                found.iter().filter(|table| !tables.contains(&table.as_str())).collect();
            assert!(others.is_empty(), "{text} is in {others:?}");
        }
    }
    for schema in SCHEMAS {
        let sql = format!("select count(*) from {schema}.forgotten_history where removed_at is null");
        let mut connection = world.database.connect().await;
        let left: i64 =
            sqlx::query_scalar(sqlx::AssertSqlSafe(sql)).fetch_one(&mut connection).await.unwrap();
        assert_eq!(left, 0, "{schema}");
    }
}

#[tokio::test]
async fn who_an_anonymised_client_was_is_only_where_the_law_or_the_contract_says_so() {
    let world = World::start().await;
    let (api, lived) = (&world.api, live(&world).await);
    let path = format!("/v1/clients/{}", lived.client);
    let anonymize = format!("{path}/anonymize");
    let refused = api.post(&anonymize, json!({})).await.expect(409);
    assert_eq!((refused.at("/code"), refused.at("/data/quote_ids")), (json!("in_use"), json!(lived.draft)));
    assert!(refused.at("/data/invoice").is_null(), "a final document keeps nobody");
    let draft = format!("/v1/quotes/{}", lived.draft);
    assert!(api.send(Method::DELETE, &draft, &[], "").await.status.is_success());
    let tried = api.send(Method::POST, &anonymize, &[("dry-run", "true")], "").await.expect(200);
    assert_eq!(tried.at("/data/email"), "");
    assert_eq!(api.get(&path).await.at("/data/email"), EMAIL);

    let done = api.post(&anonymize, json!({})).await.expect(200);
    let shown = done.at("/data");
    let expected = [
        ("firstname", ""),
        ("lastname", NAME),
        ("email", ""),
        ("phone", ""),
        ("city", ""),
        ("country", "NL"),
    ];
    for (field, value) in expected {
        assert_eq!(shown[field], value, "{field}");
    }
    assert_eq!((&shown["payment_term"], &shown["meta"]["version"]), (&json!(14), &json!(3)));
    assert!(shown["meta"]["anonymized_at"].is_string() && shown["meta"]["external_id"].is_null());
    let again = api.post(&anonymize, json!({})).await.expect(200);
    assert_eq!(again.at("/data"), shown, "twice is the same as once");
    check_client(&world, &lived).await;

    world.until_delivered().await;
    // Work forgets the file when it hears of it from support, which has heard of the client.
    eventually("the received file is gone", async || {
        let is_gone = api.get(&format!("/v1/files/{}", lived.file)).await.status == 404;
        is_gone && !world.is_stored(ATTACHED)
    })
    .await;
    world.until_delivered().await;
    check_copies(&world, &lived).await;
    world.until_delivered().await;
    world.compact().await;
    check_tables(&world).await;
}

#[tokio::test]
async fn what_is_alive_keeps_a_client_from_being_anonymised() {
    let world = World::start().await;
    let api = &world.api;
    let client = world.create("/v1/clients", person()).await;
    let path = format!("/v1/clients/{client}/anonymize");
    let subscription = json!({
        "title": "Bread", "client_id": client, "term": "monthly", "start_date": "2027-01-01",
        "lines": [{"title": "Bread", "unit_price": 10}],
    });
    let subscription = world.create("/v1/subscriptions", subscription).await;
    api.post(&format!("/v1/clients/{client}/direct-debit/verification"), json!({})).await;
    let refused = api.post(&path, json!({})).await.expect(409);
    assert_eq!(
        (refused.at("/data/subscription"), refused.at("/data/subscription_ids")),
        (json!("1"), json!(subscription))
    );
    assert_eq!(refused.at("/data/mandate"), "1");
    assert_eq!(api.get(&format!("/v1/clients/{client}")).await.at("/data/lastname"), LASTNAME);
    // It is as it was, and can be used.
    world.create("/v1/deals", json!({"title": "T", "client_id": client})).await;
}
