use chassis_testing::expected_faults;
use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::support::id;
use crate::world::World;

const UNKNOWN: &str = "019a8c5e-7d1b-7c3a-9f20-4b8d2a6e1c05";

#[tokio::test]
async fn a_project_has_its_shape_and_its_defaults() {
    let world = World::start().with_relations().await;
    let user = world.user().await;
    let created = user.api.post("/v1/projects", json!({"name": " Kitchen "})).await.expect(201);
    let project = created.at("/data");
    let time = "2026-11-15T11:00:00.123Z";
    let expected = json!({
        "id": project["id"], "name": "Kitchen", "number": "P-00001", "status": "planned", "client_id": "",
        "budget": null, "start_date": "", "end_date": "",
        "meta": {"quote_id": null, "created_at": time, "updated_at": time, "version": 1},
    });
    assert_eq!(created.json(), json!({"data": expected, "meta": {}}));
    let path = format!("/v1/projects/{}", id(&project));
    assert_eq!(created.header("location"), Some(path.as_str()));
    assert_eq!(user.get(&path).await["data"], expected);
    let client = user.client("C").await;
    let whole = json!({
        "name": "Bath", "client_id": client, "status": "on_hold", "start_date": "2026-01-01",
        "end_date": "2026-01-01", "budget": "1250.5",
    });
    let created = user.api.post("/v1/projects", whole).await.expect(201);
    let bath = created.at("/data");
    assert_eq!((&bath["number"], &bath["status"]), (&json!("P-00002"), &json!("on_hold")));
    let text = String::from_utf8_lossy(&created.body).into_owned();
    assert!(text.contains("\"budget\":1250.50,"), "{text}");
    assert_eq!((&bath["client_id"], &bath["end_date"]), (&json!(client), &json!("2026-01-01")));
}

#[tokio::test]
async fn all_faults_of_a_project_are_reported_together() {
    let world = World::start().with_relations().await;
    let user = world.user().await;
    let body = json!({
        "name": " ", "client_id": UNKNOWN, "status": "done", "start_date": "2026-02-30", "budget": 1.005,
    });
    let refused = user.api.post("/v1/projects", body).await.expect(422);
    let mut faults = refused.faults();
    faults.sort();
    let expected = [
        ("/budget", "too_precise"),
        ("/client_id", "unknown_reference"),
        ("/name", "required"),
        ("/start_date", "not_a_date"),
        ("/status", "not_allowed"),
    ];
    assert_eq!(faults, expected_faults(&expected));
    let body = json!({"name": "A", "start_date": "2026-02-02", "end_date": "2026-02-01"});
    let refused = user.api.post("/v1/projects", body).await.expect(422);
    assert_eq!(refused.faults(), expected_faults(&[("/end_date", "out_of_range")]));
    assert_eq!(user.project("A").await["number"], "P-00001", "a refusal uses up no number");
}

#[tokio::test]
async fn a_change_leaves_alone_what_it_does_not_name() {
    let world = World::start().with_relations().await;
    let user = world.user().await;
    let client = user.client("C").await;
    let body = json!({"name": "A", "client_id": client, "budget": 10, "end_date": "2026-03-01"});
    let project = user.create("projects", body).await;
    let path = format!("/v1/projects/{}", id(&project));
    world.clock.advance(chrono::TimeDelta::seconds(1));
    assert_eq!(user.api.patch(&path, json!({})).await.expect(200).at("/data"), project);
    let changed =
        user.api.patch(&path, json!({"name": "B", "client_id": null, "colour": 1})).await.expect(200);
    let mut expected = project.clone();
    expected["name"] = json!("B");
    expected["client_id"] = json!("");
    expected["meta"]["version"] = json!(2);
    expected["meta"]["updated_at"] = json!("2026-11-15T11:00:01.123Z");
    assert_eq!(changed.at("/data"), expected);
    for (body, pointer, code) in [
        (json!({"name": null}), "/name", "required"),
        (json!({"status": null}), "/status", "not_nullable"),
        (json!({"start_date": "2026-03-02"}), "/start_date", "out_of_range"),
        (json!({"client_id": UNKNOWN}), "/client_id", "unknown_reference"),
        (json!({"client_id": "x"}), "/client_id", "unknown_reference"),
    ] {
        let refused = user.api.patch(&path, body.clone()).await.expect(422);
        assert_eq!(refused.faults(), expected_faults(&[(pointer, code)]), "{body}");
    }
    assert_eq!(user.get(&path).await["data"], expected);
    let unknown = user.api.patch(&format!("/v1/projects/{UNKNOWN}"), json!({"client_id": UNKNOWN})).await;
    assert_eq!(unknown.expect(404).at("/code"), "not_found");
}

#[tokio::test]
async fn a_list_is_searched_and_narrowed_by_its_client() {
    let world = World::start().with_relations().await;
    let user = world.user().await;
    let (one, other) = (user.client("One").await, user.client("Other").await);
    for (name, client) in [("Kitchen", &one), ("Bathroom", &one), ("New kitchen", &other)] {
        user.create("projects", json!({"name": name, "client_id": client})).await;
    }
    let names = async |query: &str| {
        let list = user.get(&format!("/v1/projects?{query}")).await;
        let names = list["data"].as_array().unwrap().iter().map(|project| project["name"].clone());
        assert_eq!(list["meta"]["total"], list["data"].as_array().unwrap().len());
        names.map(|name| name.as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(names("").await, ["New kitchen", "Bathroom", "Kitchen"]);
    assert_eq!(names("search=KITCH").await, ["New kitchen", "Kitchen"]);
    assert_eq!(names("search=p-00002").await, ["Bathroom"]);
    assert_eq!(names(&format!("client_id={one}")).await, ["Bathroom", "Kitchen"]);
    assert_eq!(names(&format!("client_id={one}&search=kitchen")).await, ["Kitchen"]);
    assert_eq!(names("client_id=nonsense").await, [""; 0]);
    let page = user.get("/v1/projects?per_page=2&page=2").await;
    assert_eq!(page["meta"], json!({"page": 2, "per_page": 2, "total": 3, "pages": 2}));
    user.api.get("/v1/projects?page=0").await.expect(422);
}

#[tokio::test]
async fn concurrent_creates_get_numbers_without_gaps_or_duplicates() {
    let world = World::start().await;
    let user = world.user().await;
    let tasks = (0..40).map(|index| {
        let user = user.clone();
        tokio::spawn(async move {
            let name = if index % 4 == 0 { "" } else { "A" };
            let answer = user.api.post("/v1/projects", json!({"name": name})).await;
            (answer.status == 201).then(|| answer.at("/data/number"))
        })
    });
    let mut numbers = BTreeSet::new();
    for task in tasks.collect::<Vec<_>>() {
        numbers.extend(task.await.unwrap().map(|number: Value| number.as_str().unwrap().to_owned()));
    }
    let expected: BTreeSet<String> = (1..=30).map(|number| format!("P-{number:05}")).collect();
    assert_eq!(numbers, expected);
    assert_eq!(user.total("/v1/projects").await, 30);
}

#[tokio::test]
async fn a_repeated_create_creates_one_project() {
    let world = World::start().await;
    let user = world.user().await;
    let body = json!({"name": "A"});
    let first = user.api.post_keyed("/v1/projects", "k", body.clone()).await.expect(201);
    let second = user.api.post_keyed("/v1/projects", "k", body).await.expect(201);
    assert_eq!((first.body, second.header("x-idempotent-replay")), (second.body.clone(), Some("true")));
    assert_eq!(user.total("/v1/projects").await, 1);
}
