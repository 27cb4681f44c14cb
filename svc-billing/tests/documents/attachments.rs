//! Files of the account that the mail of a document brings besides its PDF.

use std::sync::Arc;

use chassis_testing::{SmtpServer, eventually, expected_faults};
use chrono::TimeDelta;
use mail_parser::{MessageParser, MimeHeaders};
use serde_json::{Value, json};

use crate::support::{User, World};

const LISTS: [&str; 3] = ["invoices", "quotes", "workorders"];

/// The name and content of each attachment.
fn attached(message: &str) -> Vec<(String, Vec<u8>)> {
    let mail = MessageParser::new().parse(message.as_bytes()).unwrap();
    let file = |part: &mail_parser::MessagePart<'_>| {
        (part.attachment_name().unwrap().to_owned(), part.contents().to_vec())
    };
    mail.attachments().map(file).collect()
}

fn letter(attachments: &[&String]) -> Value {
    json!({"to": "sanne@korenbloem.example", "subject": "s", "message": "m", "include_pdf": false,
           "attachments": attachments})
}

async fn draft(user: &User, list: &str) -> Value {
    let client = user.client("Korenbloem").await;
    user.create(list, json!({"title": "Bread", "client_id": client, "rows": [{"name": "Row"}]})).await
}

/// What the history tells of the last mail.
async fn told(user: &User, list: &str, document: &Value) -> Value {
    user.get(list, document).await["meta"]["history"][0]["data"].clone()
}

#[tokio::test]
async fn the_mail_of_each_kind_of_document_brings_files() {
    let smtp = Arc::new(SmtpServer::start().await);
    let world = World::mailing_files(&smtp.url()).await;
    let user = world.user().await;
    let terms: Vec<u8> = (0..=255).cycle().take(200_000).collect();
    let one = world.upload(&user, "Conditions générales – 条件.pdf", &terms).await;
    let two = world.upload(&user, "map.txt", b"Turn left.").await;
    for (count, list) in LISTS.into_iter().enumerate() {
        let document = draft(&user, list).await;
        user.act(list, &document, "send", letter(&[&one, &two])).await.expect(200);
        eventually("it arrives", async || smtp.received().len() == count + 1).await;
        let arrived = attached(&smtp.received()[count].message);
        let expected = [
            ("Conditions générales – 条件.pdf".to_owned(), terms.clone()),
            ("map.txt".to_owned(), b"Turn left.".to_vec()),
        ];
        assert!(arrived == expected, "{list}");
        eventually("it is told", async || told(&user, list, &document).await["mail"]["status"] == "sent")
            .await;
        assert_eq!(
            told(&user, list, &document).await["attachments"],
            json!([{"id": one, "name": "Conditions générales – 条件.pdf", "size": 200_000},
                   {"id": two, "name": "map.txt", "size": 10}])
        );
    }
}

#[tokio::test]
async fn files_come_behind_the_pdf() {
    let smtp = Arc::new(SmtpServer::start().await);
    let world = World::mailing_files(&smtp.url()).await;
    let user = world.user().await;
    let file = world.upload(&user, "terms.txt", b"Pay.").await;
    let draft = draft(&user, "invoices").await;
    let mut body = letter(&[&file]);
    body["include_pdf"] = json!(true);
    user.act("invoices", &draft, "send", body).await.expect(200);
    eventually("it arrives", async || smtp.received().len() == 1).await;
    let arrived = attached(&smtp.received()[0].message);
    let names: Vec<_> = arrived.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["INV-2026-00001.pdf", "terms.txt"]);
    assert!(arrived[0].1.starts_with(b"%PDF"));
}

#[tokio::test]
async fn a_repeated_delivery_is_whole_except_for_a_file_that_was_deleted() {
    let smtp = Arc::new(SmtpServer::start().await);
    smtp.refuse_next(&["451 later"]);
    let world = World::mailing_files(&smtp.url()).await;
    let user = world.user().await;
    let gone = world.upload(&user, "gone.txt", b"gone").await;
    let kept = world.upload(&user, "kept.txt", b"kept").await;
    let draft = draft(&user, "invoices").await;
    user.act("invoices", &draft, "send", letter(&[&gone, &kept])).await.expect(200);
    eventually("it was refused once", async || smtp.refused() == 1).await;
    user.delete(&format!("/v1/files/{gone}")).await.expect(204);
    eventually("it arrives", async || {
        world.clock.advance(TimeDelta::seconds(30));
        smtp.received().len() == 1
    })
    .await;
    assert_eq!(attached(&smtp.received()[0].message), [("kept.txt".to_owned(), b"kept".to_vec())]);
    eventually("it is told", async || told(&user, "invoices", &draft).await["mail"]["status"] == "sent")
        .await;
    assert_eq!(
        told(&user, "invoices", &draft).await["attachments"],
        json!([{"id": gone, "name": "gone.txt", "size": 4, "left_out_of_mail": true},
               {"id": kept, "name": "kept.txt", "size": 4}])
    );
    assert_eq!(smtp.received().len(), 1);
}

#[tokio::test]
async fn files_that_cannot_be_attached_are_refused_and_nothing_is_sent() {
    let smtp = Arc::new(SmtpServer::start().await);
    let world = World::mailing_files(&smtp.url()).await;
    let (user, stranger) = (world.user().await, world.user().await);
    let draft = draft(&user, "quotes").await;
    let own = world.upload(&user, "a", b"a").await;
    let foreign = world.upload(&stranger, "b", b"b").await;
    let large = world.upload(&user, "c", &vec![0; 10 << 20]).await;
    let faults = async |body: Value| user.act("quotes", &draft, "send", body).await.expect(422).faults();
    assert_eq!(
        faults(letter(&[&own, &foreign, &own])).await,
        expected_faults(&[("/attachments/1", "unknown_reference"), ("/attachments/2", "repeated")])
    );
    assert_eq!(faults(letter(&[&own, &large])).await, expected_faults(&[("/attachments", "too_long")]));
    assert_eq!(faults(letter(&[&own; 11])).await, expected_faults(&[("/attachments", "too_many")]));
    let narrow = world.user_with(&user.account, &["invoices.read", "invoices.write"]).await;
    let refused = narrow.act("quotes", &draft, "send", letter(&[&own])).await.expect(403);
    assert_eq!(refused.at("/code"), "insufficient_scope");
    assert!(refused.at("/detail").as_str().unwrap().contains("files.read"));
    let after = user.get("quotes", &draft).await;
    assert_eq!((&after["generation_mode"], &after["sent_at"]), (&json!("draft"), &Value::Null));
    narrow.act("quotes", &draft, "send", letter(&[])).await.expect(200);
}
