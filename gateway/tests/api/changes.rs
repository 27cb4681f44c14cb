//! `GET /v1/changes`: what has changed in an account, over all services.

use std::collections::{BTreeMap, BTreeSet};

use chassis_rpc::Link;
use chassis_transcode::contract::Operation;
use chassis_transcode::records::RecordKinds;
use gateway::testing::{Answer, Api};
use http::Method;
use proto::log::FollowLogRequest;
use proto::log::log_service_client::LogServiceClient;
use serde_json::{Value, json};

use crate::coverage::{JSON, all_operations, body_for, path_of, things_of};
use crate::support::{Mesh, RELATIONS};

pub(crate) fn all_scopes() -> Vec<&'static str> {
    gateway::scopes::all().iter().map(AsRef::as_ref).collect()
}

/// Every change after a cursor, in pages of this many.
pub(crate) async fn read_all(api: &Api, mut cursor: String, limit: usize) -> Vec<Value> {
    let mut changes = Vec::new();
    loop {
        let answer = api.get(&format!("/v1/changes?limit={limit}&after={cursor}")).await.expect(200);
        changes.extend(answer.at("/data").as_array().unwrap().clone());
        answer.at("/meta/cursor").as_str().unwrap().clone_into(&mut cursor);
        if answer.at("/meta/more") == false {
            return changes;
        }
    }
}

fn text<'a>(change: &'a Value, name: &str) -> &'a str {
    change[name].as_str().unwrap()
}

pub(crate) fn body(answer: &Answer) -> String {
    String::from_utf8(answer.body.to_vec()).unwrap()
}

/// The last record of an answer, byte for byte.
pub(crate) fn last_record(history: &str) -> &str {
    let (_, last) = history.rsplit_once(",\"record\":").unwrap();
    last.split_once("}],\"meta\":").unwrap().0
}

/// The operation that shows a record of this kind: by its id, or among others.
fn reader<'a>(operations: &'a [Operation], message: &str, is_list: bool) -> Vec<&'a Operation> {
    let shows = |operation: &&Operation| {
        let answered = operation.answered.as_ref();
        operation.method == Method::GET
            && !operation.is_export()
            && answered.is_some_and(|answered| answered.message == message && answered.is_list == is_list)
    };
    operations.iter().filter(shows).collect()
}

/// What its GET, or else all pages of its list, show of the record now.
pub(crate) async fn shown_now(
    api: &Api,
    operations: &[Operation],
    kind: &str,
    message: &str,
    id: &str,
) -> Vec<String> {
    let single = reader(operations, message, false);
    let mut shown = Vec::new();
    for operation in &single {
        let answer = api.get(&path_of(operation, id)).await;
        if answer.status == 200 {
            shown.push(body(&answer));
        }
    }
    // Messages, payments and hours are below something else.
    let lists = if single.is_empty() { reader(operations, message, true) } else { Vec::new() };
    for operation in lists.into_iter().filter(|operation| !operation.path.contains('{')) {
        let (mut all, mut page) = (String::new(), 1);
        loop {
            let answer = api.get(&format!("{}?per_page=100&page={page}", operation.path)).await.expect(200);
            all += &body(&answer);
            if answer.at("/meta/pages").as_i64().is_none_or(|pages| page >= pages) {
                break;
            }
            page += 1;
        }
        shown.push(all);
    }
    assert!(!shown.is_empty() || ["ticket_message", "payment", "hour_entry"].contains(&kind), "{kind} {id}");
    shown
}

