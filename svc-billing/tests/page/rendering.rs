//! How often PDFs are rendered: whoever has the link of a draft can ask for its PDF as often as they like.

use futures::future::join_all;
use serde_json::json;

use crate::world::World;

/// How many PDFs of drafts this process has rendered. Each test has a process of its own.
fn renders() -> u64 {
    let shown = chassis_service::telemetry::metrics().unwrap().render();
    let line = shown.lines().find(|line| line.starts_with("pdf_renders_total{kind=\"draft\"}"));
    line.map_or(0, |line| line.rsplit(' ').next().unwrap().parse().unwrap())
}

#[tokio::test]
async fn a_draft_is_rendered_once_for_each_content_however_many_ask() {
    let before = renders();
    let world = World::start().await;
    let draft = world.create("invoices", json!({"generation_mode": "draft"})).await;
    let path = format!("{}/pdf", draft.page);
    let first = join_all((0..20).map(|_| world.open(&path))).await;
    let first: Vec<_> = first.into_iter().map(|answer| answer.expect(200).body).collect();
    assert!(first[0].starts_with(b"%PDF") && first.iter().all(|body| *body == first[0]));
    assert_eq!(renders() - before, 1, "one render for all");
    world.open(&path).await.expect(200);
    assert_eq!(renders() - before, 1, "kept");
    world.api.patch(&draft.api, json!({"title": "Koek voor december"})).await.expect(200);
    let changed = world.open(&path).await.expect(200).body;
    assert_eq!(renders() - before, 2, "it shows something else now");
    assert_ne!(changed, first[0]);
    // A draft follows its client.
    let client = format!("/v1/clients/{}", world.client);
    world.api.patch(&client, json!({"company_name": "Klant en Dochters"})).await.expect(200);
    world.open(&path).await.expect(200);
    world.open(&path).await.expect(200);
    assert_eq!(renders() - before, 3);
}
