//! Lists as CSV and as lines of JSON: a page, and all of a list.

use chassis_transcode::contract::Operation;
use gateway::testing::{Answer, Api};
use http::Method;
use http_body_util::BodyExt;
use serde_json::{Value, json};

use crate::coverage::{all_operations, path_of};
use crate::support::{Mesh, RELATIONS};

const CSV: &[(&str, &str)] = &[("accept", "text/csv")];
const LINES: &[(&str, &str)] = &[("accept", "application/x-ndjson")];

async fn as_csv(api: &Api, path: &str) -> Answer {
    api.send(Method::GET, path, CSV, "").await
}

async fn as_lines(api: &Api, path: &str) -> Vec<Value> {
    let answer = api.send(Method::GET, path, LINES, "").await.expect(200);
    assert_eq!(answer.header("content-type"), Some("application/x-ndjson"));
    String::from_utf8(answer.body.to_vec())
        .unwrap()
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

/// The cells of each line.
fn cells(answer: &Answer) -> Vec<Vec<String>> {
    let (mut lines, mut line, mut cell, mut quoted) = (Vec::new(), Vec::new(), String::new(), false);
    let text = String::from_utf8(answer.body.to_vec()).unwrap();
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        match character {
            '"' if quoted && characters.peek() == Some(&'"') => cell.extend(characters.next()),
            '"' => quoted = !quoted,
            ',' if !quoted => line.push(std::mem::take(&mut cell)),
            '\r' if !quoted => assert_eq!(characters.peek(), Some(&'\n')),
            '\n' if !quoted => {
                line.push(std::mem::take(&mut cell));
                lines.push(std::mem::take(&mut line));
            }
            other => cell.push(other),
        }
    }
    assert!(line.is_empty() && cell.is_empty() && !quoted, "the last line has an end");
    lines
}

#[tokio::test]
async fn a_page_is_a_table_with_a_column_for_each_field() {
    let mesh = Mesh::start().await;
    let api = mesh.api(RELATIONS).await;
    for name in ["Plain", "Comma, \"quote\"\nand line", "=1+1", "Café"] {
        api.post("/v1/clients", json!({"company_name": name, "phone": "+31 6 12345678"})).await.expect(201);
    }
    let page = api.get("/v1/clients?per_page=3").await.expect(200);
    let answer = as_csv(&api, "/v1/clients?per_page=3").await.expect(200);
    assert_eq!(answer.header("content-type"), Some("text/csv; charset=utf-8; header=present"));
    let meta: Value = serde_json::from_str(answer.header("x-meta").unwrap()).unwrap();
    assert_eq!(meta, page.at("/meta"));
    let lines = cells(&answer);
    let (names, rows) = lines.split_first().unwrap();
    assert_eq!(rows.len(), 3);
    let column = |name: &str| {
        names.iter().position(|have| have == name).unwrap_or_else(|| panic!("{name} of {names:?}"))
    };
    let names_of: Vec<&str> = rows.iter().map(|row| row[column("company_name")].as_str()).collect();
    assert_eq!(names_of, ["Café", "'=1+1", "Comma, \"quote\"\nand line"]);
    assert_eq!(rows[0][column("phone")], "+31 6 12345678");
    assert_eq!(rows[0][column("meta.version")], "1");
    assert!(rows.iter().all(|row| row.len() == names.len()));
    assert_eq!(as_lines(&api, "/v1/clients?per_page=3").await, page.at("/data").as_array().unwrap().clone());
    // Names that nobody knows are told as in JSON, and what is refused is a problem.
    let ignored = as_csv(&api, "/v1/clients?colour=ré").await.expect(200);
    let meta: Value = serde_json::from_str(ignored.header("x-meta").unwrap()).unwrap();
    assert_eq!(meta["ignored"], json!(["?colour"]));
    assert_eq!(as_csv(&api, "/v1/clients?order=up").await.expect(422).at("/code"), "validation");
    // One record is no list.
    let one = page.at("/data/0/id");
    let one = as_csv(&api, &format!("/v1/clients/{}", one.as_str().unwrap())).await.expect(200);
    assert_eq!(one.header("content-type"), Some("application/json"));
}

