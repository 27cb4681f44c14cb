//! Files of the account that replies bring: whole, once, and only to those who may read them.

use chassis_testing::{eventually, expected_faults};
use chrono::TimeDelta;
use http::Method;
use mail_parser::{MessageParser, MimeHeaders};
use serde_json::{Value, json};

use crate::world::{User, World, text};

const MIB: usize = 1 << 20;
/// The most bytes that the files of a message have together.
const MAX: usize = 10 * MIB;

/// Bytes that contain every value, and nothing that a mail could carry as text.
fn bytes(length: usize) -> Vec<u8> {
    (0..length).map(|index| (index * 7 + index / 256).to_le_bytes()[0]).collect()
}

/// The name, type and content of each attachment.
fn attached(message: &str) -> Vec<(String, String, Vec<u8>)> {
    let mail = MessageParser::new().parse(message.as_bytes()).unwrap();
    let file = |part: &mail_parser::MessagePart<'_>| {
        let content_type = part.content_type().unwrap();
        let content_type = format!("{}/{}", content_type.ctype(), content_type.subtype().unwrap());
        (part.attachment_name().unwrap().to_owned(), content_type, part.contents().to_vec())
    };
    mail.attachments().map(file).collect()
}

async fn write(user: &User, ticket: &str, attachments: &[&str]) -> gateway::testing::Answer {
    user.write(ticket, json!({"body": "See the files.", "attachments": attachments})).await
}

async fn delete(user: &User, file: &str) {
    user.api.send(Method::DELETE, &format!("/v1/files/{file}"), &[], "").await.expect(204);
}

/// The only message of a ticket.
async fn message(user: &User, ticket: &str) -> Value {
    let mut messages = user.messages(ticket).await;
    assert_eq!(messages.len(), 1);
    messages.remove(0)
}

#[tokio::test]
async fn files_arrive_byte_for_byte_and_by_their_names() {
    let world = World::keeping_files().await;
    let user = world.user().await;
    let ticket = text(&user.ann().await, "id");
    let (photo, notes) = (bytes(300_001), b"One\nTwo\r\n.\r\n".to_vec());
    let names = ["Überblick – 写真 2026 ✓.jpg", "notes.txt"];
    let (one, two) = (user.upload(names[0], &photo).await, user.upload(names[1], &notes).await);

    let answer = write(&user, &ticket, &[&one, &two]).await.expect(201);
    let shown = json!([
        {"id": one, "name": names[0], "content_type": "image/jpeg", "size": 300_001, "left_out_of_mail": false},
        {"id": two, "name": names[1], "content_type": "text/plain", "size": 12, "left_out_of_mail": false},
    ]);
    assert_eq!(answer.at("/data/meta/attachments"), shown);
    let queued: i32 = sqlx::query_scalar("select octet_length(content) from support.mail")
        .fetch_one(&mut world.database.connect().await)
        .await
        .unwrap();
    assert!(queued < 2000, "the queue keeps {queued} bytes, so not those of the files");

    eventually("the mail arrives", async || world.sink.received().len() == 1).await;
    let arrived = attached(&world.sink.received()[0].message);
    let expected = [
        (names[0].to_owned(), "image/jpeg".to_owned(), photo),
        (names[1].to_owned(), "text/plain".to_owned(), notes),
    ];
    assert!(
        arrived == expected,
        "{:?}",
        arrived.iter().map(|it| (&it.0, &it.1, it.2.len())).collect::<Vec<_>>()
    );
    eventually("it is told", async || message(&user, &ticket).await["meta"]["mail"] == "sent").await;
    assert_eq!(message(&user, &ticket).await["meta"]["attachments"], shown);
}

#[tokio::test]
async fn a_note_keeps_its_files_and_mails_nothing() {
    let world = World::keeping_files().await;
    let user = world.user().await;
    let ticket = text(&user.ann().await, "id");
    let file = user.upload("plan.pdf", b"%PDF").await;
    let body = json!({"body": "For us", "type": "note", "attachments": [file]});
    let note = user.write(&ticket, body).await.expect(201).at("/data");
    assert_eq!(
        (&note["meta"]["mail"], &note["meta"]["attachments"][0]["id"]),
        (&json!("none"), &json!(file))
    );
    assert_eq!(message(&user, &ticket).await["meta"], note["meta"]);
}

