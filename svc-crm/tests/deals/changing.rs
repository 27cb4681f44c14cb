use chassis_testing::expected_faults;
use chrono::TimeDelta;
use serde_json::{Value, json};

use crate::support::{World, id, path, phase};

#[tokio::test]
async fn only_what_is_sent_changes_and_null_empties() {
    let world = World::new().await;
    let user = world.user().await;
    let client = user.client("Mill").await;
    let body = json!({
        "title": "Ovens", "client_id": client, "amount": "5", "expected_close_date": "2026-12-01",
        "priority": "low", "source": "Website",
    });
    let deal = user.deal(body).await;
    world.clock.advance(TimeDelta::minutes(1));
    let same = user.patch(&deal, json!({})).await.expect(200).at("/data");
    assert_eq!(same, deal, "nothing sent, nothing changed");
    let same = user.patch(&deal, json!({"title": "Ovens", "amount": 5})).await.expect(200).at("/data");
    assert_eq!(same, deal, "nothing new");
    let changed =
        user.patch(&deal, json!({"title": "Mills", "priority": "high"})).await.expect(200).at("/data");
    let mut expected = deal.clone();
    expected["title"] = json!("Mills");
    expected["priority"] = json!("high");
    expected["meta"]["updated_at"] = json!("2026-11-15T11:01:00.123Z");
    expected["meta"]["version"] = json!(2);
    assert_eq!(changed, expected);
    let emptied = json!({"amount": null, "expected_close_date": null, "source": null});
    let emptied = user.patch(&deal, emptied).await.expect(200).at("/data");
    assert_eq!(
        (&emptied["amount"], &emptied["expected_close_date"], &emptied["meta"]["source"]),
        (&Value::Null, &json!(""), &Value::Null)
    );
}

#[tokio::test]
async fn what_a_deal_must_have_cannot_be_emptied() {
    let world = World::new().await;
    let user = world.user().await;
    let client = user.client("Mill").await;
    let deal = user.titled_deal(&client, "Ovens").await;
    for name in ["title", "client_id", "pipeline_id", "phase_id", "priority", "status"] {
        let faults = user.patch(&deal, json!({name: null})).await.expect(422).faults();
        assert_eq!(faults.len(), 1, "{name}");
        assert_eq!(faults[0].0, format!("/{name}"));
    }
    let other = user.client("Farm").await;
    let moved = user.patch(&deal, json!({"client_id": other})).await.expect(200).at("/data/client_id");
    assert_eq!(moved, json!(other));
    let faults = user.patch(&deal, json!({"client_id": "x", "source": "Nobody"})).await.expect(422).faults();
    assert_eq!(
        faults,
        expected_faults(&[("/client_id", "unknown_reference"), ("/source", "unknown_reference")])
    );
}

#[tokio::test]
async fn a_new_pipeline_without_a_phase_means_its_first_phase() {
    let world = World::new().await;
    let user = world.user().await;
    let client = user.client("Mill").await;
    user.pipeline("Rent", &["Ask", "Sign"]).await;
    let board = user.board().await;
    let deal = user.titled_deal(&client, "Ovens").await;
    let place = async |body: Value| {
        let deal = user.patch(&deal, body).await.expect(200).at("/data");
        (deal["pipeline_id"].clone(), deal["phase_id"].as_str().unwrap().to_owned())
    };
    let there = board[1]["id"].clone();
    assert_eq!(place(json!({"pipeline_id": there})).await, (there.clone(), phase(&board[1], 0)));
    assert_eq!(place(json!({"phase_id": phase(&board[1], 1)})).await, (there.clone(), phase(&board[1], 1)));
    assert_eq!(place(json!({"pipeline_id": there})).await, (there.clone(), phase(&board[1], 1)), "is there");
    let faults = user.patch(&deal, json!({"phase_id": phase(&board[0], 0)})).await.expect(422).faults();
    assert_eq!(faults, expected_faults(&[("/phase_id", "conflicting")]));
    let back = json!({"pipeline_id": board[0]["id"], "phase_id": phase(&board[0], 2)});
    assert_eq!(place(back).await, (board[0]["id"].clone(), phase(&board[0], 2)));
}

#[tokio::test]
async fn deleting_a_deal_answers_with_it_once_and_then_not_found() {
    let world = World::new().await;
    let user = world.user().await;
    let client = user.client("Mill").await;
    let deal = user.titled_deal(&client, "Ovens").await;
    user.titled_deal(&client, "Mills").await;
    user.take_events(&world).await;
    assert_eq!(user.delete(&deal).await.expect(200).at("/data"), deal);
    user.delete(&deal).await.expect(404);
    user.api.get(&path(&deal)).await.expect(404);
    assert_eq!((user.total("").await, user.total("status=open").await), (1, 1));
    assert_eq!(user.take_event_names(&world).await, ["deal.deleted"]);
}

#[tokio::test]
async fn every_operation_on_an_unknown_deal_answers_not_found() {
    let world = World::new().await;
    let user = world.user().await;
    for unknown in ["x".to_owned(), world.clock.id().to_string()] {
        let deal = json!({"id": unknown});
        user.api.get(&path(&deal)).await.expect(404);
        user.patch(&deal, json!({"title": "T", "client_id": world.clock.id().to_string()})).await.expect(404);
        user.act(&deal, "move", json!({"phase_id": "x"})).await.expect(404);
        user.act(&deal, "win", json!({})).await.expect(404);
        user.act(&deal, "lose", json!({})).await.expect(404);
        user.delete(&deal).await.expect(404);
        let faults = user.patch(&deal, json!({"title": ""})).await.expect(422).faults();
        assert_eq!(faults, expected_faults(&[("/title", "required")]), "{}: the body comes first", id(&deal));
    }
}
