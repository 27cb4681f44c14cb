//! That a quote was looked at is told once a day.

use chrono::TimeDelta;
use http::Method;
use serde_json::json;
use sqlx::Executor;

use crate::world::World;

#[tokio::test]
async fn a_quote_that_is_looked_at_is_told_of_once_a_day_of_the_account() {
    let world = World::start().await;
    let quote = world.final_quote().await;
    let version = async || world.get(&quote).await["meta"]["version"].as_i64().unwrap();
    let before = version().await;
    for (hours, told) in [(0, 1), (0, 1), (11, 1), (1, 2), (0, 2), (24, 3)] {
        world.clock.advance(TimeDelta::hours(hours));
        world.page(&quote).await;
        assert_eq!(world.count_events(&quote, "quote.viewed").await, told, "{hours} hours later");
        assert_eq!(version().await - before, told, "the history shows it");
    }
    let history = world.get(&quote).await["meta"]["history"].clone();
    let views = history.as_array().unwrap().iter().filter(|entry| entry["event"] == "viewed").count();
    assert_eq!(views, 3);
}

#[tokio::test]
async fn a_look_whether_the_link_leads_somewhere_is_no_view() {
    let world = World::start().await;
    let quote = world.final_quote().await;
    let head = world.visitor.send(Method::HEAD, &quote.page, &[], "").await.expect(200);
    assert!(head.body.is_empty());
    assert_eq!(world.count_events(&quote, "quote.viewed").await, 0);
    world.page(&quote).await;
    assert_eq!(world.count_events(&quote, "quote.viewed").await, 1);
}

#[tokio::test]
async fn drafts_other_documents_and_pdfs_are_looked_at_in_silence() {
    let world = World::start().await;
    let draft = world.create("quotes", json!({"generation_mode": "draft"})).await;
    let invoice = world.create("invoices", json!({})).await;
    let quote = world.final_quote().await;
    world.page(&draft).await;
    world.page(&invoice).await;
    world.open(&format!("{}/pdf", quote.page)).await.expect(200);
    for document in [&draft, &invoice, &quote] {
        assert_eq!(world.count_events(document, "quote.viewed").await, 0);
    }
}

#[tokio::test]
async fn a_page_is_shown_even_when_the_view_cannot_be_noted() {
    let world = World::start().await;
    let quote = world.final_quote().await;
    let broken = "alter table billing.document_history add constraint no_views check (event <> 'viewed')";
    world.database.connect().await.execute(broken).await.unwrap();
    assert!(world.page(&quote).await.contains(&quote.number));
    assert_eq!(world.count_events(&quote, "quote.viewed").await, 0);
}