#[tokio::test]
async fn a_delivery_that_is_repeated_brings_the_files_once_and_whole() {
    let world = World::keeping_files().await;
    world.sink.refuse_next(&["451 later", "451 later"]);
    let user = world.user().await;
    let ticket = text(&user.ann().await, "id");
    let content = bytes(2 * MIB);
    let file = user.upload("a.bin", &content).await;
    write(&user, &ticket, &[&file]).await.expect(201);
    eventually("it arrives", async || {
        world.clock.advance(TimeDelta::seconds(30));
        world.sink.received().len() == 1
    })
    .await;
    assert_eq!(world.sink.refused(), 2);
    eventually("it is told", async || message(&user, &ticket).await["meta"]["mail"] == "sent").await;
    let received = world.sink.received();
    assert_eq!(received.len(), 1, "not sent again");
    assert!(attached(&received[0].message)[0].2 == content);
}

#[tokio::test]
async fn a_mail_goes_without_a_file_that_was_deleted_and_its_message_says_so() {
    let world = World::keeping_files().await;
    world.sink.refuse_next(&["451 later"]);
    let user = world.user().await;
    let ticket = text(&user.ann().await, "id");
    let (gone, kept) = (user.upload("gone.txt", b"gone").await, user.upload("kept.txt", b"kept").await);
    write(&user, &ticket, &[&gone, &kept]).await.expect(201);
    eventually("it was refused once", async || world.sink.refused() == 1).await;
    delete(&user, &gone).await;
    eventually("it arrives", async || {
        world.clock.advance(TimeDelta::seconds(30));
        world.sink.received().len() == 1
    })
    .await;
    let arrived = attached(&world.sink.received()[0].message);
    assert_eq!(arrived, [("kept.txt".to_owned(), "text/plain".to_owned(), b"kept".to_vec())]);
    eventually("it is told", async || message(&user, &ticket).await["meta"]["mail"] == "sent").await;
    let attachments = message(&user, &ticket).await["meta"]["attachments"].clone();
    let told: Vec<_> = attachments.as_array().unwrap().iter().map(|file| &file["left_out_of_mail"]).collect();
    assert_eq!(told, [&json!(true), &json!(false)]);
    let record = user.api.get("/v1/changes?kinds=ticket_message").await.expect(200);
    let last = record.at("/data").as_array().unwrap().last().unwrap().clone();
    assert_eq!(last["record"]["meta"]["attachments"], attachments, "the feed shows it too");
}

#[tokio::test]
async fn a_mail_waits_while_its_files_cannot_be_read() {
    let mut world = World::keeping_files().await;
    world.sink.refuse_next(&["451 later"]);
    let user = world.user().await;
    let ticket = text(&user.ann().await, "id");
    let file = user.upload("a", b"a").await;
    write(&user, &ticket, &[&file]).await.expect(201);
    eventually("it was refused once", async || world.sink.refused() == 1).await;
    world.stop_keeping_files();
    let state = async || -> (String, String) {
        sqlx::query_as("select status, last_error from support.mail")
            .fetch_one(&mut world.database.connect().await)
            .await
            .unwrap()
    };
    eventually("it was tried again", async || {
        world.clock.advance(TimeDelta::seconds(5));
        state().await.1.contains(&file)
    })
    .await;
    assert_eq!(state().await.0, "queued");
    assert_eq!(message(&user, &ticket).await["meta"]["mail"], "queued");
    assert!(world.sink.received().is_empty());
}