#[tokio::test]
async fn an_export_is_the_whole_list_in_its_order_with_its_filters() {
    let mesh = Mesh::start_with(&["--rate-per-minute", "0"]).await;
    let api = mesh.api(RELATIONS).await;
    let other = mesh.api(RELATIONS).await;
    other.post("/v1/clients", json!({"company_name": "Stranger"})).await.expect(201);
    // More than one part of the export.
    for index in 0..230 {
        let city = if index % 2 == 0 { "Breda" } else { "Zwolle" };
        api.post("/v1/clients", json!({"company_name": format!("C{index:03}"), "city": city}))
            .await
            .expect(201);
    }
    for query in
        ["", "?city=breda", "?search=c1", "?sort=updated_at&order=asc", "?city=breda&per_page=3&page=2"]
    {
        let mut expected = Vec::new();
        for page in 1..=3 {
            let filters = query.replace("&per_page=3&page=2", "");
            let mark = if filters.is_empty() { "?" } else { "&" };
            let page =
                api.get(&format!("/v1/clients{filters}{mark}per_page=100&page={page}")).await.expect(200);
            expected.extend(page.at("/data").as_array().unwrap().clone());
        }
        let exported = as_lines(&api, &format!("/v1/clients/export{query}")).await;
        assert_eq!(exported, expected, "{query}");
    }
    let answer = api.get("/v1/clients/export").await.expect(200);
    assert_eq!(answer.header("content-type"), Some("text/csv; charset=utf-8; header=present"));
    assert_eq!(answer.header("content-disposition"), Some("attachment; filename=\"clients.csv\""));
    assert_eq!(cells(&answer).len(), 231);
    assert_eq!(
        api.get("/v1/clients/export?order=up").await.expect(422).faults(),
        [("order".to_owned(), "not_allowed".to_owned())]
    );
    assert!(as_lines(&api, "/v1/clients/export?search=nobody").await.is_empty());
}

#[tokio::test]
async fn every_paged_list_of_a_service_can_be_exported() {
    let mesh = Mesh::start().await;
    let scopes: Vec<&str> = gateway::scopes::all().iter().map(AsRef::as_ref).collect();
    let api = mesh.api(&scopes).await;
    let exports: Vec<Operation> = all_operations().into_iter().filter(Operation::is_export).collect();
    assert!(exports.len() > 15, "{}", exports.len());
    for export in exports {
        let path = path_of(&export, "019a8c5e-7d1b-7c3a-9f20-4b8d2a6e1c05");
        let list = api.get(path.trim_end_matches("/export")).await;
        let answer = api.get(&path).await;
        assert_eq!(answer.status, list.status, "{path}");
        if answer.status.is_success() {
            let (names, rows) = (cells(&answer)[0].clone(), cells(&answer).len() - 1);
            assert!(names.contains(&"id".to_owned()), "{path}: {names:?}");
            assert_eq!(list.at("/meta/total"), rows, "{path}");
        }
    }
}

#[tokio::test]
async fn records_within_records_have_no_place_in_a_table() {
    let mesh = Mesh::start().await;
    let api = mesh.api(&["tasks.read", "relations.read"]).await;
    let refused = as_csv(&api, "/v1/tasks?expand=client").await.expect(422);
    assert_eq!(refused.faults(), [("expand".to_owned(), "not_allowed".to_owned())]);
}

const NOTES: &[&str] = &["notes.read", "notes.write"];

async fn fill(api: &Api, notes: usize) -> Vec<String> {
    let mut ids = Vec::new();
    for _ in 0..notes {
        let note = api.post("/v1/notes", json!({"body": "x".repeat(60_000)})).await.expect(201);
        ids.push(note.at("/data/id").as_str().unwrap().to_owned());
    }
    ids
}

#[tokio::test]
async fn an_export_shows_the_moment_when_it_began() {
    let mesh = Mesh::start_with(&["--rate-per-minute", "0"]).await;
    let api = mesh.api(NOTES).await;
    let mut ids = fill(&api, 80).await;
    let (status, mut body) = api.begin("/v1/notes/export").await;
    assert_eq!(status, 200);
    let mut text = body.frame().await.unwrap().unwrap().into_data().unwrap().to_vec();
    // The oldest note is the last of the export, and was not read yet.
    api.send(Method::DELETE, &format!("/v1/notes/{}", ids[0]), &[], "").await.expect(204);
    api.post("/v1/notes", json!({"body": "late"})).await.expect(201);
    api.patch(&format!("/v1/notes/{}", ids[1]), json!({"body": "changed"})).await.expect(200);
    text.extend(body.collect().await.unwrap().to_bytes());
    let answer = Answer { status, headers: http::HeaderMap::new(), body: text.into() };
    let lines = cells(&answer);
    let column = |name: &str| lines[0].iter().position(|have| have == name).unwrap();
    ids.reverse();
    assert_eq!(lines[1..].iter().map(|line| line[column("id")].clone()).collect::<Vec<_>>(), ids);
    assert!(lines[1..].iter().all(|line| line[column("body")].len() == 60_000));
}

#[tokio::test]
async fn an_account_whose_exports_are_not_read_leaves_places_to_others() {
    let mesh = Mesh::start_with(&["--rate-per-minute", "0"]).await;
    let (api, other) = (mesh.api(NOTES).await, mesh.api(NOTES).await);
    // More than what all connections on its way hold for a reader who waits.
    fill(&api, 200).await;
    let unread = api.begin_unread("/v1/notes/export").await;
    let refused = api.get("/v1/notes/export").await.expect(503);
    assert_eq!(refused.header("retry-after"), Some("1"));
    api.get("/v1/notes?per_page=1").await.expect(200);
    assert_eq!(cells(&other.get("/v1/notes/export").await.expect(200)).len(), 1);
    // Who leaves gives the place back.
    let next = tokio::spawn(async move { api.get("/v1/notes/export").await });
    drop(unread);
    next.await.unwrap().expect(200);
}
