//! The events of tickets.

use serde_json::{Value, json};

use crate::world::{User, World, mail, text};

/// Kind, version and data of the events of an account's tickets, in their order.
async fn events(world: &World, user: &User) -> Vec<(String, i64, Value)> {
    sqlx::query_as(
        "select event, sequence / 1000, data::json from support.log
         where event is not null and account_id = $1 and kind = 'ticket' order by record_id, sequence",
    )
    .bind(user.account().id)
    .fetch_all(&mut world.database.connect().await)
    .await
    .unwrap()
}

fn kinds(events: &[(String, i64, Value)]) -> Vec<(&str, i64)> {
    events.iter().map(|(kind, version, _)| (kind.as_str(), *version)).collect()
}

#[tokio::test]
async fn the_events_of_a_ticket_are_in_order() {
    let world = World::new().await;
    let user = world.user().await;
    let id = text(&user.ann().await, "id");
    user.reply(&id, "Hello").await;
    user.write(&id, json!({"body": "between us", "type": "note"})).await.expect(201);
    user.patch(&id, json!({"status": "closed"})).await.expect(200);
    user.patch(&id, json!({"status": "closed", "subject": "Bread"})).await.expect(200);
    let events = events(&world, &user).await;
    assert_eq!(
        kinds(&events),
        [
            ("ticket.created", 1),
            ("ticket.message", 2),
            ("ticket.status_changed", 2),
            ("ticket.message", 3),
            ("ticket.status_changed", 4),
            ("ticket.closed", 4),
        ]
    );
    assert_eq!((&events[2].2["from"], &events[2].2["to"]), (&json!("new"), &json!("waiting")));
    assert_eq!(events[3].2["message"]["type"], "note");
    assert!(!events.iter().any(|(.., data)| data.to_string().contains("between us")), "a note stays inside");
    let expected = json!({
        "id": id, "number": "T-00001", "subject": "Bread", "status": "new", "priority": "normal", "client_id": null,
        "client_name": "Ann", "client_email": "ann@client.example", "source": "api", "automatic": false,
    });
    assert_eq!(events[0].2, expected);
}

#[tokio::test]
async fn a_mail_emits_events_of_the_ticket_and_of_the_message() {
    let world = World::new().await;
    let user = world.user().await;
    user.receive(&mail("1@x", "", "A", "Hello")).await;
    user.receive(&mail("2@x", "In-Reply-To: <1@x>\r\n", "A", "More")).await;
    user.receive(&mail("2@x", "In-Reply-To: <1@x>\r\n", "A", "More")).await;
    let events = events(&world, &user).await;
    assert_eq!(
        kinds(&events),
        [
            ("ticket.created", 1),
            ("ticket.inbound_message", 1),
            ("ticket.message", 1),
            ("ticket.inbound_message", 2),
            ("ticket.message", 2),
            ("ticket.status_changed", 2),
        ]
    );
    assert_eq!(events[1].2["message"]["excerpt"], "Hello");
}
