use serde_json::{Value, json};

use crate::support::{World, id, phase};

#[tokio::test]
async fn the_event_of_a_new_deal_holds_its_values() {
    let world = World::new().await;
    let user = world.user().await;
    let client = user.client("Mill").await;
    let body = json!({
        "title": "Ovens", "client_id": client, "amount": "12500.50", "expected_close_date": "2026-12-01",
        "source": "Website",
    });
    let deal = user.deal(body).await;
    let events = user.take_events(&world).await;
    let expected = json!({
        "id": deal["id"], "title": "Ovens", "amount": 12500.5, "status": "open", "priority": "medium",
        "pipeline_id": deal["pipeline_id"], "phase_id": deal["phase_id"], "client_id": client,
        "expected_close_date": "2026-12-01", "source": "Website",
    });
    assert_eq!(events, [("deal.created".to_owned(), expected)]);
    for (status, expected) in [
        ("won", vec!["deal.created", "deal.won"]),
        ("lost", vec!["deal.created", "deal.lost"]),
        ("open", vec!["deal.created"]),
    ] {
        user.deal(json!({"title": "T", "client_id": client, "status": status})).await;
        assert_eq!(user.take_event_names(&world).await, expected, "{status}");
    }
}

#[tokio::test]
async fn each_way_of_changing_a_deal_emits_the_same_events() {
    let world = World::new().await;
    let user = world.user().await;
    let client = user.client("Mill").await;
    let board = user.board().await;
    let deal = user.titled_deal(&client, "Ovens").await;
    user.take_events(&world).await;
    let [first, second] = [phase(&board[0], 0), phase(&board[0], 1)];

    user.act(&deal, "move", json!({"phase_id": second, "status": "won"})).await.expect(200);
    let events = user.take_events(&world).await;
    let names: Vec<&str> = events.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["deal.phase_changed", "deal.won"]);
    assert_eq!((&events[0].1["from"], &events[0].1["to"]), (&json!(first), &json!(second)));
    assert_eq!(events[1].1["status"], "won");

    user.patch(&deal, json!({"phase_id": first, "status": "lost"})).await.expect(200);
    assert_eq!(user.take_event_names(&world).await, ["deal.phase_changed", "deal.lost"]);

    let quiet: [(&str, Value); 3] = [
        ("reopening", json!({"status": "open"})),
        ("a title", json!({"title": "Mills"})),
        ("what it is already", json!({"status": "open", "phase_id": first})),
    ];
    for (what, body) in quiet {
        user.patch(&deal, body).await.expect(200);
        assert_eq!(user.take_event_names(&world).await, [""; 0], "{what} emits no event");
    }
}

#[tokio::test]
async fn the_events_of_a_deal_are_in_the_order_in_which_they_happened() {
    let world = World::new().await;
    let user = world.user().await;
    let client = user.client("Mill").await;
    let deal = user.titled_deal(&client, "Ovens").await;
    for action in ["win", "lose", "win"] {
        user.act(&deal, action, json!({})).await.expect(200);
    }
    let events: Vec<String> = sqlx::query_scalar(
        "select event from crm.log where event is not null and record_id = $1 order by sequence",
    )
    .bind(id(&deal))
    .fetch_all(&mut world.database.connect().await)
    .await
    .unwrap();
    assert_eq!(events, ["deal.created", "deal.won", "deal.lost", "deal.won"]);
}