#[tokio::test]
async fn every_record_is_shown_as_its_get_shows_it_after_every_operation() {
    let mesh = Mesh::start_with(&["--rate-per-minute", "0"]).await;
    let (api, account) = mesh.api_of_new_account(&all_scopes()).await;
    let operations = all_operations();
    for operation in operations.iter().filter(|it| !it.is_public() && it.method != Method::GET) {
        // New ones for each: another operation may have ended them.
        let things = things_of(&mesh, &api, &account, &operation.path).await;
        let known = things.iter().find(|(prefix, _)| operation.path.starts_with(prefix));
        let path = path_of(operation, known.map_or("", |(_, id)| id));
        let body = body_for(operation, &things).to_string();
        let answer = api.send(operation.method.clone(), &path, JSON, body).await;
        assert!(!answer.status.is_server_error(), "{} {path}", operation.method);
    }
    let changes = read_all(&api, String::new(), 500).await;
    let kinds = RecordKinds::new(proto::policy::pool(), &operations).unwrap();

    let mut last: BTreeMap<(&str, &str), &Value> = BTreeMap::new();
    for change in &changes {
        let record = (text(change, "kind"), text(change, "id"));
        let version = change["version"].as_i64().unwrap();
        let before = last.insert(record, change);
        // A source that gets another name goes on counting under that.
        let is_renamed = before.is_none() && record.0 == "deal_source" && version > 1;
        let first = if is_renamed { version } else { 1 };
        let expected = before.map_or(first, |before| before["version"].as_i64().unwrap() + 1);
        assert_eq!(version, expected, "{record:?} counts its changes");
        let is_first = before.is_none_or(|before| before["change"] == "deleted");
        match change["change"].as_str().unwrap() {
            "created" => assert!(is_first, "{record:?}"),
            "updated" => assert!(!is_first, "{record:?}"),
            "deleted" => assert!(change["record"].is_null() && !is_first, "{record:?}"),
            other => panic!("{other}"),
        }
    }
    let seen: BTreeSet<&str> = last.keys().map(|(kind, _)| *kind).collect();
    let missing: Vec<&str> = kinds.iter().map(|(kind, _)| kind).filter(|kind| !seen.contains(kind)).collect();
    // Made by nothing that has a route, or only in the background.
    let unmade = ["email_domain", "hour_entry", "mandate", "ticket_message", "payment", "custom_field"];
    let missing: Vec<&str> = missing.into_iter().filter(|kind| !unmade.contains(kind)).collect();
    assert_eq!(missing, Vec::<&str>::new(), "no record of this kind was made");

    for ((kind, id), change) in last {
        if change["record"].is_null() {
            continue;
        }
        let history = api.get(&format!("/v1/changes?kind={kind}&id={id}&limit=500")).await.expect(200);
        let history = body(&history);
        let record = last_record(&history);
        let message = &kinds.get(kind).unwrap().message;
        for shown in shown_now(&api, &operations, kind, message, id).await {
            assert!(shown.contains(record), "{kind} {id}:\nlog: {record}\nGET: {shown}");
        }
    }
}

#[tokio::test]
async fn pages_go_on_where_the_one_before_ended_and_show_each_change_once() {
    let mesh = Mesh::start_with(&["--rate-per-minute", "0"]).await;
    let (api, account) = mesh.api_of_new_account(&all_scopes()).await;
    let things = things_of(&mesh, &api, &account, "*").await;
    let all = read_all(&api, String::new(), 500).await;
    assert!(all.len() > things.len());
    let by_three = read_all(&api, String::new(), 3).await;
    let known = |change: &Value| {
        (text(change, "kind").to_owned(), text(change, "id").to_owned(), change["version"].clone())
    };
    assert_eq!(by_three.iter().map(known).collect::<Vec<_>>(), all.iter().map(known).collect::<Vec<_>>());
    // The cursor of any change is a place to go on, too.
    for (index, change) in all.iter().enumerate().step_by(7) {
        let rest = read_all(&api, text(change, "cursor").to_owned(), 500).await;
        assert_eq!(
            rest.iter().map(known).collect::<Vec<_>>(),
            all[index + 1..].iter().map(known).collect::<Vec<_>>()
        );
    }
    let stranger = mesh.api(&all_scopes()).await;
    let theirs = read_all(&stranger, String::new(), 500).await;
    let made = |change: &Value| ["client", "task", "invoice"].contains(&text(change, "kind"));
    assert!(all.iter().any(made) && !theirs.iter().any(made), "another account's changes");
}

#[tokio::test]
async fn a_key_sees_the_kinds_that_it_may_read() {
    let mesh = Mesh::start().await;
    let (owner, account) = mesh.api_of_new_account(&all_scopes()).await;
    let client = owner.post("/v1/clients", json!({"company_name": "Bakery"})).await.expect(201);
    owner.post("/v1/tasks", json!({"title": "Bake"})).await.expect(201);
    owner.post("/v1/suppliers", json!({"company_name": "Mill"})).await.expect(201);
    let kinds = async |api: &Api, query: &str| {
        let answer = api.get(&format!("/v1/changes{query}")).await.expect(200).at("/data");
        answer
            .as_array()
            .unwrap()
            .iter()
            .map(|change| text(change, "kind").to_owned())
            .collect::<BTreeSet<_>>()
    };
    let tasks = mesh.gateway.api(&account, &["tasks.read"]).await;
    let seen = kinds(&tasks, "").await;
    assert!(seen.contains("task") && !seen.contains("client"), "{seen:?}");
    assert_eq!(
        kinds(&owner, "?kinds=client,%20supplier").await,
        ["client", "supplier"].map(str::to_owned).into()
    );

    let refused = tasks.get("/v1/changes?kinds=task,client").await.expect(403);
    assert!(refused.at("/detail").as_str().unwrap().contains("relations.read"));
    let id = client.at("/data/id");
    let history = format!("/v1/changes?kind=client&id={}", id.as_str().unwrap());
    tasks.get(&history).await.expect(403);
    owner.get(&history).await.expect(200);
}

