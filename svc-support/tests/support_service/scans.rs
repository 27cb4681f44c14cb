//! The scans for stale tickets and unanswered messages.

use chassis_testing::{run_scans, set_threshold};
use chrono::TimeDelta;
use serde_json::{Value, json};

use crate::world::{User, World, mail, text};

const MOMENT: TimeDelta = TimeDelta::milliseconds(1);
const DAY: TimeDelta = TimeDelta::days(1);

/// Runs the scans of an account and returns the new events.
async fn scan(world: &World, user: &User) -> Vec<(String, Value)> {
    run_scans(&world.support, &user.mesh).await;
    sqlx::query_as(
        "with gone as (select * from support.log where account_id = $1 and event is not null),
            forgotten as (update support.log set event = null where account_id = $1)
         select event, data::json from gone where event in ('ticket.stale', 'mail.unanswered') order by id",
    )
    .bind(user.account().id)
    .fetch_all(&mut world.database.connect().await)
    .await
    .unwrap()
}

/// Lets time pass and runs the scans. Returns the subjects of the tickets that the events are about.
async fn after(world: &World, user: &User, time: TimeDelta, event: &str) -> Vec<String> {
    world.clock.advance(time);
    let events = scan(world, user).await;
    let events = events.iter().filter(|(kind, _)| kind == event);
    let mut subjects: Vec<String> = events.map(|(_, data)| text(data, "subject")).collect();
    subjects.sort();
    subjects
}

#[tokio::test]
async fn a_ticket_without_messages_is_reported_once_after_each_message() {
    let world = World::new().await;
    let user = world.user().await;
    let id = text(&user.ann().await, "id");
    let after = async |time| after(&world, &user, time, "ticket.stale").await;

    assert_eq!(after(DAY * 3 - MOMENT).await, [""; 0]);
    world.clock.advance(MOMENT);
    let events = scan(&world, &user).await;
    let expected = json!({
        "id": id, "number": "T-00001", "subject": "Bread", "status": "new", "priority": "normal", "client_id": null,
        "client_name": "Ann", "client_email": "ann@client.example", "source": "api", "days": 3,
    });
    assert_eq!(events, [("ticket.stale".to_owned(), expected)]);
    assert_eq!(after(DAY * 9).await, [""; 0], "once");

    user.patch(&id, json!({"subject": "Rolls"})).await.expect(200);
    assert_eq!(after(DAY * 3).await, [""; 0], "a change is not a message");
    user.write(&id, json!({"body": "n", "type": "note"})).await.expect(201);
    assert_eq!(after(DAY * 3 - MOMENT).await, [""; 0]);
    assert_eq!(after(MOMENT).await, ["Rolls"], "another silence");
    user.reply(&id, "Hello").await;
    assert_eq!(after(DAY * 3).await, ["Rolls"]);
}

#[tokio::test]
async fn a_settled_ticket_is_not_stale_and_a_reopened_one_is() {
    let world = World::new().await;
    let user = world.user().await;
    let id = text(&user.ann().await, "id");
    let after = async |time| after(&world, &user, time, "ticket.stale").await;
    for status in ["solved", "closed"] {
        user.patch(&id, json!({"status": status})).await.expect(200);
        assert_eq!(after(DAY * 5).await, [""; 0], "{status}");
    }
    user.patch(&id, json!({"status": "open"})).await.expect(200);
    assert_eq!(after(TimeDelta::zero()).await, ["Bread"]);
    user.patch(&id, json!({"status": "closed"})).await.expect(200);
    assert_eq!(after(DAY).await, [""; 0]);
    user.patch(&id, json!({"status": "open"})).await.expect(200);
    assert_eq!(after(DAY).await, [""; 0], "the same silence");
}

#[tokio::test]
async fn each_message_without_a_reply_is_reported_once() {
    let world = World::new().await;
    let user = world.user().await;
    user.receive(&mail("1@x", "", "Bread", "Where is it?")).await;
    let after = async |time| after(&world, &user, time, "mail.unanswered").await;
    assert_eq!(after(DAY - MOMENT).await, [""; 0]);
    let received = user.receive(&mail("2@x", "In-Reply-To: <1@x>\r\n", "Bread", "Hello?")).await;
    world.clock.advance(MOMENT);
    let events = scan(&world, &user).await;
    assert_eq!(events.len(), 1, "{events:?}");
    let (kind, data) = &events[0];
    assert_eq!((kind.as_str(), text(data, "id")), ("mail.unanswered", received.ticket_id.clone()));
    assert_eq!((&data["message"]["excerpt"], &data["hours"]), (&json!("Where is it?"), &json!(24)));
    assert_eq!(data["message"]["direction"], "in");
    assert_eq!(after(DAY - MOMENT).await, ["Bread"], "the second one");
    assert_eq!(after(DAY).await, [""; 0], "once");
}

#[tokio::test]
async fn a_reply_or_a_settled_ticket_ends_the_waiting_and_a_note_does_not() {
    let world = World::new().await;
    let user = world.user().await;
    let mut tickets = Vec::new();
    for subject in ["replied", "noted", "solved"] {
        let received = user.receive(&mail(&format!("{subject}@x"), "", subject, "Hello")).await;
        tickets.push(received.ticket_id);
    }
    world.clock.advance(MOMENT);
    user.reply(&tickets[0], "Hello").await;
    user.write(&tickets[1], json!({"body": "n", "type": "note"})).await.expect(201);
    user.patch(&tickets[2], json!({"status": "solved"})).await.expect(200);
    assert_eq!(after(&world, &user, DAY, "mail.unanswered").await, ["noted"]);
    user.receive(&mail("again@x", "In-Reply-To: <replied@x>\r\n", "Re: replied", "And now?")).await;
    assert_eq!(after(&world, &user, DAY, "mail.unanswered").await, ["replied"], "a new message");
}

#[tokio::test]
async fn each_account_has_its_own_thresholds_and_tickets() {
    let world = World::new().await;
    let (user, other) = (world.user().await, world.user().await);
    for user in [&user, &other] {
        user.receive(&mail("1@x", "", "Bread", "Hello")).await;
    }
    set_threshold(&world.support, &user.mesh, "mail.unanswered", Some(2)).await;
    set_threshold(&world.support, &user.mesh, "ticket.stale", Some(1)).await;
    assert_eq!(after(&world, &user, TimeDelta::hours(2), "mail.unanswered").await, ["Bread"]);
    assert_eq!(after(&world, &user, DAY, "ticket.stale").await, ["Bread"]);
    let events = scan(&world, &other).await;
    assert_eq!(events.iter().map(|(kind, _)| kind.as_str()).collect::<Vec<_>>(), ["mail.unanswered"]);
}
