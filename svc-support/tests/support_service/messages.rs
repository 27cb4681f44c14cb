//! Messages over REST, and the mail that replies go out as.

use std::sync::Arc;

use chassis_testing::eventually;
use proto::support::TicketChannelInput;
use serde_json::{Value, json};

use crate::world::{DOMAIN, World, header, text};

#[tokio::test]
async fn a_reply_is_mailed_and_the_ticket_waits() {
    let world = World::new().await;
    let user = world.user().await;
    let ticket = user.ann().await;
    let id = text(&ticket, "id");
    world.clock.advance(chrono::TimeDelta::minutes(1));
    let answer =
        user.write(&id, json!({"html": "<p onclick=x>It is <b>on</b> its way</p><script>x</script>"})).await;
    let answer = answer.expect(201);
    let message = answer.at("/data");
    let path = format!("/v1/tickets/{id}/messages/{}", text(&message, "id"));
    assert_eq!(answer.header("location"), Some(path.as_str()));
    assert_eq!(
        message,
        json!({
            "id": message["id"], "direction": "out", "type": "reply", "body": "It is on its way",
            "created_at": message["created_at"], "author": {"name": "Test", "email": ""}, "via_staff_save": false,
            "meta": {
                "html": "<p>It is <b>on</b> its way</p>", "to": ["ann@client.example"], "cc": [], "mail": "queued",
                "message_id": message["meta"]["message_id"], "attachments": [], "author_user_id": null, "version": 1,
                "updated_at": message["created_at"],
            },
        })
    );
    let after = user.get(&id).await;
    assert_eq!((&after["status"], &after["meta"]["message_count"]), (&json!("waiting"), &json!(1)));
    assert_eq!(after["meta"]["last_message_at"], message["created_at"]);

    eventually("the mail arrives", async || world.sink.received().len() == 1).await;
    let mail = world.sink.received().remove(0);
    assert_eq!(mail.recipients, ["ann@client.example"]);
    assert_eq!(
        header(&mail.message, "Message-ID"),
        Some(format!("<{}>", text(&message["meta"], "message_id")))
    );
    assert_eq!(header(&mail.message, "Subject").as_deref(), Some("Bread [T-00001]"));
    let reply_to = header(&mail.message, "Reply-To").unwrap();
    assert!(reply_to.contains("reply+") && reply_to.contains(DOMAIN), "{reply_to}");
    eventually("the message tells", async || {
        user.api.get(&path).await.expect(200).at("/data/meta/mail") == "sent"
    })
    .await;
    let mut shown = user.messages(&id).await.remove(0);
    shown["via_staff_save"] = json!(false);
    assert_eq!(shown["meta"]["version"], 2, "the mail was delivered");
    for field in ["mail", "version", "updated_at"] {
        shown["meta"][field] = message["meta"][field].clone();
    }
    assert_eq!(shown, message);
}

#[tokio::test]
async fn a_note_is_stored_and_not_mailed() {
    let world = World::new().await;
    let user = world.user().await;
    let id = text(&user.ann().await, "id");
    let body = json!({"body": "Call her", "type": "note", "to": "x@client.example", "author_user_id": 7,
                      "author_name": "Bob", "author_email": "bob@bakery.example"});
    let note = user.write(&id, body).await.expect(201).at("/data");
    assert_eq!((&note["type"], &note["meta"]["mail"]), (&json!("note"), &json!("none")));
    assert_eq!(note["author"], json!({"name": "Bob", "email": "bob@bakery.example"}));
    assert_eq!((&note["via_staff_save"], &note["meta"]["author_user_id"]), (&json!(true), &json!(7)));
    assert_eq!(user.get(&id).await["status"], "new");
    let queued: i64 = sqlx::query_scalar("select count(*) from support.mail")
        .fetch_one(&mut world.database.connect().await)
        .await
        .unwrap();
    assert_eq!(queued, 0);
}

#[tokio::test]
async fn a_reply_without_a_recipient_is_stored() {
    let world = World::new().await;
    let user = world.user().await;
    let id = text(&user.ticket(json!({"subject": "Phone call"})).await, "id");
    let reply = user.write(&id, json!({"body": "Hello", "cc": "bob@client.example"})).await.expect(201);
    assert_eq!(reply.at("/data/meta/mail"), "no_recipient");
    let reply = user
        .write(&id, json!({"body": "Hello", "to": "Ann@client.example, b@client.example"}))
        .await
        .expect(201);
    assert_eq!(reply.at("/data/meta/to"), json!(["ann@client.example", "b@client.example"]));
    assert_eq!(reply.at("/data/meta/mail"), "queued");
}

