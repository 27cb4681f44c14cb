use chassis_testing::expected_faults;
use serde_json::{Value, json};

use crate::support::{World, id, path, phase};

#[tokio::test]
async fn a_deal_needs_a_title_and_a_client_and_has_defaults_for_the_rest() {
    let world = World::new().await;
    let user = world.user().await;
    let client = user.client("Mill").await;
    let answer =
        user.api.post("/v1/deals", json!({"title": " Ovens ", "client_id": client})).await.expect(201);
    let deal = answer.at("/data");
    assert_eq!(answer.header("location"), Some(path(&deal).as_str()));
    let board = user.board().await;
    let expected = json!({
        "id": deal["id"], "title": "Ovens", "amount": null, "status": "open", "priority": "medium",
        "pipeline_id": board[0]["id"], "phase_id": phase(&board[0], 0), "client_id": client,
        "expected_close_date": "", "created_at": "2026-11-15T11:00:00.123Z",
        "meta": {
            "updated_at": "2026-11-15T11:00:00.123Z", "phase_since": "2026-11-15T11:00:00.123Z", "won_at": null,
            "lost_at": null, "source": null, "version": 1,
        },
    });
    assert_eq!(deal, expected);
    assert_eq!(answer.at("/meta"), json!({}));
    let mut shown = user.get(&deal).await;
    let history = shown["meta"].as_object_mut().unwrap().remove("history").unwrap();
    assert_eq!(shown, expected);
    let step = json!([{
        "at": "2026-11-15T11:00:00.123Z", "pipeline_id": board[0]["id"], "phase_id": phase(&board[0], 0),
        "phase": "Nieuw", "status": "open", "accepted_quote_id": null,
    }]);
    assert_eq!(history, step);
}

#[tokio::test]
async fn a_deal_can_be_created_with_every_field() {
    let world = World::new().await;
    let user = world.user().await;
    let client = user.client("Mill").await;
    user.pipeline("Rent", &["Ask", "Sign"]).await;
    let board = user.board().await;
    let body = json!({
        "title": "Ovens", "client_id": client, "pipeline_id": board[1]["id"], "phase_id": phase(&board[1], 1),
        "amount": "12500.5", "priority": "high", "status": "won", "expected_close_date": "2026-12-01",
        "source": "Website", "unknown": 1,
    });
    let deal = user.deal(body.clone()).await;
    for name in ["title", "client_id", "pipeline_id", "phase_id", "priority", "status", "expected_close_date"]
    {
        assert_eq!(deal[name], body[name], "{name}");
    }
    assert_eq!((&deal["amount"], &deal["meta"]["source"]), (&json!(12500.5), &json!("Website")));
    assert_eq!(deal["meta"]["won_at"], deal["created_at"]);
    assert_eq!(deal["meta"]["lost_at"], Value::Null);
    let number = user.deal(json!({"title": "T", "client_id": client, "amount": 0.1})).await;
    assert_eq!(number["amount"], json!(0.1), "a number will do");
}

#[tokio::test]
async fn all_faults_are_reported_together() {
    let world = World::new().await;
    let user = world.user().await;
    let body = json!({
        "title": " ", "client_id": "019a8c5e-7d1b-7c3a-9f20-4b8d2a6e1c05", "pipeline_id": "x", "amount": "1.234",
        "priority": "urgent", "status": "closed", "expected_close_date": "2026-02-30", "source": "Nobody",
    });
    let mut faults = user.api.post("/v1/deals", body).await.expect(422).faults();
    faults.sort();
    let expected = expected_faults(&[
        ("/amount", "too_precise"),
        ("/client_id", "unknown_reference"),
        ("/expected_close_date", "not_a_date"),
        ("/pipeline_id", "unknown_reference"),
        ("/priority", "not_allowed"),
        ("/source", "unknown_reference"),
        ("/status", "not_allowed"),
        ("/title", "required"),
    ]);
    assert_eq!(faults, expected);
    let mut faults = user.api.post("/v1/deals", json!({})).await.expect(422).faults();
    faults.sort();
    assert_eq!(faults, expected_faults(&[("/client_id", "required"), ("/title", "required")]));
    assert_eq!(user.total("").await, 0);
}

#[tokio::test]
async fn a_phase_of_another_pipeline_is_refused() {
    let world = World::new().await;
    let user = world.user().await;
    let client = user.client("Mill").await;
    user.pipeline("Rent", &["Ask"]).await;
    let board = user.board().await;
    for pipeline in [json!(null), board[0]["id"].clone()] {
        let body = json!({
            "title": "T", "client_id": client, "pipeline_id": pipeline, "phase_id": phase(&board[1], 0),
        });
        let faults = user.api.post("/v1/deals", body).await.expect(422).faults();
        assert_eq!(faults, expected_faults(&[("/phase_id", "conflicting")]));
    }
}

#[tokio::test]
async fn a_supplier_or_a_client_of_another_account_is_not_accepted_as_client() {
    let world = World::new().await;
    let (user, other) = (world.user().await, world.user().await);
    let supplier =
        user.api.post("/v1/suppliers", json!({"company_name": "Farm"})).await.expect(201).at("/data");
    for client in [id(&supplier), other.client("Mill").await, "x".to_owned()] {
        let answer = user.api.post("/v1/deals", json!({"title": "T", "client_id": client})).await;
        assert_eq!(
            answer.expect(422).faults(),
            expected_faults(&[("/client_id", "unknown_reference")]),
            "{client}"
        );
    }
}

#[tokio::test]
async fn without_relations_no_deal_is_created_but_everything_else_works() {
    let mut world = World::new().await;
    let user = world.user().await;
    let client = user.client("Mill").await;
    let deal = user.titled_deal(&client, "Ovens").await;
    let user = world.disconnect_relations(&user).await;
    let answer = user.api.post("/v1/deals", json!({"title": "T", "client_id": client})).await.expect(503);
    assert_eq!((answer.at("/code"), answer.header("retry-after")), (json!("unavailable"), Some("1")));
    user.patch(&deal, json!({"client_id": client})).await.expect(503);
    user.patch(&deal, json!({"title": "Mills"})).await.expect(200);
    user.act(&deal, "win", json!({})).await.expect(200);
    assert_eq!(user.get(&deal).await["status"], "won");
}

#[tokio::test]
async fn a_replayed_create_returns_the_first_answer_and_creates_nothing() {
    let world = World::new().await;
    let user = world.user().await;
    let body = json!({"title": "Ovens", "client_id": user.client("Mill").await});
    let first = user.api.post_keyed("/v1/deals", "k", body.clone()).await.expect(201);
    let second = user.api.post_keyed("/v1/deals", "k", body).await.expect(201);
    assert_eq!((first.body, second.header("x-idempotent-replay")), (second.body.clone(), Some("true")));
    assert_eq!((user.total("").await, user.take_event_names(&world).await.len()), (1, 1));
}
