use futures::future::join_all;
use proto::crm::DeletePhaseRequest;
use serde_json::json;

use crate::support::{World, phase};

#[tokio::test]
async fn many_concurrent_wins_emit_one_event() {
    let world = World::new().await;
    let user = world.user().await;
    let client = user.client("Mill").await;
    let deal = user.titled_deal(&client, "Ovens").await;
    user.take_events(&world).await;
    let wins = join_all((0..12).map(|_| user.act(&deal, "win", json!({})))).await;
    for answer in wins {
        assert_eq!(answer.expect(200).at("/data/status"), "won");
    }
    assert_eq!(user.take_event_names(&world).await, ["deal.won"]);
    assert_eq!(user.total("status=won").await, 1);
}

#[tokio::test]
async fn concurrent_moves_leave_a_history_without_gaps() {
    let world = World::new().await;
    let user = world.user().await;
    let client = user.client("Mill").await;
    let board = user.board().await;
    let deal = user.titled_deal(&client, "Ovens").await;
    user.take_events(&world).await;
    let moves = (0..16).map(|number| {
        let body = json!({"phase_id": phase(&board[0], number % 4)});
        let user = user.clone();
        let deal = deal.clone();
        async move { user.act(&deal, "move", body).await.expect(200) }
    });
    join_all(moves).await;
    let steps = user.get(&deal).await["meta"]["history"].as_array().unwrap().clone();
    let mut events: Vec<(i64, String, String)> = sqlx::query_as(
        "select sequence, data::json ->> 'from', data::json ->> 'to' from crm.log where event is not null and account_id = $1",
    )
    .bind(user.account.id)
    .fetch_all(&mut world.database.connect().await)
    .await
    .unwrap();
    events.sort();
    assert_eq!(events.len() + 1, steps.len());
    for (pair, (_, from, to)) in steps.windows(2).zip(&events) {
        assert_eq!((&pair[0]["phase_id"], &pair[1]["phase_id"]), (&json!(from), &json!(to)));
    }
}

#[tokio::test]
async fn no_deal_is_left_in_a_phase_that_is_removed_meanwhile() {
    let world = World::new().await;
    let user = world.user().await;
    let client = user.client("Mill").await;
    let board = user.board().await;
    for index in [3, 2, 1] {
        let phase = phase(&board[0], index);
        let create = async {
            let body = json!({"title": "T", "client_id": client, "phase_id": phase});
            user.api.post("/v1/deals", body).await
        };
        let remove = async {
            let request = user.request(DeletePhaseRequest { id: phase.clone() });
            user.pipelines().delete_phase(request).await
        };
        let (created, removed) = futures::future::join(create, remove).await;
        match removed {
            Ok(_) => assert_eq!(created.status, 422),
            Err(status) => {
                assert_eq!(status.code(), tonic::Code::FailedPrecondition, "{status:?}");
                assert_eq!(created.status, 201);
            }
        }
    }
}
