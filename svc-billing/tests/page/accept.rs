//! Accepting a quote on its page.

use chrono::TimeDelta;
use serde_json::json;

use crate::world::{World, says, text};

const BUTTON: &str = "<button class=\"button\" type=\"submit\">";

#[tokio::test]
async fn an_open_quote_is_accepted_once_and_its_page_says_so() {
    let world = World::start().await;
    let quote = world.final_quote().await;
    says(&world.page(&quote).await, &[BUTTON, "Wacht op uw akkoord", "Geldig tot en met 15 december 2026."]);
    let answer = world.accept(&quote).await.expect(303);
    assert_eq!(answer.header("location"), Some(quote.page.as_str()));
    let page = world.page(&quote).await;
    says(&page, &["U hebt deze offerte geaccepteerd op 15 november 2026."]);
    assert!(!page.contains(BUTTON));
    world.clock.advance(TimeDelta::days(2));
    world.accept(&quote).await.expect(303);
    assert_eq!(world.count_events(&quote, "quote.accepted").await, 1);
    let shown = world.get(&quote).await;
    assert_eq!(shown["payment_status"], "accepted");
    assert_eq!(shown["meta"]["accepted_at"], "2026-11-15T11:00:00.123Z");
    let accepted = shown["meta"]["history"].as_array().unwrap().iter().find(|e| e["event"] == "accepted");
    assert_eq!(accepted.unwrap()["actor"], "", "nobody with a key did it");
}

#[tokio::test]
async fn a_quote_can_be_accepted_on_its_last_day_and_not_after() {
    let world = World::start().await;
    let quote = world.create("quotes", json!({"due_date": "2026-11-16"})).await;
    let other = world.create("quotes", json!({"due_date": "2026-11-16"})).await;
    // 23:59 in Amsterdam.
    world.clock.advance(TimeDelta::minutes(35 * 60 + 59));
    world.accept(&quote).await.expect(303);
    assert_eq!(world.get(&quote).await["payment_status"], "accepted");
    world.clock.advance(TimeDelta::minutes(1));
    let page = world.page(&other).await;
    says(&page, &["Verlopen", "Deze offerte was geldig tot en met 16 november 2026."]);
    assert!(!page.contains(BUTTON));
    let answer = world.accept(&other).await.expect(303);
    assert_eq!(answer.header("location"), Some(other.page.as_str()), "back to the page, which tells");
    assert_eq!(world.get(&other).await["payment_status"], "open");
    assert_eq!(world.count_events(&other, "quote.accepted").await, 0);
}

#[tokio::test]
async fn a_draft_and_a_quote_with_a_status_of_its_own_cannot_be_accepted() {
    let world = World::start().await;
    let draft = world.create("quotes", json!({"generation_mode": "draft"})).await;
    let lost = world.create("quotes", json!({"payment_status": "lost"})).await;
    for (quote, status, said) in [(&draft, "draft", "Concept"), (&lost, "lost", "Gesloten")] {
        let page = world.page(quote).await;
        says(&page, &[said]);
        assert!(!page.contains(BUTTON), "{status}");
        world.accept(quote).await.expect(303);
        assert_eq!(world.get(quote).await["payment_status"], status);
        assert_eq!(world.count_events(quote, "quote.accepted").await, 0);
    }
}

#[tokio::test]
async fn only_quotes_can_be_accepted() {
    let world = World::start().await;
    for list in ["invoices", "workorders"] {
        let document = world.create(list, json!({})).await;
        let answer = world.accept(&document).await.expect(404);
        says(&text(&answer), &["This page is not here"]);
        assert!(!world.page(&document).await.contains("/accept\""));
    }
}

#[tokio::test]
async fn two_who_accept_at_once_accept_once() {
    let world = World::start().await;
    let quote = world.final_quote().await;
    let (one, two) = tokio::join!(world.accept(&quote), world.accept(&quote));
    one.expect(303);
    two.expect(303);
    assert_eq!(world.count_events(&quote, "quote.accepted").await, 1);
}
