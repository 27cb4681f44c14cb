//! What the list of tickets can be narrowed to, and the counters of its filters.

use chassis_testing::{assert_filters_counted, expected_faults};
use proto::support::TicketChannelInput;
use serde_json::json;

use crate::world::{User, World, mail, text};

/// The subjects that a query selects, newest first. Checks the total.
async fn found(user: &User, query: &str) -> Vec<String> {
    let answer = user.api.get(&format!("/v1/tickets?{query}")).await.expect(200);
    let data = answer.at("/data");
    let subjects: Vec<String> =
        data.as_array().unwrap().iter().map(|ticket| text(ticket, "subject")).collect();
    assert_eq!(answer.at("/meta/total"), subjects.len(), "{query}");
    subjects
}

#[tokio::test]
async fn tickets_are_filtered_by_status_priority_client_channel_and_source() {
    let world = World::new().await;
    let (user, stranger) = (world.user().await, world.user().await);
    let client = user.client(json!({"company_name": "Mill"})).await;
    let bread = user.ticket(json!({"subject": "Bread", "priority": "high", "client_id": client})).await;
    user.ticket(json!({"subject": "Rolls", "client_id": client})).await;
    user.receive(&mail("a@client.example", "", "Cake", "Where is it?")).await;
    stranger.ticket(json!({"subject": "Foreign", "priority": "high"})).await;
    user.patch(&text(&bread, "id"), json!({"status": "solved"})).await.expect(200);
    let channel = text(&bread["meta"], "channel_id");
    let input = TicketChannelInput { name: "Other".into(), active: Some(true), ..Default::default() };
    let other = user.add_channel(input).await.unwrap().id;
    for (query, expected) in [
        ("status=solved", vec!["Bread"]),
        ("status=new", vec!["Cake", "Rolls"]),
        ("status=nowhere", vec![]),
        ("priority=high", vec!["Bread"]),
        ("priority=normal&status=new", vec!["Cake", "Rolls"]),
        ("priority=urgent", vec![]),
        ("source=email", vec!["Cake"]),
        ("source=api&priority=normal", vec!["Rolls"]),
        (&format!("client_id={client}"), vec!["Rolls", "Bread"]),
        (&format!("client_id={client}&status=new&search=roll"), vec!["Rolls"]),
        (&format!("channel_id={channel}"), vec!["Cake", "Rolls", "Bread"]),
        (&format!("channel_id={other}"), vec![]),
        ("channel_id=x", vec![]),
        ("client_id=x", vec![]),
    ] {
        assert_eq!(found(&user, query).await, expected, "{query}");
        if let Some(second) = expected.get(1) {
            let page = user.api.get(&format!("/v1/tickets?{query}&per_page=1&page=2")).await.expect(200);
            assert_eq!(page.at("/meta/total"), expected.len(), "{query}");
            assert_eq!(page.at("/data/0/subject"), *second, "{query}");
        }
    }
    let mut refused = user.api.get("/v1/tickets?priority=weird&source=fax").await.expect(422).faults();
    refused.sort();
    assert_eq!(refused, expected_faults(&[("priority", "not_allowed"), ("source", "not_allowed")]));
}

#[tokio::test]
async fn whatever_changes_a_ticket_changes_the_counters_of_its_filters() {
    let world = World::new().await;
    let user = world.user().await;
    let ann = text(&user.ann().await, "id");
    user.receive(&mail("a@client.example", "", "Cake", "Where is it?")).await;
    // Old enough to be in a segment.
    world.clock.advance(chrono::TimeDelta::hours(1));
    user.patch(&ann, json!({"priority": "urgent"})).await.expect(200);
    user.reply(&ann, "Tomorrow.").await;
    assert_eq!(found(&user, "status=waiting").await, ["Bread"]);
    user.write(&ann, json!({"body": "A note.", "type": "note"})).await.expect(201);
    assert_filters_counted(&world.database, "ticket", "support.ticket", "true").await;
    user.patch(&ann, json!({"status": "closed", "priority": "low"})).await.expect(200);
    assert_eq!(found(&user, "status=waiting").await, [""; 0]);
    assert_filters_counted(&world.database, "ticket", "support.ticket", "true").await;
}