#[tokio::test]
async fn only_files_of_the_account_can_be_attached_and_each_once() {
    let world = World::keeping_files().await;
    let (user, stranger) = (world.user().await, world.user().await);
    let ticket = text(&user.ann().await, "id");
    let (own, foreign) = (user.upload("a", b"a").await, stranger.upload("b", b"b").await);
    let deleted = user.upload("c", b"c").await;
    delete(&user, &deleted).await;
    let faults = async |attachments: Value| {
        let body = json!({"body": "x", "attachments": attachments});
        user.write(&ticket, body).await.expect(422).faults()
    };
    let capital = own.to_uppercase();
    assert_eq!(
        faults(json!([own, foreign, deleted, "x", "", capital])).await,
        expected_faults(&[
            ("/attachments/1", "unknown_reference"),
            ("/attachments/2", "unknown_reference"),
            ("/attachments/3", "unknown_reference"),
            ("/attachments/4", "unknown_reference"),
            ("/attachments/5", "repeated"),
        ])
    );
    assert_eq!(faults(json!(["x"])).await, expected_faults(&[("/attachments/0", "unknown_reference")]));
    assert_eq!(faults(json!([1])).await, expected_faults(&[("/attachments/0", "not_a_string")]));
    assert_eq!(faults(json!(vec![&own; 11])).await, expected_faults(&[("/attachments", "too_many")]));
    assert_eq!(user.messages(&ticket).await.len(), 0);
    user.write("019a8c5e-7d1b-7c3a-9f20-4b8d2a6e1c05", json!({"body": "x", "attachments": [own]}))
        .await
        .expect(404);
}

#[tokio::test]
async fn the_files_of_a_message_have_a_limit_together_and_the_largest_mails_arrive() {
    let world = World::keeping_files().await;
    let user = world.user().await;
    let ticket = text(&user.ann().await, "id");
    let (most, one) = (user.upload("most", &vec![7; MAX]).await, user.upload("one", b"x").await);
    let refused = write(&user, &ticket, &[&most, &one]).await.expect(422);
    assert_eq!(refused.faults(), expected_faults(&[("/attachments", "too_long")]));
    let detail = refused.at("/errors/0/detail").as_str().unwrap().to_owned();
    assert!(detail.contains("10485760 bytes") && detail.contains("10485761"), "{detail}");

    // More of them at the same time than a process holds in memory.
    let mut sent = Vec::new();
    for _ in 0..3 {
        let user = world.user().await;
        let ticket = text(&user.ann().await, "id");
        let file = user.upload("most", &vec![7; MAX]).await;
        write(&user, &ticket, &[&file]).await.expect(201);
        sent.push((user, ticket));
    }
    for (user, ticket) in &sent {
        eventually("it is sent", async || {
            // A process that is slow may have to try again.
            world.clock.advance(TimeDelta::seconds(1));
            message(user, ticket).await["meta"]["mail"] == "sent"
        })
        .await;
    }
    let received = world.sink.received();
    assert_eq!(received.len(), 3);
    for mail in received {
        // In Base64, four letters stand for three bytes.
        assert!(mail.message.len() > MAX / 3 * 4 && mail.message.trim_end().ends_with("--"));
    }
}

#[tokio::test]
async fn a_key_that_may_not_read_files_may_not_send_them() {
    let world = World::keeping_files().await;
    let user = world.user().await;
    let ticket = text(&user.ann().await, "id");
    let file = user.upload("a", b"a").await;
    let narrow = world.user_with(user.account(), &["tickets.read", "tickets.write", "files.write"]).await;
    let refused = write(&narrow, &ticket, &[&file]).await.expect(403);
    assert_eq!(refused.at("/code"), "insufficient_scope");
    assert!(refused.at("/detail").as_str().unwrap().contains("files.read"));
    write(&narrow, &ticket, &[]).await.expect(201);
    assert_eq!(user.messages(&ticket).await.len(), 1);
}

#[tokio::test]
async fn a_repeated_request_gets_the_first_answer_although_the_file_is_gone() {
    let world = World::keeping_files().await;
    let user = world.user().await;
    let ticket = text(&user.ann().await, "id");
    let file = user.upload("a", b"a").await;
    let path = format!("/v1/tickets/{ticket}/messages");
    let body = json!({"body": "x", "attachments": [file]});
    let first = user.api.post_keyed(&path, "k", body.clone()).await.expect(201);
    delete(&user, &file).await;
    let again = user.api.post_keyed(&path, "k", body.clone()).await.expect(201);
    assert_eq!(again.at("/data"), first.at("/data"));
    user.api.post(&path, body).await.expect(422);
    assert_eq!(user.messages(&ticket).await.len(), 1);
}
