//! Concurrent requests: no duplicate number, no gap, no duplicate mail, no lost message.

use std::collections::HashSet;

use futures::future::join_all;
use proto::support::IntakeOutcome;
use serde_json::json;

use crate::world::{World, mail, text};

#[tokio::test]
async fn concurrent_tickets_get_numbers_without_gaps() {
    let world = World::new().await;
    let user = world.user().await;
    let made =
        join_all((0..20).map(|number| user.ticket(json!({"subject": format!("Ticket {number}")})))).await;
    let numbers: HashSet<String> = made.iter().map(|ticket| text(ticket, "number")).collect();
    assert_eq!(numbers, (1..=20).map(|number| format!("T-{number:05}")).collect());
    assert_eq!(user.api.get("/v1/tickets").await.at("/meta/total"), 20);
}

#[tokio::test]
async fn a_mail_that_comes_many_times_concurrently_is_stored_once() {
    let world = World::new().await;
    let user = world.user().await;
    let message = mail("1@x", "", "A", "Hello");
    let got = join_all((0..8).map(|_| user.receive(&message))).await;
    let opened = got.iter().filter(|answer| answer.outcome() == IntakeOutcome::Opened).count();
    assert_eq!(opened, 1, "{got:?}");
    let tickets: HashSet<&String> = got.iter().map(|answer| &answer.ticket_id).collect();
    assert_eq!(tickets.len(), 1);
    assert_eq!(user.api.get("/v1/tickets").await.at("/meta/total"), 1);
}

#[tokio::test]
async fn concurrent_messages_of_a_ticket_are_all_stored() {
    let world = World::new().await;
    let user = world.user().await;
    let id = text(&user.ann().await, "id");
    let mails = join_all((0..5).map(|number| {
        let (user, mail) = (&user, mail(&format!("{number}@x"), "", "Re: [T-00001]", "x"));
        async move { user.receive(&mail).await.ticket_id }
    }));
    let replies = join_all((0..5).map(|_| user.reply(&id, "x")));
    let (mails, _) = tokio::join!(mails, replies);
    assert!(mails.iter().all(|ticket| *ticket == id));
    assert_eq!(user.messages(&id).await.len(), 10);
    assert_eq!(user.get(&id).await["meta"]["message_count"], 10);
}
