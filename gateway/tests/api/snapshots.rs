//! Logs that lack records: every service logs what its log lacks, so that the change feed rebuilds the account.

use std::collections::{BTreeMap, BTreeSet};

use chassis_base::Account;
use chassis_service::Service;
use chassis_testing::{TestCaller, start_working_service};
use chassis_transcode::records::RecordKinds;
use gateway::testing::Api;
use proto::log::SnapshotLogRequest;
use proto::log::log_service_client::LogServiceClient;
use proto::relations::custom_field_service_client::CustomFieldServiceClient;
use proto::relations::{CreateCustomFieldRequest, CustomFieldEntity, CustomFieldInput, CustomFieldType};
use proto::work::hour_service_client::HourServiceClient;
use proto::work::{HourInput, LogHoursRequest};
use serde_json::{Value, json};
use sqlx::AssertSqlSafe;
use svc_automation::Automation;
use svc_billing::Billing;
use svc_crm::Crm;
use svc_relations::Relations;
use svc_support::Support;
use svc_work::Work;

use crate::changes::{all_scopes, body, last_record, read_all, shown_now};
use crate::coverage::{all_operations, things_of};
use crate::support::{Mesh, database};

const SERVICES: [&str; 6] = ["relations", "automation", "billing", "crm", "work", "support"];

/// Makes every service compare its log with the records of the account. Returns how many entries were written.
async fn compare(mesh: &Mesh, account: &Account) -> i64 {
    let caller = TestCaller::mesh(account, &mesh.clock);
    let mut all = 0;
    for channel in mesh.channels() {
        let (mut client, mut restart) = (LogServiceClient::new(channel), true);
        loop {
            let request = caller.request(SnapshotLogRequest { restart });
            let answer = client.snapshot_log(request).await.unwrap().into_inner();
            if !answer.more {
                all += answer.logged;
                break;
            }
            restart = false;
        }
    }
    all
}

/// Runs a statement about the account in the schema of every service.
async fn in_all_schemas(mesh: &Mesh, account: &Account, statement: impl Fn(&str) -> String) -> u64 {
    let (mut connection, mut rows) = (mesh.database.connect().await, 0);
    for schema in SERVICES {
        let query = sqlx::query(AssertSqlSafe(statement(schema))).bind(account.id);
        rows += query.execute(&mut connection).await.unwrap().rows_affected();
    }
    rows
}

/// What the feed shows last of each record that exists: its version and itself.
async fn latest(api: &Api) -> BTreeMap<(String, String), (i64, Value)> {
    let mut latest = BTreeMap::new();
    for change in read_all(api, String::new(), 500).await {
        let text = |name: &str| change[name].as_str().unwrap().to_owned();
        let record = (text("kind"), text("id"));
        if change["change"] == "deleted" {
            latest.remove(&record);
        } else {
            latest.insert(record, (change["version"].as_i64().unwrap(), change["record"].clone()));
        }
    }
    latest
}

/// Something of the kinds that [`things_of`] does not make.
async fn make_more(mesh: &Mesh, api: &Api, account: &Account, things: &[(&str, String)]) {
    let id = |of: &str| things.iter().find(|(prefix, _)| *prefix == of).unwrap().1.clone();
    let caller = TestCaller::mesh(account, &mesh.clock);
    let invoice = json!({"title": "Bread", "client_id": id("/v1/clients/"),
        "rows": [{"name": "Bread", "quantity": 2, "unit_price": 10, "vat_rate": 21}]});
    let invoice = api.post("/v1/invoices", invoice).await.expect(201).at("/data/id");
    let invoice = format!("/v1/invoices/{}", invoice.as_str().unwrap());
    api.post(&format!("{invoice}/finalize"), json!({})).await.expect(200);
    api.post(&format!("{invoice}/payments"), json!({"amount": 5})).await.expect(201);
    let messages = format!("/v1/tickets/{}/messages", id("/v1/tickets/"));
    api.post(&messages, json!({"body": "Fresh?", "type": "note"})).await.expect(201);
    let hours = HourInput { hours: "1.5".to_owned(), ..HourInput::default() };
    let hours = LogHoursRequest { project_id: id("/v1/projects/"), entry: Some(hours) };
    HourServiceClient::new(mesh.work()).log_hours(caller.request(hours)).await.unwrap();
    let field = CustomFieldInput {
        entity: CustomFieldEntity::Client.into(),
        key: "oven".to_owned(),
        label: "Oven".to_owned(),
        r#type: CustomFieldType::Text.into(),
        options: Vec::new(),
    };
    let field = CreateCustomFieldRequest { field: Some(field) };
    CustomFieldServiceClient::new(mesh.relations()).create_custom_field(caller.request(field)).await.unwrap();
}

/// Rows as a program that knows no log has stored them.
async fn store_old_rows(mesh: &Mesh, account: &Account, client: &str) {
    let mut connection = mesh.database.connect().await;
    sqlx::query(
        "insert into support.domain (account_id, host, domain, subdomain, receiving, verified, selector, private_key, \
         found, check_at, created_at, updated_at) \
         values ($1, 'example.com', 'example.com', '', false, false, 's', '', '{}', $2, $2, $2)",
    )
    .bind(account.id)
    .bind(mesh.clock.now())
    .execute(&mut connection)
    .await
    .unwrap();
    sqlx::query(
        "insert into billing.debtor (account_id, client_id, provider, customer_id, mandate_id, mandate_status, \
         created_at, updated_at) values ($1, $2::uuid, 'sandbox', 'cst_1', '', 'none', $3, $3)",
    )
    .bind(account.id)
    .bind(client)
    .bind(mesh.clock.now())
    .execute(&mut connection)
    .await
    .unwrap();
}

