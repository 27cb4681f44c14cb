//! What every paged list takes, walked from the contract: ids, the times of creation and of the last change, and the order
//! by them.

use std::collections::BTreeSet;

use chassis_base::Account;
use chassis_testing::TestCaller;
use chassis_transcode::contract::Operation;
use chrono::{DateTime, SecondsFormat, TimeDelta, Utc};
use gateway::testing::{Answer, Api};
use http::Method;
use proto::work::hour_service_client::HourServiceClient;
use proto::work::{HourInput, LogHoursRequest};
use serde_json::{Value, json};

use crate::coverage::{all_operations, body_for, path_of, things_of};
use crate::support::Mesh;

const ENDPOINTS: &str = "/v1/webhook-endpoints";

/// The operations whose requests have a page.
fn paged() -> Vec<Operation> {
    let methods = proto::policy::pool().services().flat_map(|service| service.methods().collect::<Vec<_>>());
    let names: BTreeSet<String> = methods
        .filter(|method| method.input().get_field_by_name("page").is_some())
        .map(|method| method.full_name().to_owned())
        .collect();
    let of_pages = |operation: &Operation| names.contains(&operation.name) && !operation.is_export();
    all_operations().into_iter().filter(of_pages).collect()
}

#[derive(Clone, Debug)]
struct Entry {
    id: String,
    created_at: DateTime<Utc>,
    updated_at: DateTime<Utc>,
}

impl Entry {
    fn of(entry: &Value) -> Self {
        let time = |name: &str| {
            let text = entry[name].as_str().or(entry["meta"][name].as_str());
            text.map(|text| text.parse::<DateTime<Utc>>().unwrap())
        };
        let created_at = time("created_at").unwrap_or_else(|| panic!("no created_at: {entry}"));
        // An event never changes.
        let updated_at = time("updated_at").unwrap_or(created_at);
        Self { id: entry["id"].as_str().unwrap().to_owned(), created_at, updated_at }
    }
}

fn ids<'a>(entries: impl IntoIterator<Item = &'a Entry>) -> BTreeSet<&'a str> {
    entries.into_iter().map(|entry| entry.id.as_str()).collect()
}

struct PagedList<'a> {
    api: &'a Api,
    path: String,
}

impl PagedList<'_> {
    async fn answer(&self, query: &str) -> Answer {
        self.api.get(&format!("{}?per_page=100&{query}", self.path)).await
    }

    /// All entries that the query selects.
    async fn get(&self, query: &str) -> Vec<Entry> {
        let answer = self.answer(query).await.expect(200);
        let entries: Vec<Entry> = answer.at("/data").as_array().unwrap().iter().map(Entry::of).collect();
        assert_eq!(answer.at("/meta/total"), entries.len(), "{}?{query}", self.path);
        entries
    }

    /// The parameters that the answer finds fault with.
    async fn refused(&self, query: &str) -> BTreeSet<String> {
        let answer = self.answer(query).await.expect(422);
        let errors = answer.at("/errors");
        let parameters = errors.as_array().unwrap().iter().map(|error| error["parameter"].as_str().unwrap());
        parameters.map(str::to_owned).collect()
    }
}

async fn log_hours(mesh: &Mesh, account: &Account, project: &str) {
    let entry = HourInput { hours: "1".to_owned(), ..HourInput::default() };
    let request = LogHoursRequest { project_id: project.to_owned(), entry: Some(entry) };
    let request = TestCaller::mesh(account, &mesh.clock).request(request);
    HourServiceClient::new(mesh.work()).log_hours(request).await.unwrap();
}

/// Makes two records of every kind at different times and changes the older ones last. Returns what lists are below.
async fn fill(mesh: &Mesh, api: &Api, account: &Account) -> Vec<(&'static str, String)> {
    let first = things_of(mesh, api, account, "*").await;
    mesh.clock.advance(TimeDelta::hours(1));
    let second = things_of(mesh, api, account, "*").await;
    let id = |prefix: &str| second.iter().find(|(of, _)| *of == prefix).map(|(_, id)| id.clone()).unwrap();
    let invoice = api.post("/v1/invoices", json!({"title": "Bread", "total_excl_vat": 5})).await.expect(201);
    let invoice = invoice.at("/data/id").as_str().unwrap().to_owned();
    for _ in 0..2 {
        mesh.clock.advance(TimeDelta::hours(1));
        api.post(&format!("/v1/invoices/{invoice}/payments"), json!({"amount": 1})).await.expect(201);
        api.post("/v1/automation/trigger", json!({"event": "some.event"})).await.expect(200);
        log_hours(mesh, account, &id("/v1/projects/")).await;
    }
    api.post(ENDPOINTS, json!({"url": "https://example.com"})).await.expect(201);
    mesh.clock.advance(TimeDelta::hours(1));
    let mut changed = 0;
    for operation in all_operations().iter().filter(|operation| operation.method == Method::PATCH) {
        // The second ones have taken the place of the first endpoints.
        let things = if operation.path.starts_with(ENDPOINTS) { &second } else { &first };
        let Some((_, id)) = things.iter().find(|(prefix, _)| operation.path.starts_with(prefix)) else {
            continue;
        };
        let answer = api.patch(&path_of(operation, id), body_for(operation, things)).await;
        changed += usize::from(answer.status == 200);
    }
    assert!(changed >= 8, "{changed} records were changed");
    [vec![("/v1/invoices/", invoice)], second].concat()
}

