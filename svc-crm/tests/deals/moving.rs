use chassis_testing::{assert_filters_counted, expected_faults};
use chrono::TimeDelta;
use serde_json::{Value, json};

use crate::support::{World, phase};

#[tokio::test]
async fn a_move_changes_phase_and_status_and_the_history_keeps_both() {
    let world = World::new().await;
    let user = world.user().await;
    let client = user.client("Mill").await;
    let board = user.board().await;
    let deal = user.titled_deal(&client, "Ovens").await;
    let minute = |minute: i32| json!(format!("2026-11-15T11:{minute:02}:00.123Z"));
    let bodies = [
        json!({"phase_id": phase(&board[0], 1)}),
        json!({"status": "lost"}),
        json!({"phase_id": phase(&board[0], 2), "status": "open"}),
        json!({"phase_id": phase(&board[0], 2), "status": "won"}),
    ];
    for body in &bodies {
        world.clock.advance(TimeDelta::minutes(1));
        let moved = user.act(&deal, "move", body.clone()).await.expect(200).at("/data");
        for (name, value) in body.as_object().unwrap() {
            assert_eq!(moved[name], *value, "{name}");
        }
        if body["status"] == "lost" {
            assert_eq!((&moved["meta"]["lost_at"], &moved["meta"]["won_at"]), (&minute(2), &Value::Null));
        }
    }
    let others = user.titled_deal(&client, "Mixers").await;
    world.clock.advance(TimeDelta::hours(1));
    user.patch(&others, json!({"phase_id": phase(&board[0], 3)})).await.expect(200);
    let source = user.api.get("/v1/deal-sources").await.expect(200).at("/data")[0]["name"].clone();
    user.patch(&others, json!({"priority": "high", "source": source})).await.expect(200);
    user.delete(&user.titled_deal(&client, "Scales").await).await.expect(200);
    assert_filters_counted(&world.database, "deal", "crm.deal", "true").await;
    let deal = user.get(&deal).await;
    assert_eq!((&deal["meta"]["won_at"], &deal["meta"]["lost_at"]), (&minute(4), &Value::Null));
    assert_eq!((&deal["meta"]["phase_since"], &deal["meta"]["updated_at"]), (&minute(3), &minute(4)));
    let entry = |step: &Value| (step["at"].clone(), step["phase"].clone(), step["status"].clone());
    let history: Vec<_> = deal["meta"]["history"].as_array().unwrap().iter().map(entry).collect();
    let expected = [
        (0, "Nieuw", "open"),
        (1, "In gesprek", "open"),
        (2, "In gesprek", "lost"),
        (3, "Offerte verstuurd", "open"),
        (4, "Offerte verstuurd", "won"),
    ];
    assert_eq!(history, expected.map(|(at, phase, status)| (minute(at), json!(phase), json!(status))));
}

#[tokio::test]
async fn a_move_needs_a_phase_of_the_pipeline_or_a_status() {
    let world = World::new().await;
    let user = world.user().await;
    let client = user.client("Mill").await;
    user.pipeline("Rent", &["Ask"]).await;
    let board = user.board().await;
    let deal = user.titled_deal(&client, "Ovens").await;
    for (body, expected) in [
        (json!({}), ("", "no_field")),
        (json!({"title": "Mills"}), ("", "no_field")),
        (json!({"status": "closed"}), ("/status", "not_allowed")),
        (json!({"phase_id": 5}), ("/phase_id", "not_a_string")),
        (json!({"phase_id": "x", "status": "won"}), ("/phase_id", "unknown_reference")),
        (json!({"phase_id": phase(&board[1], 0)}), ("/phase_id", "conflicting")),
    ] {
        let faults = user.act(&deal, "move", body.clone()).await.expect(422).faults();
        assert_eq!(faults, expected_faults(&[expected]), "{body}");
    }
    assert_eq!(user.get(&deal).await["status"], "open", "a refused move moves nothing");
}

#[tokio::test]
async fn win_and_lose_can_be_repeated_and_turned_around() {
    let world = World::new().await;
    let user = world.user().await;
    let client = user.client("Mill").await;
    let deal = user.titled_deal(&client, "Ovens").await;
    user.take_events(&world).await;
    let mut seen = Vec::new();
    for action in ["win", "win", "lose", "lose", "win"] {
        world.clock.advance(TimeDelta::minutes(1));
        let answer = user.act(&deal, action, json!({})).await.expect(200).at("/data");
        seen.push((
            answer["status"].clone(),
            answer["meta"]["won_at"].clone(),
            answer["meta"]["lost_at"].clone(),
        ));
    }
    let time = |minute: u8| json!(format!("2026-11-15T11:0{minute}:00.123Z"));
    let (won, lost) =
        (|at| (json!("won"), time(at), Value::Null), |at| (json!("lost"), Value::Null, time(at)));
    assert_eq!(seen, [won(1), won(1), lost(3), lost(3), won(5)]);
    assert_eq!(user.take_event_names(&world).await, ["deal.won", "deal.lost", "deal.won"]);
    assert_eq!(user.get(&deal).await["meta"]["history"].as_array().unwrap().len(), 4);
}

#[tokio::test]
async fn a_long_history_shows_its_end() {
    let world = World::new().await;
    let user = world.user().await;
    let client = user.client("Mill").await;
    let deal = user.titled_deal(&client, "Ovens").await;
    for _ in 0..51 {
        user.act(&deal, "win", json!({})).await.expect(200);
        user.act(&deal, "move", json!({"status": "open"})).await.expect(200);
    }
    let history = user.get(&deal).await["meta"]["history"].clone();
    let history = history.as_array().unwrap();
    assert_eq!(history.len(), 100, "of 103");
    assert_eq!(history[99]["status"], "open");
}