#[tokio::test]
async fn what_is_asked_for_wrongly_is_refused_with_its_place() {
    let mesh = Mesh::start().await;
    let api = mesh.api(RELATIONS).await;
    let strange = Link::random(chassis_base::AccountId::trust(uuid::Uuid::new_v4())).encode();
    for (query, parameter) in [
        ("after=nonsense".to_owned(), "after"),
        (format!("after={strange}"), "after"),
        ("kinds=client,party".to_owned(), "kinds"),
        ("limit=0".to_owned(), "limit"),
        ("limit=501".to_owned(), "limit"),
        ("limit=many".to_owned(), "limit"),
        ("wait=26".to_owned(), "wait"),
        ("wait=-1".to_owned(), "wait"),
        ("kind=client".to_owned(), "id"),
        ("id=1".to_owned(), "kind"),
        ("kind=party&id=1".to_owned(), "kind"),
    ] {
        let answer = api.get(&format!("/v1/changes?{query}")).await.expect(422);
        assert_eq!(answer.at("/errors/0/parameter"), parameter, "{query}");
    }
    assert_eq!(api.get("/v1/changes?kind=client&id=unknown").await.expect(200).at("/data"), json!([]));
}

#[tokio::test]
async fn a_cursor_beyond_the_end_of_the_log_has_expired() {
    let mesh = Mesh::start().await;
    let (api, account) = mesh.api_of_new_account(RELATIONS).await;
    api.post("/v1/clients", json!({"company_name": "Bakery"})).await.expect(201);
    let cursor = api.get("/v1/changes").await.expect(200).at("/meta/cursor");
    // As after a restore from a backup of the time before.
    let mut connection = mesh.database.connect().await;
    sqlx::query("update relations.feed_head set position = position - 1 where account_id = $1")
        .bind(account.id)
        .execute(&mut connection)
        .await
        .unwrap();
    let answer = api.get(&format!("/v1/changes?after={}", cursor.as_str().unwrap())).await.expect(410);
    assert_eq!(answer.at("/code"), "cursor_expired");
}

#[tokio::test]
async fn a_reader_who_waits_is_answered_when_something_changes() {
    let mesh = Mesh::start_at(chassis_base::Clock::system(), &[]).await;
    let (api, account) = mesh.api_of_new_account(&all_scopes()).await;
    let cursor = api.get("/v1/changes?limit=500").await.expect(200).at("/meta/cursor");
    let path = format!("/v1/changes?wait=25&kinds=client&after={}", cursor.as_str().unwrap());
    // A change of another kind does not end the waiting, and one through another gateway does.
    let another = mesh.another_gateway().await;
    let writer = another.api(&account, &all_scopes()).await;
    let (answer, _) = tokio::join!(api.get(&path), async {
        writer.post("/v1/tasks", json!({"title": "Bake"})).await.expect(201);
        writer.post("/v1/clients", json!({"company_name": "Bakery"})).await.expect(201)
    });
    let answer = answer.expect(200);
    assert_eq!((answer.at("/data/0/kind"), answer.at("/data/0/change")), (json!("client"), json!("created")));
    assert_eq!((answer.at("/data/1"), answer.at("/meta/more")), (Value::Null, json!(false)));
    assert_eq!(answer.at("/data/0/record/company_name"), "Bakery");
    let cursor = answer.at("/meta/cursor");
    let after = api.get(&format!("/v1/changes?kinds=client&after={}", cursor.as_str().unwrap())).await;
    assert_eq!(after.expect(200).at("/data"), json!([]));
}

#[tokio::test]
async fn a_gateway_that_stops_answers_those_who_wait() {
    let mesh = Mesh::start_at(chassis_base::Clock::system(), &[]).await;
    let (api, _) = mesh.api_of_new_account(RELATIONS).await;
    let cursor = api.get("/v1/changes?limit=500").await.expect(200).at("/meta/cursor");
    let path = format!("/v1/changes?wait=25&after={}", cursor.as_str().unwrap());
    let waiting = tokio::spawn(async move { api.get(&path).await });
    // It waits once the services have been asked; stopping before that is fine as well.
    tokio::task::yield_now().await;
    mesh.gateway.drain();
    assert_eq!(waiting.await.unwrap().expect(200).at("/data"), json!([]));
}

#[tokio::test]
async fn internal_teams_follow_the_log_of_a_service() {
    let mesh = Mesh::start_at(chassis_base::Clock::system(), &[]).await;
    let (api, account) = mesh.api_of_new_account(&["tasks.read", "tasks.write"]).await;
    api.post("/v1/tasks", json!({"title": "Bake"})).await.expect(201);
    let caller = chassis_testing::TestCaller::mesh(&account, &mesh.clock);
    let request = caller.request(FollowLogRequest { after: 0, kinds: vec!["task".to_owned()] });
    let mut stream = LogServiceClient::new(mesh.work()).follow_log(request).await.unwrap().into_inner();
    let first = stream.message().await.unwrap().unwrap();
    let kinds: Vec<&str> = first.entries.iter().map(|entry| entry.kind.as_str()).collect();
    assert_eq!(kinds, ["task"]);
    api.post("/v1/tasks", json!({"title": "Sell"})).await.expect(201);
    let mut next = stream.message().await.unwrap().unwrap();
    while next.entries.is_empty() {
        next = stream.message().await.unwrap().unwrap();
    }
    assert_eq!(next.entries[0].version, 1);
    assert!(next.position > first.position);
}