#[tokio::test]
async fn a_feed_without_entries_is_rebuilt_from_the_records_of_every_kind() {
    let mesh = Mesh::start_with(&["--rate-per-minute", "0"]).await;
    let (api, account) = mesh.api_of_new_account(&all_scopes()).await;
    let things = things_of(&mesh, &api, &account, "*").await;
    make_more(&mesh, &api, &account, &things).await;
    let mut before = latest(&api).await;
    assert_eq!(compare(&mesh, &account).await, 0, "the log has everything already");

    let client = &things.iter().find(|(prefix, _)| *prefix == "/v1/clients/").unwrap().1;
    store_old_rows(&mesh, &account, client).await;
    for table in ["log", "feed", "feed_head", "pending"] {
        let delete = |schema: &str| format!("delete from {schema}.{table} where account_id = $1");
        in_all_schemas(&mesh, &account, delete).await;
    }
    assert!(latest(&api).await.is_empty());
    let logged = compare(&mesh, &account).await;
    let mut after = latest(&api).await;
    let operations = all_operations();
    let kinds = RecordKinds::new(proto::policy::pool(), &operations).unwrap();
    let seen: BTreeSet<&str> = after.keys().map(|(kind, _)| kind.as_str()).collect();
    let all: BTreeSet<&str> = kinds.iter().map(|(kind, _)| kind).collect();
    assert_eq!(seen, all, "records of every kind");
    for (kind, id) in after.keys() {
        let history = api.get(&format!("/v1/changes?kind={kind}&id={id}&limit=500")).await.expect(200);
        let (record, message) = (body(&history), &kinds.get(kind).unwrap().message);
        if kind == "mandate" {
            // What its GET shows depends on the provider that the account uses.
            continue;
        }
        for shown in shown_now(&api, &operations, kind, message, id).await {
            assert!(shown.contains(last_record(&record)), "{kind} {id}: {record}\nGET: {shown}");
        }
    }
    for old in [("email_domain", "example.com"), ("mandate", client)] {
        let (version, _) = after.remove(&(old.0.to_owned(), old.1.to_owned())).unwrap();
        assert_eq!(version, 1);
        before.remove(&(old.0.to_owned(), old.1.to_owned()));
    }
    assert_eq!(after, before, "versions and records are as they were");
    assert_eq!(usize::try_from(logged).unwrap(), after.len() + 2);
    let told = |schema: &str| format!("select from {schema}.log where account_id = $1 and event is not null");
    assert_eq!(in_all_schemas(&mesh, &account, told).await, 0, "nobody is told");
    assert_eq!(compare(&mesh, &account).await, 0, "once");
}

#[tokio::test]
async fn what_was_stored_without_the_log_gets_versions_that_follow_it() {
    let mesh = Mesh::start().await;
    let (api, account) = mesh.api_of_new_account(&all_scopes()).await;
    let client = api.post("/v1/clients", json!({"company_name": "Bakery"})).await.expect(201).at("/data/id");
    let client = client.as_str().unwrap();
    let task = api.post("/v1/tasks", json!({"title": "Bake"})).await.expect(201).at("/data/id");
    let mut connection = mesh.database.connect().await;
    for sql in [
        "update relations.relation set company_name = 'Mill' where account_id = $1",
        "delete from work.task where account_id = $1",
    ] {
        sqlx::query(sql).bind(account.id).execute(&mut connection).await.unwrap();
    }
    assert_eq!(compare(&mesh, &account).await, 2);
    let shown = api.get(&format!("/v1/clients/{client}")).await.expect(200);
    assert_eq!((shown.at("/data/company_name"), shown.at("/data/meta/version")), (json!("Mill"), json!(2)));
    let history = api.get(&format!("/v1/changes?kind=client&id={client}")).await.expect(200);
    assert_eq!(history.at("/data/1/record"), shown.at("/data"));
    let history = api.get(&format!("/v1/changes?kind=task&id={}", task.as_str().unwrap())).await.expect(200);
    assert_eq!((history.at("/data/1/change"), history.at("/data/1/version")), (json!("deleted"), json!(2)));
    assert_eq!(compare(&mesh, &account).await, 0);
    let changed = api.patch(&format!("/v1/clients/{client}"), json!({"city": "Delft"})).await.expect(200);
    assert_eq!(changed.at("/data/meta/version"), 3);
}

/// The kinds that a service declares.
async fn declared<S: Service>(url: &str) -> Vec<&'static str> {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().to_str().unwrap();
    let flags = ["--mail-dir", folder, "--files-dir", folder];
    let (_started, service) = start_working_service::<S>(url, &chassis_testing::clock(), &flags).await;
    service.records().tables().iter().map(|table| table.kind).collect()
}

#[tokio::test]
async fn every_kind_of_record_declares_where_its_records_are() {
    let database = database().await;
    let url = database.url();
    let mut kinds = declared::<Relations>(url).await;
    kinds.extend(declared::<Automation>(url).await);
    kinds.extend(declared::<Billing>(url).await);
    kinds.extend(declared::<Crm>(url).await);
    kinds.extend(declared::<Work>(url).await);
    kinds.extend(declared::<Support>(url).await);
    kinds.sort_unstable();
    let operations = all_operations();
    let all = RecordKinds::new(proto::policy::pool(), &operations).unwrap();
    let all: Vec<&str> = all.iter().map(|(kind, _)| kind).collect();
    assert_eq!(kinds, all, "see `records.rs` of the service");
}
