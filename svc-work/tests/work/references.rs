use chassis_testing::expected_faults;
use serde_json::json;

use crate::support::id;
use crate::world::World;

#[tokio::test]
async fn what_belongs_to_another_account_cannot_be_referred_to() {
    let world = World::start().with_billing().await;
    let (user, stranger) = (world.user().await, world.user().await);
    let client = stranger.client("Theirs").await;
    let project = id(&stranger.project("Theirs").await);
    let invoice = id(&stranger.create("invoices", json!({"title": "Theirs", "total_excl_vat": 1})).await);
    let quote = id(&user.create("quotes", json!({"title": "Mine", "total_excl_vat": 1})).await);
    let about = json!({"client_id": client, "invoice_id": invoice, "project_id": project});
    let mut note = about.clone();
    note["body"] = json!("N");
    let mut faults = user.api.post("/v1/notes", note).await.expect(422).faults();
    faults.sort();
    let unknown = "unknown_reference";
    let expected = [("/client_id", unknown), ("/invoice_id", unknown), ("/project_id", unknown)];
    assert_eq!(faults, expected_faults(&expected));
    let refused = user.api.post("/v1/notes", json!({"body": "N", "invoice_id": quote})).await.expect(422);
    assert_eq!(refused.faults(), expected_faults(&[("/invoice_id", unknown)]), "a quote is not an invoice");
    let mut task = about;
    task["title"] = json!("T");
    let faults = user.api.post("/v1/tasks", task).await.expect(422).faults();
    assert_eq!(faults.len(), 2);
    assert_eq!((user.total("/v1/notes").await, user.total("/v1/tasks").await), (json!(0), json!(0)));
}

#[tokio::test]
async fn a_service_that_cannot_be_reached_leaves_no_dangling_reference() {
    let world = World::start().with_relations().with_unreachable_peers().await;
    let user = world.user().await;
    let client = user.client("C").await;
    for (list, body) in [
        ("projects", json!({"name": "A", "client_id": client})),
        ("tasks", json!({"title": "A", "client_id": client})),
        ("notes", json!({"body": "A", "client_id": client})),
    ] {
        let refused = user.api.post(&format!("/v1/{list}"), body).await.expect(503);
        assert_eq!(refused.at("/code"), "unavailable");
        assert!(refused.header("retry-after").is_some());
        assert_eq!(user.total(&format!("/v1/{list}")).await, 0);
    }
    let project = user.project("Without a client needs nobody").await;
    let path = format!("/v1/projects/{}", id(&project));
    user.api.patch(&path, json!({"client_id": client})).await.expect(503);
    user.api.patch(&path, json!({"name": "B", "client_id": null})).await.expect(200);
}
