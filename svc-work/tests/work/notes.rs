use chassis_testing::expected_faults;
use serde_json::{Value, json};

use crate::support::id;
use crate::world::World;

#[tokio::test]
async fn a_note_is_created_changed_and_deleted() {
    let world = World::start().with_relations().await;
    let user = world.user().await;
    let client = user.client("C").await;
    let created = user.create("notes", json!({"body": " keep white space ", "client_id": client})).await;
    let (note, time) = (id(&created), "2026-11-15T11:00:00.123Z");
    assert_eq!(created, json!({"id": note, "body": " keep white space ", "created_at": time, "version": 1}));
    let path = format!("/v1/notes/{note}");
    world.clock.advance(chrono::TimeDelta::seconds(1));
    let changed_at = "2026-11-15T11:00:01.123Z";
    let meta = json!({
        "client_id": client, "invoice_id": null, "project_id": null, "deal_id": null, "version": 2,
        "updated_at": changed_at,
    });
    let same = user.api.patch(&path, json!({"body": " keep white space "})).await.expect(200);
    assert_eq!(same.at("/data/updated_at"), time, "the same text changes nothing");
    assert_eq!((same.at("/data/meta/version"), same.at("/data/meta/updated_at")), (json!(1), json!(time)));
    let changed = user.api.patch(&path, json!({"body": "new"})).await.expect(200);
    let expected = json!({
        "id": note, "body": "new", "created_at": time, "updated_at": changed_at, "meta": meta,
    });
    assert_eq!(changed.at("/data"), expected);
    assert_eq!(user.get("/v1/notes").await["data"], json!([expected]));
    for body in [json!({}), json!({"body": null}), json!({"body": "  "}), json!({"client_id": client})] {
        let refused = user.api.patch(&path, body.clone()).await.expect(422);
        assert_eq!(refused.faults(), expected_faults(&[("/body", "required")]), "{body}");
    }
    user.delete(&path).await.expect(204);
    user.delete(&path).await.expect(404);
    user.api.patch(&path, json!({"body": "x"})).await.expect(404);
    assert_eq!(user.total("/v1/notes").await, 0);
}

#[tokio::test]
async fn a_list_is_filtered_by_what_its_notes_are_about() {
    let world = World::start().with_billing().await;
    let user = world.user().await;
    let client = user.client("C").await;
    let project = id(&user.project("P").await);
    let invoice = id(&user.create("invoices", json!({"title": "I", "total_excl_vat": 5})).await);
    for (body, about) in [
        ("client", json!({"client_id": client})),
        ("project", json!({"project_id": project})),
        ("invoice", json!({"invoice_id": invoice})),
        ("both", json!({"client_id": client, "project_id": project})),
    ] {
        let mut note = about.clone();
        note["body"] = json!(body);
        user.create("notes", note).await;
    }
    let found = async |query: String| {
        let list = user.get(&format!("/v1/notes?{query}")).await;
        let bodies = list["data"].as_array().unwrap().iter().map(|note: &Value| note["body"].clone());
        let bodies = bodies.map(|body| body.as_str().unwrap().to_owned()).collect::<Vec<_>>();
        assert_eq!(list["meta"]["total"], bodies.len());
        bodies
    };
    assert_eq!(found(String::new()).await, ["both", "invoice", "project", "client"]);
    assert_eq!(found(format!("client_id={client}")).await, ["both", "client"]);
    assert_eq!(found(format!("project_id={project}")).await, ["both", "project"]);
    assert_eq!(found(format!("invoice_id={invoice}")).await, ["invoice"]);
    assert_eq!(found(format!("client_id={client}&project_id={project}")).await, ["both"]);
    assert_eq!(found("deal_id=nonsense".to_owned()).await, [""; 0]);
}

#[tokio::test]
async fn a_note_has_a_maximum_length() {
    let world = World::start().await;
    let user = world.user().await;
    user.create("notes", json!({"body": "é".repeat(65_535)})).await;
    let refused = user.api.post("/v1/notes", json!({"body": "é".repeat(65_536)})).await.expect(422);
    assert_eq!(refused.faults(), expected_faults(&[("/body", "too_long")]));
}
