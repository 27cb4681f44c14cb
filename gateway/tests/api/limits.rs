use chrono::TimeDelta;
use gateway::testing::Api;
use serde_json::json;

use crate::support::Mesh;

async fn fire(api: &Api) -> u16 {
    api.post("/v1/webhooks/trigger", json!({"event": "some.event"})).await.status.as_u16()
}

async fn accepted_of(apis: [&Api; 2], count: usize) -> usize {
    let shots = (0..count).map(|index| {
        let api = apis[index % 2].clone();
        tokio::spawn(async move { fire(&api).await })
    });
    let mut accepted = 0;
    for shot in shots.collect::<Vec<_>>() {
        match shot.await.unwrap() {
            200 => accepted += 1,
            status => assert_eq!(status, 429),
        }
    }
    accepted
}

#[tokio::test]
async fn any_sixty_seconds_accept_thirty_triggers_over_two_gateways() {
    let mesh = Mesh::start().await;
    let other = mesh.another_gateway().await;
    let one = mesh.api(&["webhooks.write"]).await;
    let two = other.api_with(one.key());
    assert_eq!(accepted_of([&one, &two], 10).await, 10);
    mesh.clock.advance(TimeDelta::seconds(40));
    assert_eq!(accepted_of([&one, &two], 30).await, 20, "10 of 40 s ago still count");
    mesh.clock.advance(TimeDelta::milliseconds(19_999));
    assert_eq!(accepted_of([&one, &two], 4).await, 0);
    mesh.clock.advance(TimeDelta::milliseconds(1));
    assert_eq!(accepted_of([&one, &two], 20).await, 10, "the first 10 are 60 s old");
    let refused = one.post("/v1/webhooks/trigger", json!({"event": "some.event"})).await.expect(429);
    assert_eq!(refused.at("/code"), "rate_limited");
    assert_eq!(refused.header("retry-after"), Some("40"), "until the 20 of 20 s ago are over");
    assert!(refused.header("ratelimit-policy").unwrap().contains("q=30;w=60"));
    assert!(refused.header("ratelimit").unwrap().contains("r=0"));
    let another_key = mesh.api(&["webhooks.write"]).await;
    assert_eq!(fire(&another_key).await, 200, "keys do not share a limit");
}

#[tokio::test]
async fn a_refused_request_counts_against_the_limit() {
    let mesh = Mesh::start().await;
    let api = mesh.api(&["webhooks.write"]).await;
    for _ in 0..30 {
        api.post("/v1/webhooks/trigger", json!({})).await.expect(422);
    }
    assert_eq!(fire(&api).await, 429);
}

#[tokio::test]
async fn a_key_has_its_burst_and_then_waits() {
    // One a minute: nothing comes back while the test runs.
    let mesh = Mesh::start_with(&["--rate-per-minute", "1", "--rate-burst", "3"]).await;
    let api = mesh.api(&["relations.read"]).await;
    for left in ["r=2", "r=1", "r=0"] {
        let answer = api.get("/v1/clients").await.expect(200);
        assert!(answer.header("ratelimit").unwrap().contains(left), "{:?}", answer.header("ratelimit"));
    }
    let refused = api.get("/v1/clients").await.expect(429);
    let wait: u64 = refused.header("retry-after").unwrap().parse().unwrap();
    assert!((1..=60).contains(&wait), "{wait}");
    api.get("/v1/nowhere").await.expect(404);
}
