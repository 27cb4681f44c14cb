//! Mail with documents: queued with the change, delivered with the PDF over real SMTP, and what became of it.

use chassis_testing::expected_faults;
use std::sync::Arc;

use chassis_testing::{SmtpServer, eventually};
use chrono::TimeDelta;
use serde_json::{Value, json};

use crate::support::{User, World, conflict, path};

async fn send(user: &User, list: &str, document: &Value, body: Value) -> gateway::testing::Answer {
    user.act(list, document, "send", body).await
}

fn letter(to: &str) -> Value {
    json!({"to": to, "subject": "Your invoice", "message": "Dear Sanne,\n\nhere it is."})
}

/// What the history says became of the last mail.
async fn mail_of(user: &User, list: &str, document: &Value) -> Value {
    user.get(list, document).await["meta"]["history"][0]["data"]["mail"].clone()
}

#[tokio::test]
async fn a_sent_draft_is_final_and_its_mail_brings_the_pdf() {
    let smtp = Arc::new(SmtpServer::start().await);
    let world = World::mailing(&smtp.url()).await;
    let user = world.user().await;
    let client = user.client("Korenbloem").await;
    let draft = user.draft(&client, &[100]).await;

    let body = json!({
        "to": "sanne@korenbloem.example, Boek@Korenbloem.example",
        "cc": "copy@korenbloem.example",
        "subject": "Your invoice\r\nBcc: thief@evil.example",
        "message": "Dear Sanne,\n\nhere it is.",
    });
    let sent = send(&user, "invoices", &draft, body).await.expect(200).at("/data");
    let list = ["sanne@korenbloem.example", "Boek@Korenbloem.example", "copy@korenbloem.example"];
    assert_eq!(sent, json!({"success": true, "recipients": list, "recipients_list": list.join(", ")}));

    let after = user.get("invoices", &draft).await;
    assert_eq!((&after["number"], &after["payment_status"]), (&json!("INV-2026-00001"), &json!("open")));
    assert!(after["sent_at"].is_string() && after["generation_mode"] == "final");

    eventually("the mail arrives", async || smtp.received().len() == 1).await;
    let mail = smtp.received().remove(0);
    assert_eq!(mail.recipients, list);
    let (headers, body) = mail.message.split_once("\r\n\r\n").unwrap();
    assert!(!headers.to_lowercase().contains("\nbcc:"), "{headers}");
    assert!(headers.contains("Subject: Your invoice"), "{headers}");
    assert!(
        body.contains("filename=\"INV-2026-00001.pdf\"") && body.contains("application/pdf"),
        "{body:.2000}"
    );
    assert!(body.contains("JVBERi0"), "a PDF in base64");
    assert!(body.contains("/documents/"), "a way to the page");
    eventually("the history tells", async || mail_of(&user, "invoices", &draft).await["status"] == "sent")
        .await;
}

#[tokio::test]
async fn a_mail_that_cannot_be_delivered_shows_in_the_history_and_others_are_not_held_up() {
    let smtp = Arc::new(SmtpServer::start().await);
    smtp.refuse_recipient("gone@korenbloem.example", "550 no such user");
    let world = World::mailing(&smtp.url()).await;
    let user = world.user().await;
    let client = user.client("Korenbloem").await;
    let (one, other) = (user.draft(&client, &[1]).await, user.draft(&client, &[2]).await);
    let without = |to: &str| json!({"to": to, "subject": "s", "message": "m", "include_pdf": false});
    send(&user, "invoices", &one, without("gone@korenbloem.example")).await.expect(200);
    send(&user, "invoices", &other, without("sanne@korenbloem.example")).await.expect(200);

    eventually("one fails", async || mail_of(&user, "invoices", &one).await["status"] == "failed").await;
    let told = mail_of(&user, "invoices", &one).await["error"].to_string();
    assert!(told.contains("no such user"), "{told}");
    eventually("the other is sent", async || mail_of(&user, "invoices", &other).await["status"] == "sent")
        .await;
    let mail = smtp.received().remove(0);
    assert!(!mail.message.contains("application/pdf"), "no PDF was wanted");
}

#[tokio::test]
async fn a_server_that_is_busy_is_tried_again() {
    let smtp = Arc::new(SmtpServer::start().await);
    smtp.refuse_next(&["451 later"]);
    let world = World::mailing(&smtp.url()).await;
    let user = world.user().await;
    let client = user.client("Korenbloem").await;
    let quote =
        user.create("quotes", json!({"title": "Q", "client_id": client, "rows": [{"name": "Row"}]})).await;
    let body = json!({"to": "a@b.example", "subject": "s", "message": "m", "include_pdf": false});
    send(&user, "quotes", &quote, body).await.expect(200);
    eventually("it was refused once", async || smtp.refused() == 1).await;
    eventually("it is told", async || mail_of(&user, "quotes", &quote).await["last_error"].is_string()).await;
    assert_eq!(mail_of(&user, "quotes", &quote).await["status"], "queued");
    world.clock.advance(TimeDelta::minutes(10));
    eventually("it arrives", async || smtp.received().len() == 1).await;
}

#[tokio::test]
async fn addresses_are_checked_and_a_refused_request_changes_nothing() {
    let world = World::new().await;
    let user = world.user().await;
    let client = user.client("Korenbloem").await;
    let draft = user.draft(&client, &[100]).await;
    let faults = async |body: Value| send(&user, "invoices", &draft, body).await.expect(422).faults();

    assert_eq!(
        faults(json!({})).await,
        expected_faults(&[("/to", "required"), ("/subject", "required"), ("/message", "required")])
    );
    let bad = send(&user, "invoices", &draft, letter("ok@x.example, nonsense")).await.expect(422);
    assert_eq!(bad.faults(), expected_faults(&[("/to", "bad_email")]));
    assert!(bad.at("/errors/0/detail").as_str().unwrap().contains("nonsense"));
    let many: Vec<String> = (0..21).map(|n| format!("a{n}@x.example")).collect();
    assert_eq!(faults(letter(&many.join(","))).await, expected_faults(&[("/to", "too_many")]));
    let mut kind = letter("a@x.example");
    kind["send_type"] = json!("postcard");
    assert_eq!(faults(kind).await, expected_faults(&[("/send_type", "not_allowed")]));

    let after = user.get("invoices", &draft).await;
    assert_eq!((&after["generation_mode"], &after["sent_at"]), (&json!("draft"), &Value::Null));
    user.api.post(&format!("{}/send", path("quotes", &draft)), letter("a@x.example")).await.expect(404);
}

#[tokio::test]
async fn a_draft_without_client_or_row_cannot_be_sent() {
    let world = World::new().await;
    let user = world.user().await;
    let client = user.client("Korenbloem").await;
    let nobody = user.create("invoices", json!({"title": "t", "rows": [{"name": "x"}]})).await;
    let empty = user.create("invoices", json!({"title": "t", "client_id": client})).await;
    for draft in [nobody, empty] {
        assert_eq!(conflict(send(&user, "invoices", &draft, letter("a@x.example")).await), "incomplete");
        assert_eq!(user.get("invoices", &draft).await["sent_at"], Value::Null);
    }
}