#[tokio::test]
async fn every_paged_list_takes_ids_and_times_and_the_order_of_the_last_changes() {
    let mesh = Mesh::start_with(&["--rate-per-minute", "0"]).await;
    let scopes: Vec<&str> = gateway::scopes::all().iter().map(AsRef::as_ref).collect();
    let (api, account) = mesh.api_of_new_account(&scopes).await;
    let things = fill(&mesh, &api, &account).await;
    let (mut empty, mut walked) = (Vec::new(), 0);
    for operation in paged() {
        let parent = things.iter().find(|(prefix, _)| operation.path.starts_with(prefix));
        let path = path_of(&operation, parent.map_or("", |(_, id)| id));
        let list = PagedList { api: &api, path };
        check_faults(&list).await;
        let all = list.get("").await;
        if all.is_empty() {
            empty.push(operation.path);
            continue;
        }
        check_order(&list, &all).await;
        check_times(&list, &all, "created", |entry| entry.created_at).await;
        check_times(&list, &all, "updated", |entry| entry.updated_at).await;
        // Below a record, the path has the name already.
        if !operation.path.contains('{') {
            check_ids(&list, &all).await;
        }
        walked += 1;
    }
    assert_eq!(empty, ["/v1/subscriptions/{id}/invoices"], "subscriptions are billed in the background");
    assert!(walked >= 20, "{walked}");
}

async fn check_faults(list: &PagedList<'_>) {
    let times = ["created_from", "created_to", "updated_from", "updated_to"];
    let query = times.map(|name| format!("{name}=yesterday")).join("&");
    assert_eq!(list.refused(&query).await, times.map(str::to_owned).into(), "{}", list.path);
    assert_eq!(
        list.refused("sort=colour&order=up").await,
        ["order", "sort"].map(str::to_owned).into(),
        "{}",
        list.path
    );
}

async fn check_order(list: &PagedList<'_>, all: &[Entry]) {
    let mut expected = all.to_vec();
    expected.sort_by(|one, other| (one.updated_at, &one.id).cmp(&(other.updated_at, &other.id)));
    let order = |entries: &[Entry]| entries.iter().map(|entry| entry.id.clone()).collect::<Vec<_>>();
    let mut expected = order(&expected);
    assert_eq!(order(&list.get("sort=updated_at&order=asc").await), expected, "{}", list.path);
    expected.reverse();
    assert_eq!(order(&list.get("sort=updated_at&order=desc").await), expected, "{}", list.path);
}

/// Around the time of one entry, to the millisecond.
async fn check_times(
    list: &PagedList<'_>,
    all: &[Entry],
    name: &str,
    time: impl Fn(&Entry) -> DateTime<Utc>,
) {
    let own = time(&all[all.len() / 2]);
    let text = |time: DateTime<Utc>| time.to_rfc3339_opts(SecondsFormat::Millis, true);
    let (moment, before) = (text(own), text(own - TimeDelta::milliseconds(1)));
    let since = list.get(&format!("{name}_from={moment}")).await;
    assert_eq!(ids(&since), ids(all.iter().filter(|entry| time(entry) >= own)), "{}", list.path);
    let earlier = list.get(&format!("{name}_to={before}")).await;
    assert_eq!(ids(&earlier), ids(all.iter().filter(|entry| time(entry) < own)), "{}", list.path);
    let simultaneous = list.get(&format!("{name}_from={moment}&{name}_to={moment}")).await;
    assert_eq!(ids(&simultaneous), ids(all.iter().filter(|entry| time(entry) == own)), "{}", list.path);
}

async fn check_ids(list: &PagedList<'_>, all: &[Entry]) {
    let (one, other) = (&all[0], &all[all.len() - 1]);
    let both = list.get(&format!("id={},{}", one.id, other.id)).await;
    assert_eq!(ids(&both), ids([one, other]), "{}", list.path);
    assert!(list.get("id=nonsense").await.is_empty(), "{}", list.path);
}