#[tokio::test]
async fn every_fault_of_a_message_is_reported() {
    let world = World::new().await;
    let user = world.user().await;
    let id = text(&user.ann().await, "id");
    let faults = async |body: Value| {
        let answer = user.write(&id, body).await.expect(422);
        answer.faults().into_iter().map(|(position, code)| format!("{position} {code}")).collect::<Vec<_>>()
    };
    let many: Vec<String> = (0..21).map(|number| format!("a{number}@b.nl")).collect();
    assert_eq!(faults(json!({})).await, ["/body required"]);
    assert_eq!(faults(json!({"body": " ", "html": ""})).await, ["/body required"]);
    assert_eq!(faults(json!({"body": 1})).await, ["/body not_a_string"]);
    assert_eq!(
        faults(json!({"body": "x", "type": "call", "to": "a@b.nl, no", "cc": "nor", "author_email": "x"}))
            .await,
        ["/type not_allowed", "/author_email bad_email", "/to bad_email", "/cc bad_email"]
    );
    assert_eq!(faults(json!({"body": "x", "to": many.join(",")})).await, ["/to too_many"]);
    assert_eq!(faults(json!({"body": "x".repeat(65_536)})).await, ["/body too_long"]);
    assert_eq!(user.messages(&id).await.len(), 0);
    user.write("019a8c5e-7d1b-7c3a-9f20-4b8d2a6e1c05", json!({"body": "x"})).await.expect(404);
    user.write("x", json!({})).await.expect(422);
    user.api.get(&format!("/v1/tickets/{id}/messages/x")).await.expect(404);
    user.api.get("/v1/tickets/x/messages").await.expect(404);
}

#[tokio::test]
async fn replies_go_out_through_the_first_channel_under_its_name() {
    let world = World::new().await;
    let user = world.user().await;
    let channel = TicketChannelInput {
        name: "Bakery".into(),
        from_name: "The Bakery".into(),
        email: "support@bakery.example".into(),
        ..TicketChannelInput::default()
    };
    // Before the one that every account has.
    user.add_channel(channel).await.unwrap();
    let id = text(&user.ann().await, "id");
    let reply = user.write(&id, json!({"body": "Hello", "plain_text_body": true})).await.expect(201);
    assert_eq!(reply.at("/data/author/email"), "support@bakery.example");
    assert_eq!(reply.at("/data/meta/html"), "");
    let sink = Arc::clone(&world.sink);
    eventually("the mail arrives", async || sink.received().len() == 1).await;
    let mail = sink.received().remove(0).message;
    let from = header(&mail, "From").unwrap();
    assert!(from.contains("The Bakery") && from.contains("no-reply@localhost"), "no key yet: {from}");
    assert!(header(&mail, "Content-Type").unwrap().starts_with("text/plain"), "{mail}");
}

#[tokio::test]
async fn a_replayed_reply_is_mailed_once() {
    let world = World::new().await;
    let user = world.user().await;
    let id = text(&user.ann().await, "id");
    let path = format!("/v1/tickets/{id}/messages");
    let first = user.api.post_keyed(&path, "k", json!({"body": "Hello"})).await.expect(201);
    let again = user.api.post_keyed(&path, "k", json!({"body": "Hello"})).await.expect(201);
    assert_eq!(first.body, again.body);
    assert_eq!(user.messages(&id).await.len(), 1);
}

#[tokio::test]
async fn a_long_thread_that_many_read_at_the_same_time_is_complete_or_refused() {
    let world = World::new().await;
    let user = world.user().await;
    let id = text(&user.ann().await, "id");
    let longest = "\u{1f600}".repeat(65_535);
    for _ in 0..3 {
        user.write(&id, json!({"type": "note", "body": longest})).await.expect(201);
    }
    let path = format!("/v1/tickets/{id}/messages");
    let asked = (0..40).map(|_| user.api.get(&path));
    let answers = futures::future::join_all(asked).await;
    for answer in &answers {
        match answer.status.as_u16() {
            200 => assert_eq!(answer.at("/data").as_array().unwrap().len(), 3),
            429 | 503 => assert!(answer.header("retry-after").is_some()),
            other => panic!("{other}: {}", answer.at("")),
        }
    }
    assert!(answers.iter().any(|answer| answer.status == 503), "forty lists do not fit into memory");
    assert_eq!(user.messages(&id).await.len(), 3);
}
